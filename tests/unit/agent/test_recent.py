"""Windows hold what stood around a fault, and never more."""

import json
from typing import Any

import pytest

from gatemesh_agent.dialects import read_choices
from gatemesh_agent.recent import AFTER, BEFORE, Event, Evidence, Reach, Window, fields_of
from gatemesh_agent.transcript import Transcript
from gatemesh_common.messages import Verdict

from .test_judging import NOON, event


def verdict(choice: int = 0, **more: Any) -> Verdict:
    """Return a failure."""
    fields = {"timestamp": NOON, "instance_id": "engine-0", "request_id": "r", "check_level": "L1"}
    return Verdict.model_validate(fields | {"choice": choice} | more)


class Answer:
    """An answer that is read, and followed for captures."""

    def __init__(self, *, until_end: bool = False, wants: bool = True) -> None:
        self.closed: list[Window] = []
        self.evidence = Evidence(
            lambda _verdict: wants,
            lambda window, _transcript: self.closed.append(window),
            until_end=until_end,
        )
        self.evidence.read = lambda fields: read_choices(fields, None)
        self.transcripts = {n: Transcript() for n in range(2)}
        for n, transcript in self.transcripts.items():
            self.evidence.follow(n, transcript, lambda: {"L1": {"suspicion": 0.5}})

    def say(self, text: str, choice: int = 0) -> None:
        """Bring one event, as the agent does."""
        fields = event(text, choice)
        self.evidence.keep(b"data: " + json.dumps(fields).encode() + b"\n\n")
        for part in read_choices(fields, None):
            self.transcripts[part.choice].take(part.reading)

    def say_all(self, count: int, begin: int = 0) -> None:
        """Bring so many numbered events."""
        for n in range(begin, begin + count):
            self.say(f"{n},")


def said(window: Window) -> str:
    """Return the text of a window."""
    return "".join(reading.text for reading in window.readings())


def test_a_window_is_what_came_before_and_after() -> None:
    """So many events of each, and where they stand in the answer."""
    answer = Answer()
    answer.say_all(100)
    answer.evidence.hold(verdict())
    answer.say_all(AFTER, 100)
    assert not answer.closed
    answer.say("later,")
    [window] = answer.closed
    assert said(window) == "".join(f"{n}," for n in range(100 - BEFORE, 100 + AFTER))
    before = 100 - BEFORE
    assert window.first() == Reach(before, before, sum(len(f"{n},") for n in range(before)))
    assert window.seen.steps == 100 + AFTER
    assert window.running == {"L1": {"suspicion": 0.5}}


def test_two_faults_have_a_window_each() -> None:
    """The second may begin while the first still grows."""
    answer = Answer()
    answer.say_all(10)
    answer.evidence.hold(verdict(reason="repetition"))
    answer.say_all(5, 10)
    answer.evidence.hold(verdict(reason="flat_distribution"))
    answer.say_all(40, 15)
    assert [len(window.readings()) for window in answer.closed] == [10 + AFTER, 15 + AFTER]
    assert answer.evidence.keep.__name__ == "append"


def test_the_end_closes_what_is_open() -> None:
    """And what is held after it is whole at once, as when figures come late."""
    answer = Answer()
    answer.say("a")
    answer.evidence.hold(verdict())
    answer.evidence.end()
    answer.evidence.hold(verdict())
    assert [said(window) for window in answer.closed] == ["a", "a"]


def test_where_the_whole_answer_is_wanted_the_end_is_waited_for() -> None:
    """The window stays as wide as ever."""
    answer = Answer(until_end=True)
    answer.say("a")
    answer.evidence.hold(verdict())
    answer.say_all(40)
    assert not answer.closed
    answer.evidence.end()
    assert len(answer.closed[0].readings()) == 1 + AFTER


def test_each_choice_has_its_own_window() -> None:
    """Others stand in the same stream."""
    answer = Answer()
    for n in range(6):
        answer.say(f"{n}", n % 2)
    answer.evidence.hold(verdict(choice=1))
    answer.evidence.end()
    assert said(answer.closed[0]) == "135"


def test_what_is_not_wanted_costs_nothing() -> None:
    """The ring goes on as before."""
    answer = Answer(wants=False)
    answer.say("a")
    answer.evidence.hold(verdict())
    answer.evidence.end()
    assert not answer.closed


def test_a_refusal_has_an_empty_window() -> None:
    """No choice was ever read."""
    closed: list[Window] = []
    evidence = Evidence(lambda _: True, lambda window, _: closed.append(window))
    evidence.hold(verdict())
    evidence.end()
    assert closed[0].readings() == []


@pytest.mark.parametrize("odd", [b"", b"data: [DONE]\n\n", b"data: {", b": ping\n\n", b"data: []"])
def test_an_event_that_is_none_says_nothing(odd: Event) -> None:
    """A window must not be what breaks."""
    assert fields_of(odd) == {}
