"""What an explanation is made of; the reading is tested on a real database."""

from datetime import timedelta

from gatemesh_ctl.explain_facts import longest_window, pool_rules, with_decided
from gatemesh_ctl.store import Row
from gatemesh_health_manager.policy import parse_policy

POLICY = parse_policy("[pools.chat.condition_a]\nwindow_s = 1800\n").model_dump(mode="json")


def test_a_pool_has_its_own_rules() -> None:
    """Others have the defaults."""
    assert pool_rules(POLICY, "chat")["condition_a"]["window_s"] == 1800
    assert pool_rules(POLICY, "code")["condition_a"]["window_s"] == 60
    assert pool_rules({}, "code") == {}


def test_evidence_reaches_as_far_back_as_a_window() -> None:
    """Or it would be cut off."""
    assert longest_window(pool_rules(POLICY, "chat")) == timedelta(seconds=1800)
    assert longest_window({}) == timedelta(0)


def test_verdicts_get_what_deciding_adds() -> None:
    """By their number; one without stays as it is."""
    rows: list[Row] = [{"id": 1, "score": 0.5}, {"id": 2, "score": None}]
    merged = with_decided(rows, [{"id": 1, "prompt_key": "p"}])
    assert merged == [{"id": 1, "score": 0.5, "prompt_key": "p"}, {"id": 2, "score": None}]
