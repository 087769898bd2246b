"""Guarded requests: an engine's own errors reach a client only when nobody answered."""

import json
from typing import Any

import pytest
from tests.unit.agent.rescue.streams import (
    Bench,
    FakeClient,
    FakeUpstream,
    Script,
    asking,
    text_of,
    whole,
)

from gatemesh_agent.after import After
from gatemesh_agent.cases import Bounds, Case
from gatemesh_agent.errors import InstanceSilentError, StreamBrokenError
from gatemesh_agent.guarded import Guard
from gatemesh_agent.moving import Moving, MovingTerms
from gatemesh_agent.rescue.budget import RescueBudget
from gatemesh_agent.routing import Router
from gatemesh_agent.shield import Guarding, Shield
from gatemesh_agent.wishes import Wishes

BUSY = b'{"error":{"message":"busy","type":"T","param":null,"code":503}}'
WRONG = b'{"error":{"message":"wrong","type":"T","param":null,"code":400}}'
DIED = b'{"error":{"message":"EngineCore encountered an issue.","code":500}}'
FINE = b'{"choices":[{"index":0,"message":{"content":"All is well."},"finish_reason":"stop"}]}'


class Whole(Script):
    """An answer that is not streamed."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        super().__init__(body, status=status)
        self.is_stream = False
        self.is_plain_json = True


def clean() -> Script:
    """Return a clean stream."""
    return Script(*whole("All", " is", " well."))


async def served(
    scripts: dict[str, list[Any]], *, stream: bool = True, guarding: Guarding = "rescue"
) -> tuple[FakeClient, list[str]]:
    """Return what a client got of engines asked in the order of their names, and who was asked."""
    bench = Bench(FakeUpstream({f"http://{name}": said for name, said in scripts.items()}))
    view = bench.router.view
    bench.router.view = view.__class__(
        view.version,
        view.timestamp,
        tuple(one for one in view.instances if one.instance_id in scripts),
    )
    for place, name in enumerate(sorted(scripts)):
        bench.router.in_flight[name] = place
    case: Case = bench.story(asking(stream=stream)).case
    case.tried.clear()
    await guard_of(bench, guarding).serve(case)
    client: Any = case.client
    return client, [url.removeprefix("http://") for url, *_ in bench.upstream.asked]


def guard_of(bench: Bench, guarding: Guarding) -> Guard:
    """Return the guard of a bench."""
    router: Router = bench.router
    moving = Moving(router, RescueBudget(9, 1.0), MovingTerms())
    return Guard(
        router=router,
        upstream=bench.upstream,  # type: ignore[arg-type]
        judging=bench.judging,
        reporter=bench.reporter,
        wishes=Wishes(4),
        after=After(lambda *_: None),
        watch=bench.watch,
        bounds=Bounds("p", 2, 10**6, 10**6, Shield(guarding)),
        moving=None if guarding == "observe" else moving,
        rescuer=bench.rescuer if guarding == "rescue" else None,
    )


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_an_error_of_the_engines_own_is_answered_elsewhere(status: int) -> None:
    """The client sees nothing of it."""
    client, asked = await served({"a": [Script(BUSY, status=status)], "b": [clean()]})
    assert (client.status, text_of(client.sent), asked) == (200, "All is well.", ["a", "b"])


@pytest.mark.parametrize("status", [400, 404, 422, 501])
async def test_what_is_the_clients_stays_the_clients(status: int) -> None:
    """Nobody else is asked."""
    client, asked = await served({"a": [Script(WRONG, status=status)], "b": [clean()]})
    assert (client.status, client.sent, asked) == (status, WRONG, ["a"])


@pytest.mark.parametrize(("error", "moves"), [(BUSY, True), (WRONG, False)])
async def test_a_stream_that_opens_with_an_error_is_judged_by_its_code(
    error: bytes,
    moves: bool,  # noqa: FBT001
) -> None:
    """Its status is 200 all the same."""
    stream = b"data: " + error.replace(b'{"error"', b'{"error"') + b"\n\ndata: [DONE]\n\n"
    client, asked = await served({"a": [Script(stream)], "b": [clean()]})
    assert asked == (["a", "b"] if moves else ["a"])
    assert client.sent == stream if not moves else b"error" not in client.sent


@pytest.mark.parametrize("end", [StreamBrokenError("broke off"), None])
async def test_an_opening_error_in_two_pieces_reaches_its_client_whole(
    end: StreamBrokenError | None,
) -> None:
    """Though the connection breaks behind it, or is kept open."""
    error = b"data: " + WRONG + b"\n\n"
    pieces = [error[:20], error[20:], end]
    client, asked = await served({"a": [Script(*pieces)], "b": [clean()]})
    assert asked == ["a"]
    assert client.sent.startswith(error)


async def test_where_nobody_answers_the_first_error_is_the_clients() -> None:
    """Byte by byte, with the instance that gave it."""
    scripts = {name: [Script(name.encode() + BUSY, status=500)] for name in "abc"}
    client, asked = await served(scripts)
    assert (client.status, client.instance_id, client.sent) == (500, "a", b"a" + BUSY)
    assert asked == ["a", "b", "c"]


async def test_observing_shows_what_there_is() -> None:
    """As it comes."""
    client, asked = await served(
        {"a": [Whole(BUSY, 503)], "b": [Whole(FINE)]}, stream=False, guarding="observe"
    )
    assert (client.status, client.sent, asked) == (503, BUSY, ["a"])


@pytest.mark.parametrize("guarding", ["shield", "rescue"])
@pytest.mark.parametrize("torn", [b'{"choices":[{"mess', b"{}", FINE.replace(b'"stop"', b"null")])
async def test_a_whole_answer_that_is_torn_is_asked_elsewhere(
    guarding: Guarding, torn: bytes
) -> None:
    """Where there is nobody else it passes as it is."""
    client, _ = await served(
        {"a": [Whole(torn)], "b": [Whole(FINE)]}, stream=False, guarding=guarding
    )
    assert json.loads(client.sent) == json.loads(FINE)
    client, _ = await served({"a": [Whole(torn)]}, stream=False, guarding=guarding)
    assert (client.status, client.sent) == (200, torn)


async def test_silence_is_answered_elsewhere() -> None:
    """One that nobody breaks is told."""
    client, asked = await served(
        {"a": [InstanceSilentError(300.0)], "b": [Whole(FINE)]}, stream=False
    )
    assert (client.status, asked) == (200, ["a", "b"])
    client, _ = await served({"a": [InstanceSilentError(300.0)]}, stream=False)
    assert client.status == 504


@pytest.mark.parametrize("guarding", ["shield", "rescue"])
async def test_two_deaths_end_a_requests_journey(guarding: Guarding) -> None:
    """It may be what kills engines."""
    scripts: dict[str, list[Any]] = {name: [Whole(DIED, 500)] for name in "ab"}
    client, asked = await served({**scripts, "c": [Whole(FINE)]}, stream=False, guarding=guarding)
    assert (client.status, client.sent, asked) == (500, DIED, ["a", "b"])


async def test_a_stream_that_ends_before_it_begins_is_answered_elsewhere() -> None:
    """An end without an answer is none."""
    client, asked = await served({"a": [Script()], "b": [clean()]}, guarding="shield")
    assert (text_of(client.sent), asked) == ("All is well.", ["a", "b"])
