"""Delays in bins."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_common.delays import LAST_BIN, bin_of, end_of, quantile


@pytest.mark.parametrize(
    ("seconds", "place"),
    [(-1.0, 0), (0.0, 0), (0.001, 0), (0.002, 4), (0.004, 8), (1.024, 40), (1e9, LAST_BIN)],
)
def test_bins_double_every_fourth(seconds: float, place: int) -> None:
    """Whatever a clock says, there are few of them."""
    assert bin_of(seconds) == place


@given(
    st.lists(st.floats(min_value=0.002, max_value=3600), min_size=1), st.sampled_from([0.5, 0.95])
)
def test_a_quantile_is_right_within_a_bin(seconds: list[float], share: float) -> None:
    """No more than 19 % above the true one, never below it."""
    found = quantile(Counter(map(bin_of, seconds)), share)
    ordered = sorted(seconds)
    true = next(one for at, one in enumerate(ordered, 1) if at >= share * len(ordered))
    assert found is not None
    assert true * 0.999999 <= found <= true * 2**0.25 * 1.000001


def test_nothing_counted_is_no_delay() -> None:
    """Not zero: nobody knows."""
    assert quantile({}, 0.95) is None
    assert quantile({3: 0}, 0.95) is None
    assert quantile({3: 1}, 1.0) == end_of(3)
