"""Windows of entropy: the sums are right wherever they are, and limits hold at their edges."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.windows import (
    CALM_SHARE,
    GREEDY_SHARES,
    JUMP_SHARE,
    JUMP_STEPS,
    SAMPLED_SHARES,
    USUAL_VOCAB_SIZE,
    EntropyWindows,
    Excess,
)
from gatemesh_common.messages import Reason

Asking = Callable[..., RequestContext]
LN_V = math.log(USUAL_VOCAB_SIZE)


def means(values: list[float], steps: int) -> list[float]:
    """Return the mean of every window of that many steps."""
    return [sum(values[at : at + steps]) / steps for at in range(len(values) - steps + 1)]


def run(windows: EntropyWindows, values: list[float]) -> Excess | None:
    """Return the first thing found."""
    return next((found for value in values if (found := windows.take(value))), None)


@pytest.mark.parametrize(
    ("temperature", "steps", "share"),
    [(0, *pair) for pair in GREEDY_SHARES] + [(1, *pair) for pair in SAMPLED_SHARES],
)
def test_each_window_at_its_limit(
    temperature: float, steps: int, share: float, asking: Asking
) -> None:
    """Just below passes for ever; just above is found when that window is full."""
    below = EntropyWindows(asking(temperature=temperature), None)
    above = EntropyWindows(asking(temperature=temperature), None)
    low = min(other for _, other in (GREEDY_SHARES if temperature == 0 else SAMPLED_SHARES))
    assert run(below, [low * LN_V * 0.999] * 200) is None
    found = run(above, [share * LN_V * 1.001] * steps)
    assert found is not None
    assert found.steps <= steps
    assert found.reason is Reason.FLAT_DISTRIBUTION


@given(st.lists(st.floats(0, 10.8), min_size=1, max_size=300), st.booleans())
def test_windows_find_what_the_definition_finds(values: list[float], greedy: bool) -> None:  # noqa: FBT001
    """Rolling sums are those of whole windows: nothing before dilutes them."""
    windows = EntropyWindows(RequestContext(temperature=0.0 if greedy else 1.0), None)
    shares = GREEDY_SHARES if greedy else SAMPLED_SHARES
    expected = any(
        mean > share * LN_V + 1e-9 for steps, share in shares for mean in means(values, steps)
    )
    found = [excess for value in values if (excess := windows.take(value))]
    if expected:
        assert found
    for excess in found:
        assert excess.mean > excess.limit
        whole = means(values, excess.steps)
        assert any(mean == pytest.approx(excess.mean, abs=1e-6) for mean in whole)


@pytest.mark.parametrize("before", [32, 64, 500, 3000])
def test_a_jump_is_measured_against_what_came_just_before(before: int, asking: Asking) -> None:
    """A good beginning of any length neither dilutes nor excuses it."""
    windows = EntropyWindows(asking(temperature=1), None)
    assert run(windows, [CALM_SHARE * LN_V * 0.9] * before) is None
    wild = [JUMP_SHARE * LN_V * 1.1] * JUMP_STEPS
    found = run(windows, wild)
    assert found is not None
    assert found.reason is Reason.ENTROPY_JUMP


def test_a_slow_rise_is_no_jump(asking: Asking) -> None:
    """A free text after a strict one, step by step, is nobody's fault."""
    windows = EntropyWindows(asking(temperature=1), None)
    top = JUMP_SHARE * LN_V * 1.1
    assert run(windows, [top * at / 600 for at in range(600)] + [top] * 300) is None


def test_a_jump_after_a_wild_beginning_is_seen(asking: Asking) -> None:
    """What counts is the passage before it, not the first words."""
    windows = EntropyWindows(asking(temperature=1), None)
    assert run(windows, [3.0] * 20 + [0.2] * 96) is None
    assert run(windows, [3.4] * JUMP_STEPS) is not None


def test_limits_follow_the_vocabulary(asking: Asking) -> None:
    """Half the nats of a large vocabulary are all of a small one."""
    assert run(EntropyWindows(asking(temperature=0), 256), [2.2] * 16) is not None
    assert run(EntropyWindows(asking(temperature=0), 256_000), [2.2] * 400) is None


def test_an_answer_that_ends_early(asking: Asking) -> None:
    """Four steps are the fewest, and the limit is half as high again."""
    limit = GREEDY_SHARES[0][1] * LN_V * 1.5
    for count, value, failed in ((3, limit + 1, False), (4, limit + 0.1, True), (4, limit, False)):
        windows = EntropyWindows(asking(temperature=0), None)
        assert run(windows, [value] * count) is None
        assert (windows.end() is not None) is failed


def test_hot_requests_are_not_judged(asking: Asking) -> None:
    """Above temperature 1 wide distributions are what was asked for."""
    windows = EntropyWindows(asking(temperature=1.2), None)
    assert run(windows, [10.0] * 200) is None
    assert windows.end() is None


def test_a_negative_figure_hides_no_window(asking: Asking) -> None:
    """An engine whose sum of shares is off by a hair reports entropies below zero."""
    windows = EntropyWindows(asking(temperature=1), None)
    assert run(windows, [-100.0] * 48) is None
    found = run(windows, [LN_V] * 16)
    assert found is not None
    assert found.steps == 16
