"""One client's request at one instance, and where what is concluded about its answer goes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gatemesh_agent.attribution import Accusation, ClientRequest
from gatemesh_agent.collected import note_judged
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.l2_perplexity import Usual
from gatemesh_agent.recent import Evidence
from gatemesh_agent.reporting import Life, Reporter
from gatemesh_common.messages import Attribution, CheckLevel, Outcome


@dataclass(frozen=True, slots=True)
class Exchange:
    """One client's request at one life of one instance."""

    request: ClientRequest
    life: Life
    streamed: bool
    wished: int = 0
    """Log probabilities per token that were added."""
    retried: bool = False
    """True when a bad answer is withheld and the request asked elsewhere."""
    follows: bool = False
    """True when an instance failed this very request before."""
    continued: bool = False
    """True when what fails of it is continued elsewhere: that is the second opinion."""
    probe_id: str = ""
    """By which the engine's plugin reports on it; empty where it was not asked to."""


class TrafficReport:
    """Reports what is concluded about one client's answer."""

    def __init__(
        self,
        reporter: Reporter,
        accuse: Callable[[Accusation], None],
        exchange: Exchange,
        evidence: Evidence | None = None,
    ) -> None:
        self._evidence = evidence
        self._reporter = reporter
        self._accuse = accuse
        self._exchange = exchange
        self.failures: list[Judgement] = []
        self.flagged: list[Judgement] = []
        self.judged: set[CheckLevel] = set()

    def conclude(self, choice: int, judgement: Judgement, details: Mapping[str, Any]) -> None:
        """Count it, and have a failure reported."""
        exchange = self._exchange
        note_judged(self.judged, judgement)
        self._reporter.count(judgement, exchange.life)
        if judgement.outcome is not Outcome.FAILED:
            return
        told = {"stream": exchange.streamed, **details}
        origin = exchange.request.origin
        verdict = self._reporter.verdict(judgement, choice, origin, exchange.life, told)
        if self._evidence is not None:
            self._evidence.hold(verdict)
        if judgement.gate is CheckLevel.PLUGIN:
            # What was said is at fault, not who said it: nobody else is asked about it.
            self.flagged.append(judgement)
            attributed = {"attribution": Attribution.REQUEST}
            self._reporter.publish(verdict.model_copy(update=attributed))
            return
        self.failures.append(judgement)
        self._accuse(
            Accusation(
                verdict=verdict,
                request=exchange.request,
                life=exchange.life,
                tokens=int(details.get("tokens", 0)),
                retried=exchange.retried,
                follows=exchange.follows,
                continued=exchange.continued,
            )
        )

    def skip(self, level: CheckLevel, why: str) -> None:
        """Count it."""
        self._reporter.skip(level, why, self._exchange.life)

    def count_tokens(self, count: int) -> None:
        """Count them."""
        self._reporter.window(self._exchange.life).tokens += count

    def add_usual(self, usual: Usual) -> None:
        """Sketch them, unless any gate failed the answer: they are to be part of what is normal."""
        if not self.failures:
            self._reporter.window(self._exchange.life).add_usual(usual)
