"""A part of a stream is forwarded as it comes, and left when it does not go on."""

from typing import Any

import pytest
from tests.unit.agent.rescue.streams import (
    Bench,
    FakeUpstream,
    Script,
    asking,
    bare,
    broken,
    event,
    opening,
    spoken,
    text_of,
    whole,
    words,
)

from gatemesh_agent.requests import Asked
from gatemesh_agent.rescue.hold import HoldBounds
from gatemesh_agent.rescue.story import Cause, StreamFaultError
from gatemesh_agent.routing import PoolView
from gatemesh_agent.sse import DONE
from gatemesh_common.messages import InstanceState


async def run(bench: Bench, script: Script, asked: Asked | None = None) -> tuple[Any, Cause | None]:
    """Return the client of a stream, and why it left its instance."""
    story = bench.story(asked)
    try:
        first = await script.first()
        attempt = bench.attempt(story)
        await bench.runner.run(story, attempt, script, first)  # type: ignore[arg-type]
    except StreamFaultError as error:
        return story.case.client, error.fault.cause
    return story.case.client, None


async def test_a_clean_stream_is_what_the_engine_sent() -> None:
    """And is handed to those who read answers afterwards."""
    bench, pieces = Bench(), whole("The", " sea", " is", " wide", ".")
    client, cause = await run(bench, Script(*pieces))
    assert (client.sent, cause, client.ended) == (bare(b"".join(pieces)), None, True)
    [answered] = bench.answered
    assert answered.first.text == "The sea is wide."


async def test_a_broken_stream_is_left() -> None:
    """With what came before."""
    client, cause = await run(Bench(), Script(opening(), words("The"), broken()))
    assert (text_of(client.sent), cause, client.ended) == ("The", Cause.BROKEN, False)


async def test_one_that_broke_behind_its_end_is_ended() -> None:
    """Nothing is missing but the mark."""
    client, cause = await run(Bench(), Script(event("All.", finish="stop"), broken()))
    assert (cause, client.sent.endswith(DONE), client.ended) == (None, True, True)


async def test_what_is_held_goes_on_when_its_time_is_up() -> None:
    """Though nothing more comes."""
    bench = Bench(hold=HoldBounds(48, 0.0))
    script = Script(words("The") + event("!!!!", number=3), None, broken())
    client, _ = await run(bench, script)
    assert text_of(client.sent) == "The!!!!"


@pytest.mark.parametrize(("stall_s", "cause"), [(0.0, Cause.STALLED), (9.0, Cause.BROKEN)])
async def test_a_stream_without_progress_is_left(stall_s: float, cause: Cause) -> None:
    """After a time, if somebody else can go on."""
    bench = Bench(stall_s=stall_s)
    _, left = await run(bench, Script(words("The"), None, None, broken()))
    assert left is cause


async def test_a_stream_for_which_the_budget_has_no_room_stays_where_it_is() -> None:
    """It may go on by itself; leaving would only end it."""
    script = Script(words("The"), None, event(".", finish="stop"), DONE)
    bench = Bench(stall_s=0.0, per_minute=0)
    client, cause = await run(bench, script)
    assert (text_of(client.sent), cause) == ("The.", None)


@pytest.mark.parametrize(("hidden", "cause"), [(False, None), (True, Cause.STALLED)])
async def test_reasoning_that_is_not_shown_is_no_standstill(
    *,
    hidden: bool,
    cause: Cause | None,
) -> None:
    """Before anything shows the engine may be thinking."""
    asked = asking(include_reasoning=hidden)
    script = Script(opening(), None, None, words("The"), event(".", finish="stop"), DONE)
    assert (await run(Bench(first_s=0.0), script, asked))[1] is cause


async def test_an_instance_that_is_ejected_is_left() -> None:
    """With its next event, or its silence."""
    bench = Bench()
    view = bench.router.view
    out = tuple(
        one.model_copy(update={"state": InstanceState.EJECTED, "in_rotation": False})
        if one.instance_id == "a"
        else one
        for one in view.instances
    )
    bench.router.view = PoolView(1, view.timestamp, out)
    client, cause = await run(bench, Script(words("The"), words(" sea"), broken()))
    assert (text_of(client.sent), cause) == ("The", Cause.EJECTED)


async def test_nobody_leaves_where_there_is_nobody_to_go_to() -> None:
    """Better late than never."""
    bench = Bench(stall_s=0.0)
    [only] = [one for one in bench.router.view.instances if one.instance_id == "a"]
    bench.router.view = PoolView(instances=(only,))
    _, cause = await run(bench, Script(words("The"), None, event(".", finish="stop"), DONE))
    assert cause is None


@pytest.mark.parametrize("ended", [False, True])
async def test_silence_ends_a_stream_that_nobody_could_go_on_with(ended: bool) -> None:  # noqa: FBT001
    """A client is not kept waiting until its whole deadline; an answer that has ended is whole."""
    bench = Bench(idle_s=0.0, stall_s=0.0)
    bench.runner.may_move = lambda _story: False
    said = spoken("The", finish="stop") if ended else words("The")
    client, cause = await run(bench, Script(said, None, None, broken()))
    assert (text_of(client.sent), cause) == ("The", None if ended else Cause.BROKEN)
    assert client.sent.endswith(DONE) == ended


async def test_a_stream_that_breaks_behind_its_end_ends_once() -> None:
    """The client has all of it."""
    client, cause = await run(Bench(), Script(spoken("The", finish="stop") + DONE, broken()))
    assert cause is None
    assert client.sent.count(DONE) == 1


async def test_a_choice_that_never_began_is_missing() -> None:
    """One that has ended is not the whole answer."""
    script = Script(spoken("The", finish="stop"), broken())
    _, cause = await run(Bench(), script, asking(n=2, temperature=1))
    assert cause is Cause.BROKEN


async def test_a_request_has_its_deadline() -> None:
    """Whoever writes."""
    client, cause = await run(Bench(total_s=0.0), Script(words("The"), words(" sea")))
    assert (text_of(client.sent), cause) == ("The", Cause.STALLED)


async def test_a_part_that_goes_on_is_judged_with_what_was_said() -> None:
    """An end right behind it is not an empty answer."""
    upstream = FakeUpstream(
        {f"http://{one}": [Script(spoken("", finish="stop") + DONE)] for one in "bc"}
    )
    bench = Bench(upstream)
    script = Script(words("All", " is", " well", "."), broken())
    client = await bench.serve(script, bench.story())
    assert (text_of(client.sent), bench.verdicts) == ("All is well.", [])
