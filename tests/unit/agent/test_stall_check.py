"""What a look at a quiet instance finds."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from multidict import CIMultiDict

from gatemesh_agent import stall_check
from gatemesh_agent.attribution import ClientRequest
from gatemesh_agent.errors import InstanceFailedError
from gatemesh_agent.reporting import Life, Origin
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.stall_check import Stall, StallCheck, tiny_order
from gatemesh_agent.upstream import Order
from gatemesh_agent.watchdog import Quiet, Waiting

PAGE = b'vllm:generation_tokens_total{engine="0"} %d.0\nvllm:num_requests_running 2.0\n'
LIFE = Life("e", 0, None, numbered=True)
HEADERS = CIMultiDict({"Authorization": "Bearer mine", "X-Request-Id": "R1"})


def waiting(route: Route = Route.CHAT) -> Waiting:
    """Return a request that waits."""
    asked = understand(route, b'{"model":"m","messages":[],"prompt":"x"}')
    request = ClientRequest(asked, Origin("R1"), Order("POST", str(route), HEADERS, asked.raw))
    return Waiting(request, LIFE, "http://e", 0.0)


class Engine:
    """Stands in for an engine: what each path says, None for silence."""

    def __init__(self, **pages: Any) -> None:
        self.pages = pages
        self.asked: list[str] = []
        self.tokens = 5

    @asynccontextmanager
    async def ask(self, _base_url: str, order: Order) -> AsyncIterator["Reply"]:
        """Take a request."""
        name = order.path.rsplit("/", 1)[-1]
        self.asked.append(name)
        said = self.pages.get(name, (404, b""))
        if said == "refused":
            raise InstanceFailedError("unreachable", "accepts no connection")
        if said is None:
            await asyncio.Event().wait()
        if name == "metrics" and said == "moving":
            self.tokens += 1
            said = (200, PAGE % self.tokens)
        yield Reply(*said)


class Reply:
    """An answer."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.body = body

    async def first(self) -> bytes:
        """Return nothing yet."""
        return b""

    async def whole(self, _begun: bytes, _limit: int) -> tuple[bytes, bool]:
        """Return the body."""
        return self.body, True


STILL = (200, PAGE % 5)
YES = (200, b'{"is_paused": true}')


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait shorter."""
    monkeypatch.setattr(stall_check, "ANSWERING_S", 0.02)


@pytest.mark.parametrize(
    ("pages", "overdue", "found"),
    [
        (
            {"metrics": STILL, "completions": None},
            True,
            Stall(hard=True, counters="unchanged", own="silent"),
        ),
        (
            {"metrics": None, "completions": None},
            False,
            Stall(hard=True, counters="silent", own="silent"),
        ),
        ({"completions": None}, True, Stall(hard=True, counters="absent", own="silent")),
        (
            {"metrics": STILL, "completions": (401, b"")},
            True,
            Stall(hard=False, counters="unchanged", own="refused"),
        ),
        ({"completions": (401, b"")}, True, None),
        ({"metrics": STILL, "completions": None}, False, None),
        ({"metrics": STILL, "completions": (200, b"{}")}, True, None),
        ({"metrics": STILL, "completions": (500, b"")}, True, None),
        ({"metrics": "moving", "completions": None}, True, None),
        ({"metrics": "refused"}, True, None),
        ({"metrics": STILL, "is_paused": YES, "completions": None}, True, None),
    ],
    ids=[
        *("hung", "stopped", "no-counters", "no-key", "no-key-no-counters", "prefill"),
        *("answers", "fails", "busy", "gone", "paused"),
    ],
)
async def test_findings(pages: dict[str, Any], overdue: bool, found: Stall | None) -> None:  # noqa: FBT001
    """Hard only where a generation of our own stayed without a token."""
    check = StallCheck(Engine(**pages), 0.02, None)  # type: ignore[arg-type]
    quiet = Quiet(waiting(), 20.0, 1, overdue)
    assert await check.look(quiet, lambda: False) == found


async def test_a_client_that_got_something_ends_it() -> None:
    """Whatever our own request saw."""
    engine = Engine(metrics=STILL, completions=None)
    check = StallCheck(engine, 0.02, None)  # type: ignore[arg-type]
    assert await check.look(Quiet(waiting(), 20.0, 1, overdue=True), lambda: True) is None


def test_our_own_request_is_tiny() -> None:
    """Of the client's kind, for its model, with the key that is at hand."""
    order = tiny_order(waiting(), None)
    assert json.loads(order.body) == {
        "model": "m",
        "max_tokens": 1,
        "temperature": 0,
        "messages": [{"role": "user", "content": "1"}],
    }
    assert order.headers["Authorization"] == "Bearer mine"
    assert "X-Request-Id" not in order.headers
    text = tiny_order(waiting(Route.COMPLETIONS), "ours")
    assert (text.path, json.loads(text.body)["prompt"]) == ("/v1/completions", "1")
    assert text.headers["Authorization"] == "Bearer ours"
