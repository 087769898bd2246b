"""What balancers should do with each instance."""

from datetime import timedelta

import pytest

from gatemesh_common.messages import InstanceState, RoutedInstance, RoutingTable
from gatemesh_executor.balancers.wishes import Wishes

from .conftest import START


def table(
    version: int,
    weight: float = 1.0,
    state: InstanceState = InstanceState.HEALTHY,
    age_s: float = 0.0,
) -> RoutingTable:
    """Return a table of one instance."""
    row = RoutedInstance(
        instance_id="e", base_url="http://e", state=state, incarnation=1, weight=weight
    )
    return RoutingTable(
        timestamp=START + timedelta(seconds=age_s), pool="p", version=version, instances=(row,)
    )


def taken_out(wishes: Wishes, version: int, age_s: float = 0.0) -> Wishes:
    """Return the wishes after a drain that names a table."""
    return wishes.taking_out("e", "p", version, START + timedelta(seconds=age_s))


def test_what_nobody_has_spoken_of_is_left_alone() -> None:
    """As right after the executor's start."""
    assert Wishes().share_of("e", "p") is None
    assert Wishes().hearing(table(1)).share_of("other", "p") is None
    assert Wishes().hearing(table(1)).share_of("e", "other") is None


@pytest.mark.parametrize(
    ("weight", "state", "share"),
    [
        (0.3, InstanceState.HEALTHY, 0.3),
        (1.0, InstanceState.SUSPECT, 1.0),
        (1.0, InstanceState.DRAINING, 0.0),
        (1.0, InstanceState.PROBATION, 0.0),
        (0.0, InstanceState.HEALTHY, 0.0),
    ],
)
def test_the_table_tells_the_share(weight: float, state: InstanceState, share: float) -> None:
    """Out is a share of none."""
    assert Wishes().hearing(table(1, weight, state)).share_of("e", "p") == share


def test_a_late_table_changes_nothing() -> None:
    """The highest version counts."""
    wishes = Wishes().hearing(table(5, 0.5)).hearing(table(4, 1.0))
    assert wishes.share_of("e", "p") == 0.5


def test_a_database_that_began_anew_is_followed() -> None:
    """A lower version that is much younger."""
    wishes = Wishes().hearing(table(5, 0.5)).hearing(table(1, 1.0, age_s=11))
    assert wishes.share_of("e", "p") == 1.0


def test_a_drain_comes_before_its_table() -> None:
    """Older tables and their repetitions do not undo it; the one that knows of it decides."""
    wishes = taken_out(Wishes().hearing(table(6)), 7)
    assert wishes.share_of("e", "p") == 0.0
    assert wishes.hearing(table(6, age_s=2)).share_of("e", "p") == 0.0
    assert wishes.hearing(table(7, state=InstanceState.DRAINING)).share_of("e", "p") == 0.0
    assert wishes.hearing(table(8, 0.3)).share_of("e", "p") == 0.3


def test_a_drain_before_any_table_is_out() -> None:
    """The executor has only just started."""
    assert taken_out(Wishes(), 7).share_of("e", "p") == 0.0
    assert taken_out(Wishes(), 7).hearing(table(7, 0.5)).share_of("e", "p") == 0.5


def test_a_drain_that_names_no_table_holds_until_the_next() -> None:
    """An older manager leaves the version out."""
    wishes = taken_out(Wishes().hearing(table(6)), 0)
    assert wishes.share_of("e", "p") == 0.0
    assert wishes.hearing(table(6, age_s=2)).share_of("e", "p") == 0.0
    assert wishes.hearing(table(7)).share_of("e", "p") == 1.0
    assert taken_out(Wishes(), 0).hearing(table(1)).share_of("e", "p") == 1.0


def test_a_drain_of_an_old_database_does_not_hold_for_ever() -> None:
    """Its version may never be reached again."""
    wishes = taken_out(Wishes().hearing(table(50)), 51)
    assert wishes.hearing(table(3, age_s=9)).share_of("e", "p") == 0.0
    assert wishes.hearing(table(3, age_s=11)).share_of("e", "p") == 1.0
