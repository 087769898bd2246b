"""Lets an instance score references: a few at a time, seldom enough, shared by all who wait."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from gatemesh_common.messages import Decoding, RoutedInstance
from gatemesh_shadow.asking import Question, Replicas
from gatemesh_shadow.errors import (
    ReplicaBrokenError,
    ReplicaRefusedError,
    ReplicaUnavailableError,
)
from gatemesh_shadow.limits import VersionLimits
from gatemesh_shadow.metrics import REFERENCE_ROUNDS
from gatemesh_shadow.references import (
    Reference,
    References,
    Standing,
    Weighed,
    is_unusual,
    unknown,
    weigh,
)
from gatemesh_shadow.replay import COMPLETIONS
from gatemesh_shadow.scores import Figures, figures_of

log = logging.getLogger(__name__)

PAUSE_S = 2.0
"""Between the beginnings of two rounds of one life."""
LONE_EVERY_S = 30.0
"""Between two rounds of an instance that nobody else can judge."""
LONE_DOUBTED_S = 5.0
"""The same after a round that did not agree."""
MOST_LIVES = 1000

Life = tuple[str, int | None]
Scored = list[Figures | None]


@dataclass(slots=True)
class _Known:
    """The last round of one life."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    begun_s: float = float("-inf")
    rounds: int = 0
    scored: Scored = field(default_factory=list)
    lone_after_s: float = float("-inf")


@dataclass(slots=True)
class ReferenceRounds:
    """Runs rounds within the budget; every answer given is of a round begun after the question."""

    replicas: Replicas
    clock: Callable[[], float]
    pause_s: float = PAUSE_S
    _lives: OrderedDict[Life, _Known] = field(default_factory=OrderedDict)

    async def weigh(
        self, instance: RoutedInstance, limits: VersionLimits, drifted: str | None = None
    ) -> Weighed:
        """How an instance stands now; with a drifted measure, quiet deviation is unclear, too."""
        references = limits.references
        if references is None or not references.suffice:
            return unknown()
        scored = await self._round(instance, references)
        found = weigh(scored, limits.scores(Decoding.GREEDY))
        normal = limits.normal(Decoding.GREEDY)
        if (
            drifted is not None
            and found.standing is Standing.AGREES
            and is_unusual(scored, drifted, normal.get(drifted))
        ):
            found = Weighed(Standing.UNCLEAR, found.judgement)
        REFERENCE_ROUNDS.labels(standing=found.standing.value).inc()
        return found

    async def weigh_alone(self, instance: RoutedInstance, limits: VersionLimits) -> Weighed | None:
        """How an instance stands that nobody else can judge; None when it is too soon to ask."""
        known = self._known(instance)
        if self.clock() < known.lone_after_s:
            return None
        known.lone_after_s = self.clock() + LONE_EVERY_S
        found = await self.weigh(instance, limits)
        if found.standing in (Standing.DEVIATES, Standing.UNCLEAR):
            known.lone_after_s = self.clock() + LONE_DOUBTED_S
        return found

    def _known(self, instance: RoutedInstance) -> _Known:
        life = (instance.instance_id, instance.incarnation)
        known = self._lives.setdefault(life, _Known())
        self._lives.move_to_end(life)
        if len(self._lives) > MOST_LIVES:
            self._lives.popitem(last=False)
        return known

    async def _round(self, instance: RoutedInstance, references: References) -> Scored:
        known, asked_s = self._known(instance), self.clock()
        async with known.lock:
            # One begun since says all there is to know; an older one may be from before the damage.
            if known.begun_s >= asked_s:
                return known.scored
            await asyncio.sleep(max(known.begun_s + self.pause_s - self.clock(), 0.0))
            known.begun_s = self.clock()
            known.scored = await self._scores(instance, references, known.rounds)
            known.rounds += 1
            return known.scored

    async def _scores(
        self, instance: RoutedInstance, references: References, number: int
    ) -> Scored:
        question = Question(COMPLETIONS, {"model": references.model})
        found: Scored = []
        faults = 0
        for reference in references.for_round(number):
            try:
                found.append(await self._score(instance, question, reference))
            except ReplicaBrokenError:
                found.append(None)
            except (ReplicaUnavailableError, ReplicaRefusedError) as error:
                extra = {"instance_id": instance.instance_id, "error": type(error).__name__}
                log.info("reference_not_scored", extra=extra)
                faults += 1
                # One may be chance; a round must not take three deadlines.
                if faults > 1:
                    break
        return found

    async def _score(
        self, instance: RoutedInstance, question: Question, reference: Reference
    ) -> Figures:
        async with self.replicas.budget.turn([instance]):
            scores = await self.replicas.scores(
                instance, question, reference.prompt, reference.answer
            )
        return figures_of(scores.chosen, scores.favourite, reference.own, greedy=True)
