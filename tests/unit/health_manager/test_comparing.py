"""The first decision that differs is named, of each instance."""

from dataclasses import replace

from gatemesh_health_manager.comparing import differences
from gatemesh_health_manager.replaying import Step

from .samples import NOW, at

STEP = Step(NOW, "engine-0", 1, "healthy", "condemned", "draining", "i", 70.0)
LATER = replace(STEP, at=at(9), before="draining", trigger="drained", after="restarting")


def test_alike_is_alike() -> None:
    """A score differs in its last digits where a sum went another way round."""
    assert differences([STEP, LATER], [replace(STEP, score=70.0 + 1e-12), LATER]) == []


def test_the_first_difference_of_each_instance_counts() -> None:
    """What follows from it is no news."""
    other = replace(STEP, instance_id="engine-1")
    worse = replace(LATER, trigger="stopped")
    found = differences([STEP, LATER, other], [STEP, worse])
    assert [each.instance_id for each in found] == ["engine-0", "engine-1"]
    assert (found[0].stored, found[0].replayed) == (LATER, worse)
    assert (found[1].stored, found[1].replayed) == (other, None)
    assert differences([], [STEP])[0].stored is None
