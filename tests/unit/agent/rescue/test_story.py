"""What lies in an answer that nobody may go on with it."""

import pytest
from tests.unit.agent.rescue.streams import Bench, asking

from gatemesh_agent.requests import Route
from gatemesh_agent.rescue.kept import Kept
from gatemesh_agent.rescue.refusals import Refusal
from gatemesh_agent.rescue.story import SAID, Cause, Fault, Shown, Story, StreamFaultError


def shown(route: Route = Route.CHAT, **body: object) -> Story:
    """Return a story of which the client has seen a few words."""
    story = Bench().story(asking(route, **body))
    story.case.client.begun = True  # type: ignore[misc]
    story.shown = Shown(content=True)
    story.kept = Kept("a", (1,), 1)
    return story


def test_every_cause_is_worded() -> None:
    """Clients read it."""
    assert set(SAID) == set(Cause)


def test_a_few_words_are_gone_on_with() -> None:
    """Nothing forbids it."""
    assert shown().why_not() is None


@pytest.mark.parametrize(
    ("seen", "refusal"),
    [
        (Shown(content=True, calls=True), Refusal.TOOL_CALL),
        (Shown(content=True, reasoning=True, reasoned=True), Refusal.REASONING),
        (Shown(content=True, reasoned=True), None),
    ],
)
def test_calls_and_reasoning_under_way_are_not(seen: Shown, refusal: Refusal | None) -> None:
    """Behind whole reasoning an answer goes on by ids."""
    story = shown()
    story.shown = seen
    assert story.why_not() is refusal
    if refusal is None:
        story.kept = Kept("a", None, 1)
        assert story.why_not() is Refusal.REASONING


def test_what_is_not_kept_cannot_go_on() -> None:
    """It was too long."""
    story = shown()
    story.whole = False
    assert story.why_not() is Refusal.TOO_LONG


@pytest.mark.parametrize("route", list(Route))
def test_as_long_as_nothing_is_shown_anything_is_asked_anew(route: Route) -> None:
    """Once a client has got events, only where those say nothing that would be said twice."""
    story = Bench().story(asking(route, response_format={"type": "json_object"}))
    assert story.restarts
    assert story.why_not() is None
    story.case.client.begun = True  # type: ignore[misc]
    assert story.restarts == (route in (Route.CHAT, Route.COMPLETIONS))
    story.shown.content = True
    assert not story.restarts
    assert story.why_not() is not None


def test_engines_that_died_are_counted() -> None:
    """Those before the first token, too; a gate's objection is no death."""
    story = shown()
    story.case.deaths = 1
    story.faults = [Fault(Cause.GATE, "a"), Fault(Cause.DIED, "b"), Fault(Cause.BROKEN, "c")]
    assert story.deaths == 3
    assert StreamFaultError(story, story.faults[0]).story is story
