"""Captures are taken beside the traffic, by the terms in force."""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from gatemesh_agent.capture_taking import MOST_WAITING, MOST_WAITING_BYTES, Captures
from gatemesh_agent.capturing import Place
from gatemesh_agent.judging import Judging
from gatemesh_agent.labels import labels_of
from gatemesh_agent.metrics import CAPTURES_DROPPED
from gatemesh_agent.reporting import Life, Reporter
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.telemetry import Telemetry
from gatemesh_agent.traffic import Exchange
from gatemesh_common.captures import Capture, CaptureTerms
from gatemesh_common.messages import Verdict

from .test_capturing import REQUEST
from .test_judging import NOON, REFUSAL, event, exchange

TERMS = CaptureTerms(timestamp=NOON, pool="p", per_reason_per_min=600.0, per_min=6000.0)


class Desk:
    """Judges answers, and keeps what is taken of their faults."""

    def __init__(self, put: Callable[[Capture], None] | None = None) -> None:
        self.taken: list[Capture] = []
        self.verdicts: list[Verdict] = []
        self.captures = Captures(
            place=Place("agent-0", "p"),
            labels=labels_of({"host": "h1", "engine-0.gpu": "7", "engine-1.gpu": "8"}),
            put=put or self.taken.append,
            version_of=self.version_of,
            rng=Random(1),
        )
        self.captures.use(TERMS)
        reporter = Reporter(
            "agent-0", "p", Telemetry("agent-0", "p", NOON), self.keep, lambda: NOON
        )
        self.judging = Judging(reporter, lambda: NOON, lambda _model: None)
        self.judging.captures = self.captures.open

    def keep(self, message: object) -> None:
        """Keep a verdict."""
        assert isinstance(message, Verdict)
        self.verdicts.append(message)

    async def version_of(self, life: Life) -> str | None:
        """Say it."""
        return f"{life.instance_id}@1"

    def answer(self, *texts: str) -> None:
        """Judge a streamed answer whose last step is no number."""
        self._answer(exchange(), *texts)

    def answer_to(self, large: str) -> None:
        """Judge such an answer to a large request."""
        asked = understand(Route.CHAT, json.dumps({"model": "m", "user": large}).encode())
        small = exchange()
        self._answer(replace(small, request=replace(small.request, asked=asked)), "Hi")

    def _answer(self, one: Exchange, *texts: str) -> None:
        with self.judging.begin(one) as judge:
            for text in texts:
                judge.take_event(event(text))
            judge.take_event(event("!", logprob=None))


async def test_a_fault_is_captured_with_its_place() -> None:
    """The verdict's own id, and the labels of the instance."""
    desk = Desk()
    desk.answer("Hello", " there")
    await desk.captures.make_all()
    [taken] = desk.taken
    assert taken.verdict_id == desk.verdicts[0].message_id
    assert (taken.engine_version, taken.labels) == ("engine-0@1", {"host": "h1", "gpu": "7"})
    assert [(one.n, one.logprob, one.fault) for one in taken.steps] == [
        (0, -0.5, False),
        (1, -0.5, False),
        (2, None, True),
    ]
    assert taken.gates["L3"]["tokens"] == 3
    assert taken.texts is None


async def test_a_nan_refusal_is_captured_without_steps() -> None:
    """What was asked, of whom, is evidence too."""
    desk = Desk()
    desk.judging.take_refusal(400, REFUSAL, exchange(streamed=False))
    await desk.captures.make_all()
    assert (desk.taken[0].reason, desk.taken[0].steps) == ("nan_logits", ())


async def test_terms_are_followed_from_then_on() -> None:
    """The next answer already."""
    desk = Desk()
    desk.captures.use(TERMS.model_copy(update={"text": "full"}))
    desk.answer("Mail ", "bob@example.org now")
    await desk.captures.make_all()
    texts = desk.taken[0].texts
    assert texts is not None
    assert texts.answer == "Mail [email] [edge]"


async def test_the_same_terms_again_change_nothing() -> None:
    """They come every few seconds, and a rate must go on."""
    desk = Desk()
    few = TERMS.model_copy(update={"per_min": 1.0})
    for n in range(3):
        desk.captures.use(few.model_copy(update={"message_id": f"m{n}"}))
        desk.answer("a")
    await desk.captures.make_all()
    assert len(desk.taken) == 1


async def test_what_waits_is_bounded() -> None:
    """Redaction may be slow."""
    desk = Desk()
    before = CAPTURES_DROPPED.labels(why="waiting")._value.get()
    for _ in range(MOST_WAITING + 3):
        desk.answer("a")
    assert CAPTURES_DROPPED.labels(why="waiting")._value.get() == before + 3
    await desk.captures.make_all()
    assert len(desk.taken) == MOST_WAITING


async def test_what_waits_is_bounded_in_bytes_too() -> None:
    """Fifty requests may be of sixteen megabytes each; the newest evidence stays."""
    desk = Desk()
    desk.captures.use(TERMS.model_copy(update={"text": "full"}))
    before = CAPTURES_DROPPED.labels(why="waiting")._value.get()
    large = "x" * (MOST_WAITING_BYTES // 5)
    for _ in range(4):
        desk.answer_to(large)
    await desk.captures.make_all()
    # Each is kept as it came and as it was read: two have room.
    assert CAPTURES_DROPPED.labels(why="waiting")._value.get() == before + 2
    assert len(desk.taken) == 2
    desk.answer_to(large)
    await desk.captures.make_all()
    assert len(desk.taken) == 3


async def test_no_text_of_what_cannot_travel_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Only which field it was."""

    def refuse(capture: Capture) -> None:
        Capture.model_validate(capture.model_dump() | {"model": "secret" * 100})

    desk = Desk(refuse)
    desk.answer("secret")
    with caplog.at_level(logging.DEBUG):
        await desk.captures.make_all()
    assert "capture_refused" in caplog.messages
    assert "secret" not in " ".join(str(record.__dict__) for record in caplog.records)
    assert b"alice" in REQUEST
