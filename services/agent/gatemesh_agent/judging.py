"""Judges answers choice by choice while they come in; a proven failure is reported at once."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, Self

from gatemesh_agent.gates.chain import GateChain, GateKey
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.refusal import is_nan_refusal
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.reading import CallParts, Reading, read_choice
from gatemesh_agent.reporting import Life, Origin, Reporter
from gatemesh_agent.requests import Asked
from gatemesh_agent.stripping import choices_of
from gatemesh_common.clock import Clock
from gatemesh_common.messages import CheckLevel, Outcome, Reason

MOST_CHOICES = 1024
CUT_BY_LIMIT = "length"

NAN_REFUSAL = Judgement(CheckLevel.L3, Outcome.FAILED, Reason.NAN_LOGITS, hard=True)


class Chain(Protocol):
    """The gates of one choice."""

    @property
    def keys(self) -> tuple[GateKey, ...]:
        """The gates that conclude."""

    def feed_text(self, delta: str) -> Iterable[Judgement]:
        """Take text; return the failures that it proves."""

    def feed_steps(self, steps: Iterable[TokenStep]) -> Iterable[Judgement]:
        """Take steps, after their text; return the failures that they prove."""

    def finish(
        self,
        finish_reason: str | None,
        tool_calls: Any = (),
        *,
        other_output: bool = False,
    ) -> Iterable[Judgement]:
        """Return one judgement of each gate, earlier failures among them."""


class Report(Protocol):
    """Where judgements go."""

    def conclude(self, choice: int, judgement: Judgement, details: Mapping[str, Any]) -> None:
        """Take in what a gate concluded."""

    def skip(self, level: CheckLevel, why: str) -> None:
        """Take in that a gate could not judge for a reason of the agent's own."""

    def count_tokens(self, count: int) -> None:
        """Take in that the engine made progress."""


class ChoiceJudge:
    """Follows one choice of one answer; concludes once for each gate."""

    def __init__(self, index: int, chain: Chain, report: Report, clock: Clock) -> None:
        self._index = index
        self._chain = chain
        self._report = report
        self._clock = clock
        self._open = set(chain.keys)
        self._calls = CallParts()
        self._other_output = False
        self._tokens = 0

    def feed(self, reading: Reading) -> None:
        """Take in what one event or answer holds of this choice."""
        count = len(reading.steps) or bool(reading.text)
        self._tokens += count
        self._report.count_tokens(count)
        self._other_output |= reading.other_output or bool(reading.calls)
        if reading.calls:
            self._calls.add(reading.calls)
        if reading.text:
            self._take(self._chain.feed_text(reading.text))
        if reading.steps:
            self._take(self._chain.feed_steps(reading.steps))

    def finish(self, reason: str | None) -> None:
        """Conclude every gate; `None` says that the answer was cut short."""
        if self._open:
            whole = reason if self._calls.complete else None
            # Calls that the token limit cut off are torn without being damaged.
            calls = self._calls.calls() if reason != CUT_BY_LIMIT else []
            self._take(self._chain.finish(whole, calls, other_output=self._other_output))
            self._open.clear()

    def give_up(self, why: str) -> None:
        """Skip what is not concluded, for a reason of the agent's own."""
        for level, _ in sorted(self._open):
            self._report.skip(level, why)
        self._open.clear()

    def _take(self, judgements: Iterable[Judgement]) -> None:
        for judgement in judgements:
            key = (judgement.gate, judgement.name)
            if key in self._open:
                self._open.discard(key)
                failed = judgement.outcome is Outcome.FAILED
                details = self._details(judgement) if failed else {}
                self._report.conclude(self._index, judgement, details)

    def _details(self, judgement: Judgement) -> dict[str, Any]:
        now = self._clock()
        named = {"gate": judgement.name} if judgement.name else {}
        proof = proof_of(now) if judgement.hard else {}
        return {"tokens": self._tokens, **named, **judgement.details, **proof}


def proof_of(now: datetime) -> dict[str, str]:
    """Return when the agent read the token that proves a fault."""
    return {"first_bad_token_at": now.isoformat()}


class AnswerJudge:
    """Judges every choice of one answer; as a context manager it concludes at the end."""

    def __init__(
        self,
        open_chain: Callable[[], Chain],
        report: Report,
        clock: Clock,
        top_logprobs: int | None = None,
    ) -> None:
        self._open_chain = open_chain
        self._report = report
        self._clock = clock
        self._top_logprobs = top_logprobs
        self._choices: dict[int, ChoiceJudge] = {}
        self._given_up = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def take_event(self, fields: dict[str, Any]) -> None:
        """Judge one streamed event, or a whole answer: both carry choices."""
        if self._given_up:
            return
        for choice in choices_of(fields):
            self._take_choice(choice)

    def give_up(self, why: str) -> None:
        """Judge no further; what is not concluded is skipped for this reason."""
        if self._given_up:
            return
        self._given_up = True
        if not self._choices:
            self._choices[0] = self._new(0)
        for judge in self._choices.values():
            judge.give_up(why)

    def end(self) -> None:
        """Conclude what has no finish reason: the answer was cut short."""
        for judge in self._choices.values():
            judge.finish(None)

    def _take_choice(self, choice: dict[str, Any]) -> None:
        index = choice.get("index", 0)
        if not isinstance(index, int) or index < 0:
            return
        judge = self._choices.get(index)
        if judge is None:
            if len(self._choices) >= MOST_CHOICES:
                return
            judge = self._choices[index] = self._new(index)
        judge.feed(read_choice(choice, self._top_logprobs))
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            judge.finish(reason)

    def _new(self, index: int) -> ChoiceJudge:
        return ChoiceJudge(index, self._open_chain(), self._report, self._clock)


class TrafficReport:
    """Reports what is concluded about one client's answer."""

    def __init__(self, reporter: Reporter, origin: Origin, life: Life, *, streamed: bool) -> None:
        self._reporter = reporter
        self._origin = origin
        self._life = life
        self._streamed = streamed

    def conclude(self, choice: int, judgement: Judgement, details: Mapping[str, Any]) -> None:
        """Count it, and publish a failure."""
        told = {"stream": self._streamed, **details}
        self._reporter.conclude(judgement, choice, self._origin, self._life, told)

    def skip(self, level: CheckLevel, why: str) -> None:
        """Count it."""
        self._reporter.skip(level, why, self._life)

    def count_tokens(self, count: int) -> None:
        """Count them."""
        self._reporter.window(self._life).tokens += count


class Collected:
    """Keeps what is concluded about the answer to a probe."""

    def __init__(self) -> None:
        self.failures: list[Judgement] = []

    def conclude(self, choice: int, judgement: Judgement, details: Mapping[str, Any]) -> None:
        """Keep a failure."""
        if judgement.outcome is Outcome.FAILED:
            self.failures.append(judgement)

    def skip(self, level: CheckLevel, why: str) -> None:
        """A skip is no failure."""

    def count_tokens(self, count: int) -> None:
        """Probes are not traffic."""


class Judging:
    """Opens a judge for each answer."""

    def __init__(
        self, reporter: Reporter, clock: Clock, vocab_size: Callable[[str], int | None]
    ) -> None:
        self._reporter = reporter
        self._clock = clock
        self._vocab_size = vocab_size

    def begin(
        self, asked: Asked, origin: Origin, life: Life, top_logprobs: int, *, streamed: bool
    ) -> AnswerJudge:
        """Return the judge of an answer to a client."""
        report = TrafficReport(self._reporter, origin, life, streamed=streamed)
        return self._open(asked, report, top_logprobs)

    def failures_of(
        self, asked: Asked, fields: dict[str, Any], top_logprobs: int
    ) -> list[Judgement]:
        """Return what the gates hold against a whole answer."""
        collected = Collected()
        with self._open(asked, collected, top_logprobs) as judge:
            judge.take_event(fields)
        return collected.failures

    def take_refusal(self, status: int, body: bytes, origin: Origin, life: Life) -> bool:
        """Report and return True when the engine refused because its figures are NaN."""
        if not is_nan_refusal(status, body):
            return False
        details = {"stream": False, "tokens": 0, "status": status, **proof_of(self._clock())}
        self._reporter.conclude(NAN_REFUSAL, 0, origin, life, details)
        return True

    def _open(self, asked: Asked, report: Report, top_logprobs: int) -> AnswerJudge:
        body = asked.body or {}
        context = context_of(body)
        vocab_size = self._vocab_size(str(body.get("model", "")))
        wished = top_logprobs or asked.own_count
        return AnswerJudge(
            lambda: GateChain(context, vocab_size), report, self._clock, wished or None
        )
