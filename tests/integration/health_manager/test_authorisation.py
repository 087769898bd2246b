"""Who may ask for what, by users that a real broker has proven."""

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aio_pika
import pytest
from tests.conftest import Bench, call_management

from gatemesh_common.errors import BrokerRefusedError, GatemeshError
from gatemesh_common.messages import CONTROL, ActionRequest, TrialRequest
from gatemesh_common.publisher import Publisher, envelope

from .conftest import Site

pytestmark = pytest.mark.integration

POLICY = """
[roles.oncall]
actions = ["quarantine", "release"]
pools = ["default"]
[roles.admin]
actions = ["*"]
[operators]
{bob} = ["oncall"]
{alice} = ["admin"]
"""


@pytest.fixture
def users(bench: Bench, vhost_url: str, site: Site) -> Iterator[dict[str, str]]:
    """Make users of the broker who may only ask, as docs/authorisation.md says; their names."""
    vhost = urlsplit(vhost_url).path.removeprefix("/")
    names = {who: f"{who}-{uuid.uuid4().hex[:8]}" for who in ("alice", "bob", "eve")}
    rights = {"configure": "^$", "write": "^vllm_control$", "read": "^$"}
    topics = {"exchange": CONTROL, "write": r"^(request|trial)\.v1\.", "read": "^$"}
    for name in names.values():
        call_management(bench, "PUT", f"users/{name}", {"password": "p", "tags": ""})
        call_management(bench, "PUT", f"permissions/{vhost}/{name}", rights)
        call_management(bench, "PUT", f"topic-permissions/{vhost}/{name}", topics)
    yield names
    for name in names.values():
        call_management(bench, "DELETE", f"users/{name}", None)


@pytest.fixture
async def logins(users: dict[str, str], vhost_url: str) -> AsyncIterator[dict[str, Publisher]]:
    """Give the connection of each user."""
    address = urlsplit(vhost_url)
    async with AsyncExitStack() as stack:
        yield {
            who: await stack.enter_async_context(
                Publisher(
                    address._replace(netloc=f"{name}:p@{address.hostname}:{address.port}").geturl(),
                    "ctl",
                    deadline_s=10,
                )
            )
            for who, name in users.items()
        }


def asking(
    action: str, name: str | None = None, kind: type[ActionRequest] = ActionRequest
) -> ActionRequest:
    """Return a request that claims to be the administrator's."""
    return kind.model_validate(
        {
            "timestamp": datetime.now(UTC),
            "action": action,
            "instance_id": name,
            "requested_by": "alice",
        }
    )


async def decided(site: Site, request: ActionRequest) -> tuple[Any, ...]:
    """Return what became of a request, once it is decided."""
    mine = f"FROM requests_v1 WHERE message_id = '{request.message_id}'"
    await site.until_value(f"SELECT count(*) {mine}", 1)
    return site.rows(f"SELECT outcome, why, user_id {mine}")[0]


async def test_the_brokers_word_decides(
    site: Site, tmp_path: Path, users: dict[str, str], logins: dict[str, Publisher]
) -> None:
    """Roles hold for proven users; every refusal is written down with who it was."""
    file = tmp_path / "policy.toml"
    file.write_text(POLICY.format(**users))
    await site.start_ready(GATEMESH_HEALTH_MANAGER_POLICY_FILE=str(file))
    await site.bring_up("engine-0", "engine-1")

    async def ask(who: str, request: ActionRequest) -> tuple[Any, ...]:
        await logins[who].publish(request)
        return await decided(site, request)

    outcome, why, user = await ask("eve", asking("quarantine", "engine-0"))
    assert (outcome, user) == ("refused", users["eve"])
    assert "is not among the operators" in str(why)
    outcome, why, user = await ask("bob", asking("drain", "engine-0"))
    assert (outcome, user) == ("refused", users["bob"])
    assert "has the roles oncall, none for drain in pool 'default'" in str(why)
    trial = asking("drain", "engine-0", TrialRequest)
    assert (await ask("bob", trial))[0] == "refused"
    assert site.value("SELECT count(*) FROM commands WHERE action <> 'readmit'") == 0

    assert (await ask("bob", asking("quarantine", "engine-0")))[0] == "accepted"
    assert site.value("SELECT reason FROM incidents_v1") == (
        f"quarantine asked by alice (user {users['bob']})"
    )
    assert (await ask("alice", asking("pause")))[0] == "accepted"


async def test_without_a_proven_sender_nothing_is_followed(
    site: Site, tmp_path: Path, users: dict[str, str], logins: dict[str, Publisher]
) -> None:
    """A message without a user id is refused, one with another's by the broker itself."""
    file = tmp_path / "policy.toml"
    file.write_text(POLICY.format(**users))
    await site.start_ready(GATEMESH_HEALTH_MANAGER_POLICY_FILE=str(file))
    await site.bring_up("engine-0", "engine-1")
    request = asking("quarantine", "engine-0")
    key = request.key()
    for name in (users["alice"], "nobody"):
        forged = envelope(request, "ctl", name)
        with pytest.raises(BrokerRefusedError):
            await logins["eve"].publish_raw(forged, CONTROL, key, mandatory=True)
    claims = f'{{"user_id": "{users["alice"]}", "proven_user": "{users["alice"]}", '
    body = aio_pika.Message((claims + request.model_dump_json()[1:]).encode())
    await logins["alice"].publish_raw(body, CONTROL, key, mandatory=True)
    outcome, why, user = await decided(site, request)
    assert (outcome, user) == ("refused", None)
    assert "carries no user_id" in str(why)
    assert site.value("SELECT state FROM instances WHERE instance_id = 'engine-0'") == "healthy"


async def test_who_may_only_ask_orders_nothing(logins: dict[str, Publisher], site: Site) -> None:
    """The rights that the page names keep commands from those who may publish requests."""
    await logins["alice"].publish(asking("pause"))
    with pytest.raises(GatemeshError):
        await logins["alice"].publish_raw(
            aio_pika.Message(b"{}"), CONTROL, "command.v1.drain.default.engine-0", mandatory=True
        )


async def test_without_a_table_everybody_may_ask(site: Site, logins: dict[str, Publisher]) -> None:
    """As in earlier releases; who it was is kept all the same."""
    await site.start_ready()
    await site.bring_up("engine-0", "engine-1")
    request = asking("quarantine", "engine-0")
    await logins["eve"].publish(request)
    outcome, _, user = await decided(site, request)
    assert outcome == "accepted"
    assert str(user).startswith("eve-")
