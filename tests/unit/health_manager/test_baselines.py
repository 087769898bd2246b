"""A baseline is learnt from healthy instances, from none too much, and fades slowly."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_common.messages import Decoding, InstanceState, Sketch
from gatemesh_common.sketches import Histogram
from gatemesh_health_manager.baselines import (
    FIRST_ANSWERS,
    MOST_KINDS,
    HeldBack,
    Standing,
    bounded,
    entries_of,
    may_count,
    take_in,
)
from gatemesh_health_manager.policy import BaselinePolicy

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
POLICY = BaselinePolicy()
KIND = ("nll_whole", Decoding.GREEDY, "latin")
HELD = HeldBack("engine-0", 3, NOON, ())
HEALTHY = Standing(InstanceState.HEALTHY, NOON, 3, troubled=False)


def sketch(bins: dict[int, int], script: str = "latin") -> Sketch:
    """Return a sketch of greedy answers."""
    return Sketch(
        metric="nll_whole", decoding=Decoding.GREEDY, script=script, width=0.02, bins=bins
    )


def of(value: float, count: float) -> Histogram:
    """Return a histogram of equal answers."""
    return Histogram(0.02, {round(value / 0.02): count})


def test_a_healthy_instance_counts() -> None:
    """It was so when the window began, and still is."""
    assert may_count(HELD, HEALTHY)


@pytest.mark.parametrize(
    "standing",
    [
        None,
        replace(HEALTHY, troubled=True),
        replace(HEALTHY, incarnation=4),
        replace(HEALTHY, state_since=NOON + timedelta(milliseconds=1)),
        *(replace(HEALTHY, state=state) for state in InstanceState if state != "healthy"),
    ],
)
def test_any_other_does_not(standing: Standing | None) -> None:
    """A bad instance must not move the baseline that it is measured by."""
    assert not may_count(HELD, standing)


@given(st.lists(st.dictionaries(st.integers(0, 50), st.integers(1, 5), max_size=4), max_size=6))
def test_the_order_of_sketches_does_not_matter(bins: list[dict[int, int]]) -> None:
    """Nor how they were spread over windows."""
    sketches = [sketch(each) for each in bins]
    forth = take_in({}, sketches, 10_000)
    back: dict[tuple[str, Decoding, str], Histogram] = {}
    for each in reversed(sketches):
        back |= take_in(back, [each], 10_000)
    assert {kind: h.bins for kind, h in forth.items()} == {k: h.bins for k, h in back.items()}


def test_only_what_changed_is_written() -> None:
    """The rest of what is kept is left alone, also in memory."""
    kept = {KIND: of(0.5, 10), ("nll_16", Decoding.GREEDY, "latin"): of(0.9, 10)}
    changed = take_in(kept, [sketch({25: 5})], 10_000)
    assert set(changed) == {KIND}
    assert (changed[KIND].count, kept[KIND].count) == (15, 10)


def test_old_answers_fade_as_new_ones_come() -> None:
    """A pool whose traffic changed is measured by what it does now."""
    kept = {KIND: of(0.5, 1_000)}
    for _ in range(50):
        kept |= take_in(kept, [sketch({50: 100})], 1_000)
    assert kept[KIND].count == pytest.approx(1_000, rel=0.01)
    assert kept[KIND].quantiles([0.5])[0] == pytest.approx(1.01, abs=0.02)


def test_kinds_are_bounded() -> None:
    """Garbage in ever new scripts does not fill the database."""
    sketches = [sketch({1: 1}, f"block_{n}") for n in range(MOST_KINDS + 20)]
    assert len(take_in({}, sketches, 1_000)) == MOST_KINDS
    full = {("nll_whole", Decoding.GREEDY, f"block_{n}"): of(0.5, 1) for n in range(MOST_KINDS)}
    assert take_in(full, [sketch({1: 1}, "latin")], 1_000) == {}
    assert set(take_in(full, [sketch({1: 1}, "block_7")], 1_000)) == {
        ("nll_whole", Decoding.GREEDY, "block_7")
    }


def test_one_instance_cannot_outvote_the_others() -> None:
    """However much traffic it takes."""
    parts = {"a": of(0.5, 2_000), "b": of(0.5, 2_000), "loud": of(3.0, 100_000)}
    merged = bounded(parts, POLICY)
    assert merged.bins[150] == pytest.approx(4_000)
    third = bounded(parts, POLICY.model_copy(update={"max_share": 0.34}))
    assert third.quantiles([0.5])[0] < 1.0


def test_an_instance_alone_is_measured_by_itself() -> None:
    """And one with hardly any company is not thrown away."""
    assert bounded({"a": of(0.5, 9_000)}, POLICY).count == 9_000
    two = bounded({"a": of(0.5, 9_000), "b": of(0.5, 1)}, POLICY)
    assert two.count == FIRST_ANSWERS * POLICY.min_samples + 1
    assert (
        bounded({"a": of(0.5, 9_000), "b": of(0.5, 1)}, BaselinePolicy(max_share=1)).count > 9_000
    )


@pytest.mark.parametrize(("count", "known"), [(49, False), (50, True)])
def test_an_entry_needs_enough_answers(count: int, known: bool) -> None:  # noqa: FBT001
    """Of all instances together."""
    parts = {"a": {KIND: of(0.5, 20)}, "b": {KIND: of(0.5, count - 20)}}
    entries = entries_of(parts, POLICY)
    assert [entry.script for entry in entries] == (["any", "latin"] if known else [])


def test_all_scripts_together_have_an_entry() -> None:
    """For texts without a script of their own."""
    han = ("nll_whole", Decoding.GREEDY, "han")
    entries = entries_of({"a": {KIND: of(0.5, 60), han: of(1.5, 60)}}, POLICY)
    by_script = {entry.script: entry for entry in entries}
    assert {script: entry.count for script, entry in by_script.items()} == {
        "any": 120,
        "han": 60,
        "latin": 60,
    }
    assert by_script["latin"].median == pytest.approx(0.51, abs=0.02)


def test_a_bad_instance_that_nobody_saw_moves_it_little() -> None:
    """One of four: the median stays among the healthy, and beyond its tails nothing passes."""
    rng = random.Random(2)
    parts = {}
    for name, level in (("a", 0.5), ("b", 0.5), ("c", 0.5), ("bad", 3.0)):
        histogram = Histogram(0.02)
        for _ in range(1_000):
            histogram.add(max(rng.gauss(level, 0.1), 0.0))
        parts[name] = {KIND: histogram}
    entry = entries_of(parts, POLICY)[1]
    assert entry.median == pytest.approx(0.5, abs=0.1)
    assert entry.mad < 0.15
