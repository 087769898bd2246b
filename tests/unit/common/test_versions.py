"""Which of two numbered tellings counts."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from gatemesh_common.versions import supersedes

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Telling:
    """Something numbered."""

    version: int
    timestamp: datetime = NOON


@pytest.mark.parametrize(
    ("version", "age_s", "newer"),
    [
        pytest.param(6, -100, True, id="higher"),
        pytest.param(5, 100, False, id="same"),
        pytest.param(4, 9, False, id="lower-late-arrival"),
        pytest.param(4, 11, True, id="lower-after-a-reset"),
    ],
)
def test_which_telling_replaces_which(version: int, age_s: float, newer: bool) -> None:  # noqa: FBT001
    """The highest version counts, unless the numbering began anew."""
    new = Telling(version, NOON + timedelta(seconds=age_s))
    assert supersedes(new, Telling(5)) is newer


def test_one_from_the_end_of_time_does_not_stop_the_next() -> None:
    """A clock gone wild: the comparison must not overflow."""
    wild = Telling(5, datetime.max.replace(tzinfo=UTC))
    assert not supersedes(Telling(4), wild)
    assert supersedes(Telling(6), wild)
