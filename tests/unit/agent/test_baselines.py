"""The newest baseline of each model version is known, also after a restart."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from gatemesh_agent.baselines import MOST_VERSIONS, Baselines, load_baselines
from gatemesh_agent.gates.pool_baseline import Metric, PoolBaseline
from gatemesh_common.messages import Baseline, BaselineEntry, Decoding

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def baseline(version: int, median: float = 0.5, model: str = "m-1", pool: str = "p") -> Baseline:
    """Return a baseline of one figure."""
    entry = BaselineEntry(
        metric=Metric.NLL_WHOLE,
        decoding=Decoding.GREEDY,
        script="latin",
        count=60,
        median=median,
        mad=0.1,
    )
    return Baseline(
        timestamp=NOON,
        pool=pool,
        model_version=model,
        version=version,
        shadow_share=0.25,
        entries=(entry,),
    )


def median_of(baseline: PoolBaseline) -> float | None:
    """Return the one median of a baseline."""
    normal = baseline.normal(Metric.NLL_WHOLE, Decoding.GREEDY, "latin")
    return normal.median if normal else None


def test_the_highest_version_counts() -> None:
    """Whatever the order of arrival."""
    known = Baselines("p")
    assert known.take(baseline(2, 0.6))
    assert not known.take(baseline(2, 0.9))
    assert not known.take(baseline(1, 0.9))
    assert median_of(known.baseline("m-1")) == 0.6
    assert known.take(baseline(3, 0.7))
    assert median_of(known.baseline("m-1")) == 0.7


def test_a_lower_version_that_is_much_younger_counts() -> None:
    """An absurd version must not hold the baseline for ever."""
    known = Baselines("p")
    assert known.take(baseline(2**62, 0.6))
    later = {"timestamp": NOON + timedelta(seconds=11)}
    assert known.take(baseline(7, 0.7).model_copy(update=later))
    assert median_of(known.baseline("m-1")) == 0.7


def test_each_model_version_has_its_own() -> None:
    """And what nobody has told of has none."""
    known = Baselines("p")
    known.take(baseline(1, 0.5, "m-1"))
    known.take(baseline(1, 0.9, "unknown"))
    assert median_of(known.baseline("m-1")) == 0.5
    assert median_of(known.baseline(None)) == 0.9
    assert median_of(known.baseline("m-2")) is None
    assert (known.shadow_share("m-1"), known.shadow_share("m-2")) == (0.25, 0.0)


def test_another_pools_baseline_is_not_taken() -> None:
    """Its traffic differs."""
    known = Baselines("p")
    assert not known.take(baseline(1, pool="q"))
    assert median_of(known.baseline("m-1")) is None


def test_it_outlives_a_restart(tmp_path: Path) -> None:
    """The broker may be away when the agent comes back."""
    path = tmp_path / "deep" / "baselines.json"
    known = Baselines("p", path)
    known.take(baseline(4, 0.6, "m-1"))
    known.take(baseline(7, 0.8, "m-2"))
    again = Baselines("p", path)
    assert median_of(again.baseline("m-1")) == 0.6
    assert median_of(again.baseline("m-2")) == 0.8
    assert not again.take(baseline(7, 0.9, "m-2"))
    assert median_of(Baselines("q", path).baseline("m-1")) is None


def test_old_model_versions_are_forgotten() -> None:
    """The one not heard of for longest goes first."""
    known = Baselines("p")
    for number in range(MOST_VERSIONS):
        known.take(baseline(1, model=f"m-{number}"))
    known.take(baseline(2, model="m-0"))
    known.take(baseline(1, model="new"))
    assert median_of(known.baseline("m-0")) is not None
    assert median_of(known.baseline("m-1")) is None


def test_what_cannot_be_read_or_written_changes_nothing(tmp_path: Path) -> None:
    """The agent judges all the same."""
    path = tmp_path / "baselines.json"
    assert load_baselines(path) == ()
    path.write_text("{]")
    assert load_baselines(path) == ()
    path.unlink()
    path.mkdir()
    known = Baselines("p", path)
    assert known.take(baseline(1))
    assert median_of(known.baseline("m-1")) == 0.5
