"""The late-onset benchmark sees its own faults, and no cut changes a verdict."""

import random

from benchmarks import onset


def test_every_kind_is_seen() -> None:
    """Each kind of damage fires after its onset, however the stream is cut."""
    found = onset.measure(2, 1, random.Random(3))
    assert {kind for kind, row in found.items() if row["missed"]} == set()
    assert sum(row["other_verdicts"] for row in found.values()) == 0
    assert all(row["early"]["median"] > 0 for row in found.values())


def test_the_good_part_passes() -> None:
    """Documentation alone gives no verdict."""
    rng = random.Random(4)
    for _ in range(5):
        text = onset.good_text(rng, 3_000)
        assert onset.judged(text, onset.cuts(text, rng))[0].score is None


def test_no_fault_is_known_before_it_can_be() -> None:
    """The least is stated for every kind, and a late onset is never seen earlier."""
    assert set(onset.LEAST_CHARS) == set(onset.FAULTS)
    found = onset.measure(5, 0, random.Random(6))
    assert all(row["late"]["median"] >= row["least"] for row in found.values())
