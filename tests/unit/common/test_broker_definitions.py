"""What a broker imports: users that are hashed, rights by virtual host, the topology."""

import base64
import hashlib
import json
from typing import cast

from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel

from gatemesh_common.broker import DEAD_LETTERS, PROOFS, WORK_QUEUES, declare_topology
from gatemesh_common.broker_definitions import Site, definitions, password_hash, topology
from gatemesh_common.broker_users import SERVICES

PASSWORDS = {service: f"pass-{service}" for service in SERVICES}


def test_no_password_is_told() -> None:
    """The file may lie where others can read it."""
    text = json.dumps(definitions(PASSWORDS, Site(), ("root", "very secret")))
    assert "pass-" not in text
    assert "very secret" not in text


def test_a_hash_is_what_the_broker_checks() -> None:
    """Four bytes of salt, then SHA-256 of salt and password."""
    found = base64.b64decode(password_hash("alice", "open sesame"))
    salt, digest = found[:4], found[4:]
    assert digest == hashlib.sha256(salt + b"open sesame").digest()
    assert password_hash("bob", "open sesame") != password_hash("alice", "open sesame")
    assert password_hash("alice", "open sesame") == password_hash("alice", "open sesame")


def test_each_service_has_a_user_with_rights() -> None:
    """Named for the site, in its virtual host."""
    found = definitions(PASSWORDS, Site("/mesh", "blue"))
    assert {user["name"] for user in found["users"]} == {f"blue_{name}" for name in SERVICES}
    assert {each["user"] for each in found["permissions"]} == {f"blue_{name}" for name in SERVICES}
    placed = [*found["permissions"], *found["topic_permissions"], *found["queues"]]
    assert {each["vhost"] for each in placed} == {"/mesh"}
    [tagged] = [user for user in found["users"] if user["tags"]]
    assert (tagged["name"], tagged["tags"]) == ("blue_monitoring", "monitoring")


def test_a_service_without_a_password_is_left_out() -> None:
    """A site may run some of them only."""
    found = definitions({"agent": "x"}, Site())
    assert [user["name"] for user in found["users"]] == ["gatemesh_agent"]
    assert {each["user"] for each in found["topic_permissions"]} == {"gatemesh_agent"}


def test_the_administrator_may_everything() -> None:
    """A person needs one login that is not a service's."""
    found = definitions({}, Site(), ("root", "x"))
    assert found["users"][0]["tags"] == "administrator"
    assert found["permissions"] == [
        {"user": "root", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
    ]


class Declared:
    """A channel that notes what is declared and bound, and each thing that it hands out."""

    def __init__(self) -> None:
        self.things: dict[str, dict[str, object]] = {}
        self.bindings: set[tuple[str, str, str]] = set()

    async def declare_exchange(
        self,
        name: str,
        kind: ExchangeType,
        *,
        durable: bool,
        arguments: dict[str, object] | None = None,
    ) -> "Thing":
        """Note an exchange."""
        self.things[name] = {"type": kind.value, "durable": durable, "arguments": arguments or {}}
        return Thing(self, name)

    async def declare_queue(
        self, name: str, *, durable: bool, arguments: dict[str, object]
    ) -> "Thing":
        """Note a queue."""
        self.things[name] = {"durable": durable, "arguments": arguments}
        return Thing(self, name)


class Thing:
    """An exchange or a queue."""

    def __init__(self, declared: Declared, name: str) -> None:
        self._declared = declared
        self.name = name

    async def bind(self, source: "Thing | str", routing_key: str) -> None:
        """Note a binding."""
        name = source if isinstance(source, str) else source.name
        self._declared.bindings.add((name, self.name, routing_key))

    async def unbind(self, source: str, routing_key: str) -> None:
        """Note that one is taken away."""
        self._declared.bindings.discard((source, self.name, routing_key))


async def test_the_file_holds_what_services_declare() -> None:
    """Other arguments would be refused, and a binding that lacks loses messages."""
    declared = Declared()
    await declare_topology(cast("AbstractChannel", declared))
    found = topology("/")
    things = [*found["exchanges"], *found["queues"]]
    common = ("type", "durable", "arguments")
    assert {
        one["name"]: {name: one[name] for name in common if name in one} for one in things
    } == declared.things
    assert {
        (one["source"], one["destination"], one["routing_key"]) for one in found["bindings"]
    } == declared.bindings


def test_every_queue_is_there_and_bound() -> None:
    """Agents may not declare them, and publish at once. Proofs are bound by who reads them."""
    found = definitions({}, Site())
    names = {queue["name"] for queue in found["queues"]}
    assert names == {DEAD_LETTERS, *(queue.name for queue in WORK_QUEUES)}
    bound = {each["destination"] for each in found["bindings"]}
    assert names - bound == {PROOFS.name}
