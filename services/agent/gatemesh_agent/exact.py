"""Joins the engine's exact figures to the answers they belong to; one L3 verdict comes of both."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from gatemesh_agent.collected import Report
from gatemesh_agent.exact_lines import ExactLine, lines_of, may_name, names_xargs
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.l2_perplexity import Usual
from gatemesh_agent.gates.l3_exact import ExactChoice, ExactGate
from gatemesh_agent.judging import nobody, proof_of
from gatemesh_agent.metrics import PLUGIN_LINES, PLUGIN_SILENT
from gatemesh_agent.reporting import Life
from gatemesh_agent.requests import Asked
from gatemesh_agent.traffic import Exchange
from gatemesh_agent.wishes import Wish
from gatemesh_common.clock import Clock
from gatemesh_common.messages import CheckLevel, Outcome, Reason

log = logging.getLogger(__name__)

NO_FIGURES = "no_figures"
MOST_LIVES = 1000
MOST_WATCHES = 10_000


class ExactReport:
    """Stands before a report: withholds what L3 makes of the log probabilities until all is in."""

    def __init__(self, inner: Report, gate: ExactGate, clock: Clock) -> None:
        self._inner = inner
        self._gate = gate
        self._clock = clock
        self._withheld: dict[int, Judgement] = {}
        self._skips: list[str] = []
        self._failed: set[int] = set()
        self._is_cut = False
        self.tokens = 0
        """Tokens of the answer so far."""
        self.failures = inner.failures
        self.judged = inner.judged
        self.flagged = inner.flagged

    def conclude(self, choice: int, judgement: Judgement, details: Mapping[str, Any]) -> None:
        """Pass it on, but for what L3 does not object to."""
        self._is_cut |= judgement.reason is Reason.CUT_SHORT
        if judgement.gate is not CheckLevel.L3:
            self._inner.conclude(choice, judgement, details)
        elif judgement.outcome is not Outcome.FAILED:
            self._withheld[choice] = judgement
            if judgement.outcome is Outcome.PASSED:
                # What others ask at the answer's end is whether the gate could judge.
                self.judged.add(CheckLevel.L3)
        elif choice not in self._failed:
            self._failed.add(choice)
            self._inner.conclude(choice, judgement, details)

    def skip(self, level: CheckLevel, why: str) -> None:
        """Pass it on, but for L3, which may know more by figures."""
        if level is CheckLevel.L3:
            self._skips.append(why)
        else:
            self._inner.skip(level, why)

    def count_tokens(self, count: int) -> None:
        """Pass it on."""
        self.tokens += count
        self._inner.count_tokens(count)

    def add_usual(self, usual: Usual) -> None:
        """Pass it on."""
        self._inner.add_usual(usual)

    def hear(self) -> None:
        """Report what the figures have proven, once."""
        found = self._gate.failure
        if found is not None and 0 not in self._failed:
            self._fail(found)

    def settle(self) -> None:
        """Conclude L3: nothing that came in proved a fault, or it is reported already."""
        found = self._gate.finish(whole=not self._is_cut)
        if found.outcome is Outcome.FAILED and 0 not in self._failed:
            self._fail(found)
        for choice, judgement in self._withheld.items():
            if choice not in self._failed:
                self._conclude_one(choice, judgement, found)
        for why in self._skips:
            if 0 not in self._failed:
                self._inner.skip(CheckLevel.L3, why)

    def _conclude_one(self, choice: int, judgement: Judgement, found: Judgement) -> None:
        """Take what the log probabilities said; where there were none, what the figures say."""
        if judgement.reason is not Reason.NO_LOGPROBS:
            self._inner.conclude(choice, judgement, {})
        elif self._gate.measured:
            self._inner.conclude(choice, found, {})
        else:
            self._inner.skip(CheckLevel.L3, NO_FIGURES)

    def _fail(self, found: Judgement) -> None:
        self._failed.add(0)
        proof = proof_of(self._clock()) if found.hard else {}
        details = {"tokens": self.tokens, "figures": "plugin", **found.details, **proof}
        self._inner.conclude(0, found, details)


def model_of(asked: Asked) -> str:
    """Return the model that a client asked for."""
    return str((asked.body or {}).get("model", ""))


@dataclass(slots=True)
class Watch:
    """One request that figures may come for, from before it is sent until after its answer."""

    asked: Asked
    gate: ExactGate | None = None
    """None until the first line, or the answer, is there."""
    report: ExactReport | None = None
    """None until the answer is being judged."""

    @property
    def body(self) -> Mapping[str, Any]:
        """What the client asked."""
        return self.asked.body or {}

    @property
    def model(self) -> str:
        """The model that the client asked for."""
        return model_of(self.asked)


@dataclass(frozen=True, slots=True)
class ExactTerms:
    """What joining figures needs of the world."""

    is_on: bool
    """False where no plugin's lines are received: requests carry no ids then."""
    new_id: Callable[[], str]
    later: Callable[[float, Callable[[], None]], object]
    """Runs something after that many seconds."""
    clock: Clock
    grace_s: float
    """Time after an answer's end in which lines still count."""


class Sizes(Protocol):
    """Knows vocabulary sizes."""

    def size(self, model: str) -> int | None:
        """Return the best that is known of a model."""

    def hear(self, model: str, size: int) -> None:
        """Take in the width of the logits that a plugin measured."""

    def learn(self, life: Life, model: str) -> None:
        """Have the engine asked, once for each life; returns at once."""


class ExactFigures:
    """Names requests for the engine's plugin, and brings its lines to their answers."""

    def __init__(self, terms: ExactTerms, sizes: Sizes) -> None:
        self._terms = terms
        self._sizes = sizes
        self._watches: OrderedDict[str, Watch] = OrderedDict()
        self._ending: dict[str, Life] = {}
        self._refusing: set[Hashable] = set()
        self._silent: set[Life] = set()

    def named(self, wish: Wish, asked: Asked, life: Hashable) -> Wish:
        """Return the wish with an id of its own for this request, where the engine takes one."""
        takes = self._terms.is_on and life not in self._refusing
        if not takes or asked.body is None or not may_name(asked.body):
            return wish
        probe_id = self._terms.new_id()
        self._watches[probe_id] = Watch(asked)
        if len(self._watches) > MOST_WATCHES:
            # Requests that failed, and second opinions, are never judged by figures.
            self._watches.popitem(last=False)
        return replace(wish, probe_id=probe_id)

    def lessened(self, wish: Wish, life: Hashable, error: bytes) -> Wish | None:
        """Return the wish without an id where an engine refused that; None when it minds else."""
        if not wish.probe_id or not names_xargs(error):
            return None
        if len(self._refusing) >= MOST_LIVES:
            self._refusing.clear()
        self._refusing.add(life)
        log.warning("probe_id_refused", extra={"life": str(life)})
        return replace(wish, probe_id="")

    def watch(self, exchange: Exchange, report: Report) -> tuple[Report, Callable[[], None]]:
        """Return a report that waits for figures, and what is to be called at the answer's end."""
        asked, probe_id = exchange.request.asked, exchange.probe_id
        self._sizes.learn(exchange.life, model_of(asked))
        if not probe_id:
            return report, nobody
        watch = self._watches.get(probe_id) or Watch(asked)
        self._watches[probe_id] = watch
        watch.report = ExactReport(report, self._gate(watch), self._terms.clock)
        # For an answer that is judged whole, figures were first.
        watch.report.hear()
        return watch.report, lambda: self._ended(probe_id, exchange.life)

    def take(self, packet: bytes) -> None:
        """Take a datagram of lines; lines about nobody here are counted and left."""
        for line in lines_of(packet):
            watch = self._watches.get(line.probe_id)
            PLUGIN_LINES.labels(known=watch is not None).inc()
            if watch is not None:
                self._take(watch, line)

    def _take(self, watch: Watch, line: ExactLine) -> None:
        figures, gate = line.figures, self._gate(watch)
        if isinstance(figures, ExactChoice):
            gate.feed_choice(figures)
        else:
            gate.feed_step(figures)
            if figures.vocab_size:
                self._sizes.hear(watch.model, figures.vocab_size)
        if watch.report is not None:
            watch.report.hear()

    def _gate(self, watch: Watch) -> ExactGate:
        if watch.gate is None:
            body = watch.body
            size, choices = self._sizes.size(watch.model), body.get("n") or 1
            watch.gate = ExactGate(context_of(body), size, choices=choices)
        return watch.gate

    @property
    def is_idle(self) -> bool:
        """True when no answer that has ended waits for its last lines."""
        return not self._ending

    def settle_all(self) -> None:
        """Conclude now what has ended and waits for its last lines."""
        for probe_id, life in list(self._ending.items()):
            self._settle(probe_id, life)

    def _ended(self, probe_id: str, life: Life) -> None:
        if probe_id in self._watches:
            self._ending[probe_id] = life
            self._terms.later(self._terms.grace_s, lambda: self._settle(probe_id, life))

    def _settle(self, probe_id: str, life: Life) -> None:
        self._ending.pop(probe_id, None)
        watch = self._watches.pop(probe_id, None)
        if watch is None or watch.report is None:
            return
        watch.report.settle()
        if watch.report.tokens and not self._gate(watch).measured:
            self._note_silence(life)

    def _note_silence(self, life: Life) -> None:
        """The engine has no plugin, or one that cannot reach us; only we can tell."""
        PLUGIN_SILENT.labels(instance_id=life.instance_id).inc()
        if life in self._silent:
            return
        if len(self._silent) >= MOST_LIVES:
            self._silent.clear()
        self._silent.add(life)
        extra = {"instance_id": life.instance_id, "incarnation": life.incarnation}
        log.warning("plugin_silent", extra=extra)
