"""The densest window: at its edge, with copies, in any order."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_common.messages import CheckLevel
from gatemesh_health_manager.facts import (
    NO_FACTS,
    Copies,
    Facts,
    Failure,
    copy_key,
    densest_window,
    evidence_time,
    prompt_key,
)

from .samples import NOW, at, verdict


def failures(*seconds: float, fresh: int = -1) -> list[Failure]:
    """Return failures of distinct prompts; the last one is fresh unless said otherwise."""
    fresh = fresh % len(seconds)
    return [Failure(at(s), f"prompt-{n}", n == fresh) for n, s in enumerate(seconds)]


def window(found: list[Failure], per_prompt: int = 1, prompts: int = 3) -> Facts:
    """Return the densest minute."""
    return densest_window(found, 60, per_prompt, prompts)


@pytest.mark.parametrize(
    ("seconds", "counted"),
    [
        pytest.param((0, 10, 20, 30, 40, 60), 6, id="at-the-edge"),
        pytest.param((0, 10, 20, 30, 40, 60.001), 5, id="one-past-the-edge"),
        pytest.param((0,), 1, id="alone"),
        pytest.param((0, 0, 0, 0, 0, 0), 6, id="at-once"),
    ],
)
def test_the_window_includes_its_ends(seconds: tuple[float, ...], counted: int) -> None:
    """Sixty seconds are sixty seconds."""
    assert window(failures(*seconds)).failures == counted


def test_copies_of_one_prompt_count_once() -> None:
    """A client that repeats one odd request takes nothing out."""
    copies = [Failure(at(n), "same", fresh=n == 4) for n in range(5)]
    assert window(copies) == Facts(failures=1, prompts=1)


def test_copies_of_tenants_count_each_where_tenants_matter() -> None:
    """Otherwise nobody's name is given, and they are one."""
    copies = [Failure(at(n), "same", n == 4, f"tenant-{n % 2}") for n in range(5)]
    assert window(copies) == Facts(failures=2, prompts=1, tenants=2)


def test_a_span_with_enough_tenants_stands_before_a_denser_one() -> None:
    """As one with enough prompts does."""
    few = [Failure(at(n), f"p{n}", fresh=True, tenant="a") for n in range(9)]
    enough = [Failure(at(200 + n), f"p{n}", fresh=True, tenant="ab"[n % 2]) for n in range(4)]
    assert densest_window(few + enough, 60, 1, 1, 2) == Facts(4, 4, 2)
    assert densest_window(few + enough, 60, 1, 1, 1) == Facts(9, 9, 1)


def test_copies_count_up_to_the_limit() -> None:
    """A pool may let a prompt count more often."""
    copies = [Failure(at(n), "same", fresh=n == 4) for n in range(5)]
    assert window(copies, per_prompt=3) == Facts(failures=3, prompts=1)


def test_a_window_must_hold_a_fresh_failure() -> None:
    """What an earlier decision has seen does not act again by itself."""
    old = failures(0, 1, 2, 3, 4, 5, 300)
    assert window(old) == Facts(failures=1, prompts=1)
    assert window([Failure(at(0), "a")]) == NO_FACTS


def test_a_late_failure_completes_an_earlier_window() -> None:
    """Order of arrival does not matter, only when it happened."""
    assert window(failures(0, 10, 20, 30, 40, 50, fresh=2)).failures == 6


def test_a_window_with_enough_prompts_goes_first() -> None:
    """A denser window of too few prompts does not hide one that breaks the rule."""
    few = [Failure(at(n), "a", fresh=True) for n in range(9)]
    enough = [Failure(at(200 + n), f"p{n % 3}", fresh=True) for n in range(6)]
    assert window(few + enough, per_prompt=9) == Facts(failures=6, prompts=3)


def brute_force(found: list[Failure], per_prompt: int) -> int:
    """Count every window the slow way."""
    best = 0
    for first in found:
        inside = [f for f in found if 0 <= (f.at - first.at).total_seconds() <= 60]
        if any(f.fresh for f in inside):
            prompts = {f.prompt for f in inside}
            copies = [sum(f.prompt == p for f in inside) for p in prompts]
            best = max(best, sum(min(count, per_prompt) for count in copies))
    return best


FAILURES = st.lists(
    st.builds(
        lambda s, p, fresh: Failure(at(s), p, fresh),
        st.integers(0, 200),
        st.sampled_from("abcdefgh"),
        st.booleans(),
    ),
    max_size=30,
)


@given(FAILURES, st.integers(1, 3))
def test_the_sliding_window_agrees_with_the_slow_way(found: list[Failure], per_prompt: int) -> None:
    """Nothing is missed and nothing counted twice."""
    assert densest_window(found, 60, per_prompt, 1).failures == brute_force(found, per_prompt)


@given(st.permutations(failures(0, 10, 20, 30, 40, 50, 70)))
def test_order_changes_nothing(found: list[Failure]) -> None:
    """Shuffled failures have the same densest window."""
    assert window(found) == window(sorted(found))


def test_a_prompt_is_its_fingerprint_else_its_request() -> None:
    """Alerts by hand have no fingerprint; a request can never look like one."""
    keys = [
        prompt_key(verdict(prompt_fingerprint="abc", request_id="1")),
        prompt_key(verdict(prompt_fingerprint="abc", request_id="2")),
        prompt_key(verdict(request_id="abc")),
        prompt_key(verdict(request_id="1")),
    ]
    assert keys[0] == keys[1]
    assert all(one != other for one, other in combinations(keys[1:], 2))


def test_a_clock_that_runs_ahead_is_set_back() -> None:
    """A failure cannot happen later than it is heard of."""
    assert evidence_time(verdict(timestamp=at(50)), NOW) == NOW
    assert evidence_time(verdict(timestamp=at(-50)), NOW) == at(-50)
    assert all(a <= b for a, b in pairwise([evidence_time(verdict(), at(n)) for n in range(3)]))


def test_copies_are_of_one_instance_prompt_and_gate() -> None:
    """Proof and evidence are no copies of each other."""
    one = verdict(prompt_fingerprint="p")
    others = [
        verdict(prompt_fingerprint="q"),
        verdict(CheckLevel.L2, prompt_fingerprint="p"),
        verdict(prompt_fingerprint="p", hard=True),
        verdict(prompt_fingerprint="p", instance_id="engine-1"),
    ]
    assert copy_key(one) == copy_key(verdict(prompt_fingerprint="p", request_id="other"))
    assert copy_key(one) not in {copy_key(other) for other in others}


def test_the_latest_copy_is_remembered() -> None:
    """What the database knows, and what the batch has shown since."""
    late, early = (verdict(prompt_fingerprint="p", timestamp=at(s)) for s in (-5, -9))
    copies = Copies({copy_key(late): at(-20)})
    assert [copies.note(each, NOW) for each in (late, early, late)] == [at(-20), at(-5), at(-5)]
    assert Copies().note(late, NOW) is None
