"""A/A: noise between healthy instances."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.shadow.parts import (
    NOW,
    OWN,
    TOKENS,
    Engines,
    Say,
    engine,
    instance,
    replicas_of,
)
from tests.unit.shadow.test_answering import embedder_of

from gatemesh_common.messages import Decoding
from gatemesh_shadow.calibration import PROMPTS, Calibration
from gatemesh_shadow.errors import ReplicaUnavailableError
from gatemesh_shadow.limits import ENOUGH_FIGURES
from gatemesh_shadow.limits_store import LimitsStore
from gatemesh_shadow.references import MOST_KEPT, Reference, References

PAIR = (instance("engine-0"), instance("engine-1"))


def calibration_of(folder: Path, *says: Say) -> Calibration:
    """A calibration of as many instances."""
    names = [f"engine-{place}" for place in range(len(says))]
    engines = Engines(dict(zip(names, says, strict=True)))
    replicas = replicas_of(engines, *map(instance, names))
    return Calibration(replicas, LimitsStore(folder), None, lambda: NOW, 3600.0)


def test_there_are_enough_prompts() -> None:
    """For limits of their own, even where one instance cannot answer two of them."""
    assert len(PROMPTS) >= ENOUGH_FIGURES + 2


async def test_it_measures_and_keeps(tmp_path: Path) -> None:
    """For both ways of decoding; the file survives."""
    calibration = calibration_of(tmp_path, engine(), engine())
    limits = await calibration.measure("default", "m1", PAIR)
    assert limits is not None
    assert limits.scores(Decoding.GREEDY).source == "calibrated"
    assert limits.scores(Decoding.SAMPLED).source == "calibrated"
    assert LimitsStore(tmp_path).limits("default", "m1").measured_at == NOW.isoformat()


async def test_it_keeps_references(tmp_path: Path) -> None:
    """Greedy answers with their own figures, no more than are needed; they survive."""
    calibration = calibration_of(tmp_path, engine(), engine())
    await calibration.measure("default", "m1", PAIR)
    references = LimitsStore(tmp_path).limits("default", "m1").references
    assert references is not None
    assert references.model == "sim"
    assert references.kept == (Reference((1, 2, 3), TOKENS, OWN),) * MOST_KEPT


async def test_short_answers_are_no_references(tmp_path: Path) -> None:
    """Then there are none, which is known, and not asked again at once."""
    calibration = calibration_of(tmp_path, *[engine(ids=TOKENS[:1] * 3)] * 2)
    await calibration.measure("default", "m1", PAIR)
    assert calibration.store.limits("default", "m1").references == References("sim")
    assert calibration._due(0.0) == []


async def test_limits_without_references_are_due(tmp_path: Path) -> None:
    """As of a file from an earlier release."""
    calibration = calibration_of(tmp_path, engine(), engine())
    await calibration.measure("default", "m1", PAIR)
    calibration.store.limits("default", "m1").references = None
    assert len(calibration._due(0.0)) == 1


async def test_instances_that_disagree_are_no_baseline(tmp_path: Path) -> None:
    """Nothing is learnt, the defaults stay."""
    calibration = calibration_of(tmp_path, engine(shift_nats=1.0), engine(shift_nats=1.0))
    assert await calibration.measure("default", "m1", PAIR) is None
    assert calibration.store.limits("default", "m1").measured_at is None


async def test_one_bad_pair_of_three_is_left_out(tmp_path: Path) -> None:
    """What the others say is learnt."""
    calibration = calibration_of(tmp_path, engine(), engine(shift_nats=1.0), engine())
    instances = (*PAIR, instance("engine-2"))
    limits = await calibration.measure("default", "m1", instances)
    assert limits is not None
    assert max(limits.learnt[Decoding.GREEDY].values("distance")) == 0.0


async def test_an_instance_that_is_away_puts_it_off(tmp_path: Path) -> None:
    """Nothing is learnt from nothing."""

    def away(_path: str, _body: object) -> dict[str, object]:
        raise ReplicaUnavailableError("x")

    calibration = calibration_of(tmp_path, away, away)
    assert await calibration.measure("default", "m1", PAIR) is None


async def test_cosines_of_healthy_pairs(tmp_path: Path) -> None:
    """Measured where a model knows the language."""
    calibration = calibration_of(tmp_path, engine(), engine())
    calibration.embedder = embedder_of(0.62)
    limits = await calibration.measure("default", "m1", PAIR)
    assert limits is not None
    least, source = limits.cosine(Decoding.GREEDY, 0.55)
    assert least == pytest.approx(0.52)
    assert source == "calibrated"


async def test_what_is_due(tmp_path: Path) -> None:
    """A version with two healthy instances, unmeasured or measured long ago."""
    calibration = calibration_of(tmp_path, engine(), engine())
    assert [one[:2] for one in calibration._due(0.0)] == [("default", "m1")]
    await calibration.measure("default", "m1", PAIR)
    assert calibration._due(0.0) == []
    calibration.clock = lambda: NOW + timedelta(seconds=3601)
    assert len(calibration._due(0.0)) == 1
    alone = calibration_of(tmp_path / "alone", engine())
    assert alone._due(0.0) == []
