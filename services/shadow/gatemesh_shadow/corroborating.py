"""Asks the references before an instance is accused on the word of one other."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gatemesh_common.gates import Judgement
from gatemesh_common.messages import Outcome, Reason, RoutedInstance, ShadowSample
from gatemesh_shadow.limits import VersionLimits
from gatemesh_shadow.metrics import DISPUTED
from gatemesh_shadow.reference_rounds import ReferenceRounds
from gatemesh_shadow.references import MEASURE, Standing, Weighed

BY_REFERENCES = {"corroborated": True, "corroborated_by": MEASURE}


@dataclass(frozen=True, slots=True)
class Accusation:
    """An instance that is found damaged while it judged, and the evidence."""

    judge: RoutedInstance
    evidence: Judgement


@dataclass(frozen=True, slots=True)
class Corroborated:
    """A judgement of a sample after the references were asked."""

    judgement: Judgement
    accusation: Accusation | None = None


@dataclass(slots=True)
class Corroboration:
    """Tells a damaged judge from a damaged accused where only the two of them are there."""

    rounds: ReferenceRounds

    async def check(
        self, failed: Judgement, judge: RoutedInstance, limits: VersionLimits
    ) -> Corroborated:
        """What is left of a failure that one judge found; without references all of it."""
        drifted = failed.details.get("drifted")
        weighed = await self.rounds.weigh(judge, limits, drifted)
        if weighed.standing is Standing.UNKNOWN:
            return Corroborated(with_details(failed, {"corroborated": False}))
        if weighed.standing is Standing.AGREES:
            return Corroborated(with_details(failed, BY_REFERENCES))
        unproven = replace(failed, outcome=Outcome.SKIPPED, reason=Reason.NOT_COMPARABLE)
        return Corroborated(unproven, _accusation(judge, weighed))

    async def weigh_alone(self, sample: ShadowSample, limits: VersionLimits) -> Judgement | None:
        """A judgement on an instance that nobody else can judge; None where there is none now."""
        instance = self.rounds.replicas.fleet.life_of(sample)
        if instance is None:
            return None
        weighed = await self.rounds.weigh_alone(instance, limits)
        if weighed is None or weighed.standing is Standing.UNKNOWN:
            return None
        return weighed.judgement


def _accusation(judge: RoutedInstance, weighed: Weighed) -> Accusation | None:
    DISPUTED.inc()
    if weighed.standing is not Standing.DEVIATES:
        return None
    return Accusation(judge, weighed.judgement)


def with_details(judgement: Judgement, more: Mapping[str, Any]) -> Judgement:
    """The same judgement with more details."""
    return replace(judgement, details={**judgement.details, **more})
