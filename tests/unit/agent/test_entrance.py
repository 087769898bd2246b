"""The public port's entrance, as far as no network is needed."""

from unittest.mock import AsyncMock, Mock

from aiohttp.test_utils import make_mocked_request

from gatemesh_agent.client import Client
from gatemesh_agent.door import CLOSED_PATH, Door, Holder, Refusal
from gatemesh_agent.entrance import Entrance, authorization_in, begin_metering, settle, turn_away
from gatemesh_agent.keys import ApiKey, Limits, digest_of


def door_for(limits: Limits) -> Door:
    """Return a door with one key."""
    door, digest = Door(), digest_of("gm-one")
    door.replace({digest: ApiKey("one", digest, limits)})
    return door


def client() -> Client:
    """Return a client that takes everything."""
    writer = Mock(write=AsyncMock(), write_eof=AsyncMock(), write_headers=AsyncMock(), length=None)
    transport = Mock()
    transport.get_write_buffer_size.return_value = 0
    asked = make_mocked_request("POST", "/", writer=writer, transport=transport)
    return Client(asked, "R1", 5.0)


def test_paths_are_closed_before_keys_are_asked_for() -> None:
    """And without keys the open ones are open to all."""
    entrance = Entrance(None, closes_paths=True, clock_s=lambda: 0.0)
    assert entrance.enter("/metrics", {}) is CLOSED_PATH
    assert entrance.enter("/v1/models", {}) is None
    assert entrance.withheld == ()


def test_a_key_names_its_tenant_by_either_header() -> None:
    """The same one, whichever way a client's library sends it."""
    assert authorization_in({"Authorization": "Bearer one"}) == "Bearer one"
    assert authorization_in({"X-Api-Key": "one"}) == "Bearer one"
    assert authorization_in({"Authorization": "Bearer one", "X-Api-Key": "two"}) == "Bearer one"
    assert authorization_in({"X-Api-Key": ""}) is None
    assert authorization_in({}) is None


def test_a_key_is_shown_to_no_engine() -> None:
    """It is between the client and us."""
    entrance = Entrance(door_for(Limits()), closes_paths=False, clock_s=lambda: 0.0)
    assert entrance.withheld == ("Authorization", "X-Api-Key")
    assert isinstance(entrance.enter("/metrics", {}), Refusal)
    assert isinstance(entrance.enter("/metrics", {"X-Api-Key": "gm-one"}), Holder)


async def test_who_is_turned_away_learns_when_to_come_again() -> None:
    """In the header that clients' libraries wait by."""
    door = door_for(Limits(requests_per_min=1))
    door.enter("gm-one", 0.0)
    refusal = door.enter("gm-one", 0.0)
    assert isinstance(refusal, Refusal)
    turned = client()
    await turn_away(turned, refusal)
    assert (turned.status, turned.response.headers["Retry-After"]) == (429, "60")


async def test_an_answer_is_charged_to_its_key() -> None:
    """Only where somebody asks for it."""
    door = door_for(Limits(tokens_per_min=60))
    holder = door.enter("gm-one", 0.0)
    assert isinstance(holder, Holder)
    served = client()
    begin_metering(served, holder)
    await served.begin(200, None, {}, None, None)
    await served.write(b'{"usage":{"total_tokens":120}}')
    settle(served, holder)
    refusal = door.enter("gm-one", 0.0)
    assert isinstance(refusal, Refusal)
    assert refusal.retry_after_s == 61
    free = door_for(Limits()).enter("gm-one", 0.0)
    assert isinstance(free, Holder)
    begin_metering(unmetered := client(), free)
    assert unmetered.meter is None
