"""The front door, as far as no network is needed."""

from aiohttp.test_utils import make_mocked_request
from tests.spans import TRACE

from gatemesh_agent.client import Client
from gatemesh_agent.proxy import ids_of, onward


def test_ids_travel_as_messages_can_carry_them() -> None:
    """An odd id of a client is replaced in our records, not in its request."""
    good = make_mocked_request("POST", "/", headers={"X-Request-Id": "R1", "traceparent": TRACE})
    assert ids_of(good, "own") == ("R1", TRACE)
    odd = make_mocked_request("POST", "/", headers={"X-Request-Id": "a b", "traceparent": "x"})
    assert ids_of(odd, "own") == ("own", None)
    assert onward(odd, Client(odd, "a b", 1.0))["X-Request-Id"] == "a b"


def test_the_engine_learns_the_id_that_the_client_will_see() -> None:
    """And never the agent's own host name or the client's wait for leave."""
    request = make_mocked_request(
        "POST",
        "/",
        headers={"Host": "x", "Expect": "100-continue", "Accept": "a", "Content-Length": "1"},
    )
    headers = onward(request, Client(request, "made", 1.0), "Content-Length")
    assert dict(headers) == {"Accept": "a", "X-Request-Id": "made"}
