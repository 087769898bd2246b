"""Judges answers choice by choice while they come in; a proven failure is reported at once."""

from collections.abc import Callable, Iterable
from datetime import datetime
from time import perf_counter
from types import TracebackType
from typing import Any, Protocol, Self

from gatemesh_agent.attribution import Accusation
from gatemesh_agent.baselines import Baselines
from gatemesh_agent.collected import Collected, Report
from gatemesh_agent.dialects import READERS, Reader, read_choices
from gatemesh_agent.gates.chain import GateChain, GateKey
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.drift import PoolDrift, WitnessDrift
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.l2_perplexity import Usual
from gatemesh_agent.gates.l3_distribution import Follower
from gatemesh_agent.gates.plugged import Plugs
from gatemesh_agent.gates.pool_baseline import NO_BASELINE, PoolBaseline
from gatemesh_agent.gates.refusal import is_nan_refusal
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.measured import UNMEASURED, Measured
from gatemesh_agent.metrics import GATE_SECONDS
from gatemesh_agent.reading import CallParts, Part, Reading
from gatemesh_agent.recent import MOST_EVENT_BYTES, Evidence, Running
from gatemesh_agent.reporting import Reporter
from gatemesh_agent.requests import Asked
from gatemesh_agent.traffic import Exchange, TrafficReport
from gatemesh_agent.transcript import Transcript
from gatemesh_common.clock import Clock
from gatemesh_common.gates import CUT_BY_LIMIT
from gatemesh_common.messages import CheckLevel, Outcome, Reason, Verdict

MOST_CHOICES = 1024

NAN_REFUSAL = Judgement(CheckLevel.L3, Outcome.FAILED, Reason.NAN_LOGITS, hard=True)


class Chain(Protocol):
    """The gates of one choice."""

    @property
    def keys(self) -> tuple[GateKey, ...]:
        """The gates that conclude."""

    @property
    def usual(self) -> Usual | None:
        """The figures of a whole choice that L2 holds nothing against."""

    @property
    def suspicion(self) -> float:
        """How far the text is on its way to a loop."""

    def observe(self, follower: Follower) -> None:
        """Show each step as it was measured."""

    @property
    def running(self) -> Running:
        """Figures of each gate as they stand."""

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


class Listener(Protocol):
    """Follows an answer as it is judged."""

    def follower(self, choice: int) -> Follower:
        """Return what is shown each step of a choice."""

    def hear(self, part: Part, suspicion: float) -> None:
        """Take in what an event says of a choice, once it is judged."""


class ChoiceJudge:
    """Follows one choice of one answer; concludes once for each gate."""

    def __init__(
        self,
        index: int,
        chain: Chain,
        report: Report,
        clock: Clock,
        transcript: Transcript | None = None,
    ) -> None:
        self._transcript = transcript
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
        if self._transcript is not None:
            self._transcript.take(reading)
        if reading.calls:
            self._calls.add(reading.calls)
        # Nearly nothing that is fed proves anything.
        if reading.text and (proven := self._chain.feed_text(reading.text)):
            self._take(proven)
        if reading.steps and (proven := self._chain.feed_steps(reading.steps)):
            self._take(proven)

    @property
    def suspicion(self) -> float:
        """How far the text is on its way to a loop."""
        return self._chain.suspicion

    def resume(self, text: str) -> None:
        """Go on behind a text that was judged before: what is wrong with it is another's."""
        for judgement in self._chain.feed_text(text):
            self._open.discard((judgement.gate, judgement.name))

    def finish(self, reason: str | None) -> None:
        """Conclude every gate; `None` says that the answer was cut short."""
        if self._transcript is not None and reason is not None:
            self._transcript.end(reason, self._calls)
            self._transcript.suspicion = self._chain.suspicion
        if self._open:
            whole = reason if self._calls.complete else None
            # Calls that the token limit cut off are torn without being damaged.
            calls = self._calls.calls() if reason != CUT_BY_LIMIT else []
            self._take(self._chain.finish(whole, calls, other_output=self._other_output))
            self._open.clear()
            usual = self._chain.usual
            if usual is not None:
                self._report.add_usual(usual)

    def object(self, judgement: Judgement) -> None:
        """Conclude the gate that it is about, unless that has failed already."""
        self._take([judgement])

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
        read: Reader = read_choices,
        *,
        evidence: Evidence | None = None,
    ) -> None:
        self._evidence = evidence
        if evidence is not None:
            evidence.read = lambda fields: read(fields, top_logprobs)
        self._open_chain = open_chain
        self._read = read
        self._report = report
        self._clock = clock
        self._top_logprobs = top_logprobs
        self._choices: dict[int, ChoiceJudge] = {}
        self.given_up = False
        """True when the answer passes unjudged from some place on."""
        self.progress = 0
        """Grows with each event that brings the answer on."""
        self.first = Transcript()
        """What the first choice said."""
        self.ended: Callable[[], None] = nobody
        """Called when the answer has ended and all gates have concluded."""
        self.spent: Callable[[float], object] = forgotten
        """Told at the end how many seconds reading and judging took."""
        self._spent_s = 0.0
        self.listener: Listener | None = None
        """Follows the answer, where somebody does."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def take_event(self, fields: dict[str, Any], raw: bytes | None = None) -> None:
        """Judge one streamed event, `raw` as it came, or a whole answer: both carry choices."""
        if self.given_up:
            return
        begun_s = perf_counter()
        if self._evidence is not None:
            self._evidence.keep(fields if raw is None else kept(raw))
        for part in self._read(fields, self._top_logprobs):
            self.progress += 1
            self._take_part(part)
        self._spent_s += perf_counter() - begun_s

    def take_part(self, part: Part, raw: bytes) -> None:
        """Judge what was read of a streamed event, `raw` as it came."""
        if self.given_up:
            return
        begun_s = perf_counter()
        if self._evidence is not None:
            self._evidence.keep(kept(raw))
        self.progress += 1
        self._take_part(part)
        self._spent_s += perf_counter() - begun_s

    def resume(self, text: str) -> None:
        """Go on with the first choice behind a text that another instance wrote."""
        self._judge(0).resume(text)

    def object(self, judgement: Judgement) -> None:
        """Hold something against the first choice that no gate sees."""
        self._judge(0).object(judgement)

    @property
    def failures(self) -> list[Judgement]:
        """What the gates hold against the answer so far."""
        return self._report.failures

    @property
    def judged(self) -> frozenset[CheckLevel]:
        """The gates that did not skip it."""
        return frozenset(self._report.judged)

    @property
    def flagged(self) -> list[Judgement]:
        """What plugged-in gates hold against the answer so far."""
        return self._report.flagged

    def give_up(self, why: str) -> None:
        """Judge no further; what is not concluded is skipped for this reason."""
        if self.given_up:
            return
        self.given_up = True
        if not self._choices:
            self._judge(0)
        for judge in self._choices.values():
            judge.give_up(why)

    def end(self) -> None:
        """Conclude what has no finish reason: the answer was cut short."""
        begun_s = perf_counter()
        for judge in self._choices.values():
            judge.finish(None)
        self.spent(self._spent_s + perf_counter() - begun_s)
        if self._evidence is not None:
            self._evidence.end()
        self.ended()
        # It knows this judge, too: both would stay until the collector looks for cycles.
        self.listener = None

    def _take_part(self, part: Part) -> None:
        judge = self._choices.get(part.choice)
        if judge is None:
            if len(self._choices) >= MOST_CHOICES:
                return
            judge = self._judge(part.choice)
        judge.feed(part.reading)
        if part.finish_reason is not None:
            judge.finish(part.finish_reason)
        if self.listener is not None:
            self.listener.hear(part, judge.suspicion)

    def _judge(self, index: int) -> ChoiceJudge:
        judge = self._choices.get(index)
        if judge is None:
            judge = self._choices[index] = self._new(index)
        return judge

    def _new(self, index: int) -> ChoiceJudge:
        chain, transcript = self._open_chain(), None if index else self.first
        if self._evidence is not None:
            transcript = transcript or Transcript()
            self._evidence.follow(index, transcript, lambda: chain.running)
        if self.listener is not None:
            chain.observe(self.listener.follower(index))
        return ChoiceJudge(index, chain, self._report, self._clock, transcript)


class Watcher(Protocol):
    """Learns of an engine beside its answers."""

    def watch(self, exchange: Exchange, report: Report) -> "tuple[Report, Callable[[], None]]":
        """Return where judgements go instead, and what is to be called at the answer's end."""


class Judging:
    """Opens a judge for each answer."""

    def __init__(
        self,
        reporter: Reporter,
        clock: Clock,
        vocab_size: Callable[[str], int | None],
        plugs: Plugs | None = None,
        baselines: Baselines | None = None,
    ) -> None:
        self._plugs = plugs
        self._baselines = baselines
        self._drift = PoolDrift()
        self._reporter = reporter
        self._clock = clock
        self._vocab_size = vocab_size
        self.accuse: Callable[[Accusation], None] = report_at_once(reporter)
        """Where failures of clients' answers go."""
        self.watcher: Watcher | None = None
        """Told of each client's answer that is about to be judged."""
        self.captures: Callable[[Exchange], Evidence] | None = None
        """Opens what captures of an answer's faults are made of."""

    def begin(self, exchange: Exchange) -> AnswerJudge:
        """Return the judge of an answer to a client."""
        evidence = None if self.captures is None else self.captures(exchange)
        report: Report = TrafficReport(self._reporter, self.accuse, exchange, evidence)
        ended = nobody
        if self.watcher is not None:
            report, ended = self.watcher.watch(exchange, report)
        life, origin = exchange.life, exchange.request.origin
        measured = Measured(
            self._baseline(life.model_version),
            self._drift.of((life.instance_id, life.incarnation)),
            origin.prompt_fingerprint,
        )
        asked, wished = exchange.request.asked, exchange.wished
        judge = self._open(asked, report, wished, measured, self._plugs, evidence=evidence)
        judge.ended = ended
        judge.spent = GATE_SECONDS.observe
        return judge

    def failures_of(
        self, asked: Asked, fields: dict[str, Any], top_logprobs: int
    ) -> list[Judgement]:
        """Return what the gates hold against a whole answer."""
        return self.judged(asked, fields, top_logprobs).failures

    def judged(
        self,
        asked: Asked,
        fields: dict[str, Any],
        top_logprobs: int,
        accused: Verdict | None = None,
        witness: WitnessDrift | None = None,
    ) -> AnswerJudge:
        """Return the judge of a whole answer that is no client's; nothing of it is reported.

        Where it is a second answer to what an instance is accused of, L2 measures it, too, and
        `witness` notes how it leans; it never becomes part of any life's drift.
        """
        measured = UNMEASURED
        if accused is not None:
            measured = Measured(self._baseline(accused.model_version), witness)
        with self._open(asked, Collected(), top_logprobs, measured) as judge:
            judge.take_event(fields)
        return judge

    def _baseline(self, model_version: str | None) -> PoolBaseline:
        if self._baselines is None:
            return NO_BASELINE
        return self._baselines.baseline(model_version)

    def flags(self, asked: Asked) -> Judgement | None:
        """Return what a plugged-in gate holds against the request itself; None lets it pass."""
        if self._plugs is None:
            return None
        body = asked.body or {}
        return self._plugs.flags(body, context_of(body).prompt)

    def take_refusal(self, status: int, body: bytes, exchange: Exchange) -> bool:
        """Report and return True when the engine refused because its figures are NaN."""
        if not is_nan_refusal(status, body):
            return False
        details = {"tokens": 0, "status": status, **proof_of(self._clock())}
        evidence = None if self.captures is None else self.captures(exchange)
        report = TrafficReport(self._reporter, self.accuse, exchange, evidence)
        report.conclude(0, NAN_REFUSAL, details)
        if evidence is not None:
            evidence.end()
        return True

    def _open(
        self,
        asked: Asked,
        report: Report,
        top_logprobs: int,
        measured: Measured,
        plugs: Plugs | None = None,
        *,
        evidence: Evidence | None = None,
    ) -> AnswerJudge:
        body = asked.body or {}
        context = context_of(body)
        vocab_size = self._vocab_size(str(body.get("model", "")))
        wished = top_logprobs or asked.own_count
        return AnswerJudge(
            lambda: GateChain(
                context,
                vocab_size,
                baseline=measured.baseline,
                drift=measured.drift,
                fingerprint=measured.fingerprint,
                plugged=plugs.open(body, context.prompt) if plugs else None,
            ),
            report,
            self._clock,
            wished or None,
            READERS[asked.route],
            evidence=evidence,
        )


def kept(event: bytes) -> bytes:
    """Return what is kept of an event as evidence: nothing where it is too long."""
    return event if len(event) <= MOST_EVENT_BYTES else b""


def nobody() -> None:
    """Tell nobody."""


def forgotten(seconds: float) -> None:
    """Note no time."""


def report_at_once(reporter: Reporter) -> Callable[[Accusation], None]:
    """Return what reports each failure without a second opinion."""
    return lambda accusation: reporter.publish(accusation.verdict)
