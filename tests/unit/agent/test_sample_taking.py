"""Samples are taken at their rate."""

import pytest
from tests.unit.agent.test_sampling import NOON, SOFT, answer, sampling

from gatemesh_agent.metrics import SAMPLES_DROPPED
from gatemesh_agent.sample_taking import SampleTaker
from gatemesh_common.messages import ShadowSample


@pytest.mark.parametrize(("per_s", "taken"), [(2.0, 2), (0.0, 0)])
def test_the_taker_keeps_the_rate(per_s: float, taken: int) -> None:
    """What is beyond it is counted and dropped."""
    put: list[ShadowSample] = []
    taker = SampleTaker(
        sampling=sampling(per_s=per_s), put=put.append, agent_id="a", pool="p", clock=lambda: NOON
    )
    for _ in range(5):
        taker(answer(SOFT))
    assert len(put) == taken


def test_what_cannot_travel_is_dropped() -> None:
    """The answer was given long ago; nobody sees an error."""

    def refuse(_sample: ShadowSample) -> None:
        raise ValueError("lone surrogate")

    taker = SampleTaker(sampling=sampling(), put=refuse, agent_id="a", pool="p", clock=lambda: NOON)
    before = SAMPLES_DROPPED.labels(why="unreadable")._value.get()
    taker(answer(SOFT))
    assert SAMPLES_DROPPED.labels(why="unreadable")._value.get() == before + 1
