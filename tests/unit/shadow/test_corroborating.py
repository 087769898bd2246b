"""A failure that one judge found, after the references were asked."""

import pytest
from tests.unit.shadow.parts import (
    Engines,
    Seconds,
    corroboration_of,
    engine,
    instance,
    limits_with_references,
    replicas_of,
    sample_of,
)

from gatemesh_common.gates import Judgement
from gatemesh_common.messages import CheckLevel, Outcome, Reason
from gatemesh_shadow.corroborating import Corroboration, with_details
from gatemesh_shadow.errors import ReplicaUnavailableError
from gatemesh_shadow.limits import VersionLimits

JUDGE = instance("engine-0")
FAILED = Judgement(CheckLevel.L4, Outcome.FAILED, Reason.FACTS_DIFFER, details={"measure": "facts"})


def corroboration(shift_nats: float = 0.0) -> Corroboration:
    """One judge with this damage, and the accused, whose figures are as far off."""
    say = engine(shift_nats=shift_nats)
    replicas = replicas_of(Engines({"engine-0": say, "engine-1": say}), JUDGE, instance("engine-1"))
    return corroboration_of(replicas, Seconds())


async def test_without_references_the_failure_goes_out() -> None:
    """And says that nothing bore it out."""
    found = await corroboration().check(FAILED, JUDGE, VersionLimits())
    assert found.judgement == with_details(FAILED, {"corroborated": False})
    assert found.accusation is None


async def test_a_sound_judge_is_believed() -> None:
    """The failure stands."""
    found = await corroboration().check(FAILED, JUDGE, limits_with_references())
    told = {"corroborated": True, "corroborated_by": "references"}
    assert found.judgement == with_details(FAILED, told)
    assert found.accusation is None


async def test_a_damaged_judge_is_accused() -> None:
    """Nothing is left of what it found."""
    found = await corroboration(2.0).check(FAILED, JUDGE, limits_with_references())
    assert (found.judgement.outcome, found.judgement.reason) == (
        Outcome.SKIPPED,
        Reason.NOT_COMPARABLE,
    )
    assert found.accusation is not None
    assert found.accusation.judge is JUDGE
    assert found.accusation.evidence.outcome is Outcome.FAILED


async def test_where_it_is_unclear_nobody_is_accused() -> None:
    """Neither the judge nor the other one."""

    def away(_path: str, _body: object) -> dict[str, object]:
        raise ReplicaUnavailableError("x")

    doubtful = corroboration_of(replicas_of(Engines({"engine-0": away}), JUDGE))
    found = await doubtful.check(FAILED, JUDGE, limits_with_references())
    assert found.judgement.outcome is Outcome.SKIPPED
    assert found.accusation is None


@pytest.mark.parametrize(("shift_nats", "outcome"), [(0.0, Outcome.PASSED), (2.0, Outcome.FAILED)])
async def test_an_instance_alone(shift_nats: float, outcome: Outcome) -> None:
    """It is held to what it once said."""
    found = await corroboration(shift_nats).weigh_alone(sample_of(), limits_with_references())
    assert found is not None
    assert found.outcome is outcome


async def test_an_instance_that_is_gone_or_unknown_is_not_asked() -> None:
    """Another life, another name, or no references."""
    alone = corroboration()
    assert await alone.weigh_alone(sample_of(incarnation=9), limits_with_references()) is None
    assert await alone.weigh_alone(sample_of(), VersionLimits()) is None
