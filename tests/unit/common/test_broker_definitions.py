"""What a broker imports: users that are hashed, rights by virtual host, the topology."""

import base64
import hashlib
import json

from gatemesh_common.broker import DEAD_LETTERS, WORK_QUEUES
from gatemesh_common.broker_definitions import Site, definitions, password_hash
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


def test_every_queue_is_there_and_bound() -> None:
    """Agents may not declare them, and publish at once."""
    found = definitions({}, Site())
    names = {queue["name"] for queue in found["queues"]}
    assert names == {DEAD_LETTERS, *(queue.name for queue in WORK_QUEUES)}
    assert {each["destination"] for each in found["bindings"]} >= names
