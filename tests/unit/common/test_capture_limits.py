"""A storm of failures leaves a few captures."""

from random import Random
from typing import Any

from gatemesh_common.capture_limits import MOST_KINDS, CaptureLimits
from gatemesh_common.captures import CaptureTerms
from gatemesh_common.messages import Verdict

from .test_captures import NOON


def verdict(**more: Any) -> Verdict:
    """Return a failure."""
    fields = {"timestamp": NOON, "instance_id": "engine-0", "request_id": "r", "check_level": "L1"}
    return Verdict.model_validate(fields | more)


def limits(**more: Any) -> CaptureLimits:
    """Return limits of a policy."""
    fields = {"timestamp": NOON, "pool": "chat"} | more
    return CaptureLimits(CaptureTerms.model_validate(fields), Random(1))


def test_each_kind_has_its_own_rate() -> None:
    """One reason on one instance does not use up what another needs."""
    some = limits(per_reason_per_min=2.0)
    first, other = verdict(reason="repetition"), verdict(reason="control_chars")
    elsewhere = verdict(reason="repetition", instance_id="engine-1")
    taken = [some.refuse(one, 100.0) for one in (first, first, first, other, elsewhere)]
    assert taken == [None, None, "rate", None, None]
    assert some.refuse(first, 129.0) == "rate"
    assert some.refuse(first, 130.1) is None


def test_a_storm_of_all_kinds_is_bounded() -> None:
    """Ten thousand failures within a minute, on as many instances."""
    some = limits(per_min=30.0)
    storm = (verdict(instance_id=f"engine-{n}") for n in range(MOST_KINDS + 200))
    taken = sum(some.refuse(one, 100.0 + n / 100) is None for n, one in enumerate(storm))
    assert 30 <= taken <= 60


def test_nothing_is_taken_where_the_policy_allows_nothing() -> None:
    """Zero is zero."""
    assert limits(per_min=0.0).refuse(verdict(), 100.0) == "rate"
    assert limits(per_reason_per_min=0.0).refuse(verdict(), 100.0) == "rate"
    assert limits(share=0.0).refuse(verdict(), 100.0) == "share"


def test_a_share_is_a_share() -> None:
    """By chance, of all failures alike."""
    some = limits(share=0.25, per_min=6000.0, per_reason_per_min=600.0)
    taken = sum(some.refuse(verdict(), 100.0 + n) is None for n in range(400))
    assert 60 < taken < 140
