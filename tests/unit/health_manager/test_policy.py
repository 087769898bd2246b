"""The policy file: defaults, inheritance per pool, and errors that name the place."""

from pathlib import Path

import pytest

from gatemesh_common.messages import CheckLevel
from gatemesh_health_manager.policy import Policy, PolicyError, load_policy, parse_policy

SHIPPED = Path(__file__).resolve().parents[3] / "policy.toml"


def test_the_shipped_file_holds_the_defaults() -> None:
    """Deleting the file, or a line of it, changes nothing."""
    assert load_policy(SHIPPED) == Policy()


def test_the_defaults_are_those_of_the_design() -> None:
    """More than 5 in 60 s from at least 3 prompts; one life; half of a pool."""
    rules = Policy().for_pool("any")
    assert (rules.condition_a.more_than, rules.condition_a.window_s) == (5, 60)
    assert (rules.condition_a.min_prompts, rules.condition_a.max_per_prompt) == (3, 1)
    assert (rules.ejection.max_out_share, rules.ejection.min_in_rotation) == (0.5, 1)
    assert (rules.restart.restarts, rules.restart.restart_window_s) == (3, 3600)
    assert rules.drain.grace_s == 60
    assert (rules.condition_c.consecutive, rules.condition_d.consecutive) == (3, 2)
    assert (rules.probes.every_requests, rules.probes.every_s) == (500, 300)
    assert not rules.repair.enabled


def test_a_pool_inherits_what_it_does_not_name() -> None:
    """One changed key does not reset its neighbours."""
    policy = parse_policy(
        "[defaults.condition_a]\nmore_than = 9\nwindow_s = 30\n"
        "[pools.chat.condition_a]\nwindow_s = 10\n"
    )
    chat = policy.for_pool("chat").condition_a
    assert (chat.more_than, chat.window_s) == (9, 10)
    assert policy.for_pool("other").condition_a.window_s == 30


def test_points_that_are_not_named_keep_their_default() -> None:
    """A pool that weighs one gate anew does not forgive the others."""
    policy = parse_policy("[pools.chat.score.points]\nL1 = 50\n")
    points = policy.for_pool("chat").score.points
    assert (points[CheckLevel.L1], points[CheckLevel.L3]) == (50, 15)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            "[defaults.condition_a]\n\nmore_then = 5",
            "line 3: defaults.condition_a.more_then",
            id="misspelt",
        ),
        pytest.param(
            "[defaults.ejection]\nmax_out_share = 1.5",
            "line 2: defaults.ejection.max_out_share",
            id="out-of-bounds",
        ),
        pytest.param(
            "[pools.chat.drain]\ngrace_s = -1", "line 2: pools.chat.drain.grace_s", id="pool"
        ),
        pytest.param(
            "[defaults.score]\nsuspect_below = 90", "clear_above: must be greater", id="no-gap"
        ),
        pytest.param("[defaults", "no valid TOML", id="no-toml"),
        pytest.param(
            "[defaults.condition_c]\nconsecutive = 11",
            "line 2: defaults.condition_c.consecutive",
            id="a-streak-longer-than-what-is-kept",
        ),
        pytest.param(
            "[defaults.repair]\nconditions = ['E']", "defaults.repair.conditions", id="condition"
        ),
        pytest.param(
            '[[defaults.own_conditions]]\nname = "a1"\nlevels = ["L1"]\n'
            '[[defaults.own_conditions]]\nname = "b1"\nlevels = ["L9"]',
            "line 6: defaults.own_conditions.1.levels",
            id="own-level",
        ),
        pytest.param(
            '[[pools.chat.own_conditions]]\nname = "exit"\nlevels = ["L1"]',
            "line 2: pools.chat.own_conditions.0.name: is taken",
            id="own-name-taken",
        ),
        pytest.param(
            '[[defaults.own_conditions]]\nlevels = ["L1"]',
            "line 1: defaults.own_conditions.0.name: Field required",
            id="own-without-name",
        ),
        pytest.param(
            '[[defaults.own_conditions]]\nname = "a1"\nlevels = ["L1"]\n'
            '[[defaults.own_conditions]]\nname = "a1"\nlevels = ["L2"]',
            "line 1: defaults.own_conditions: name: a1 stands there twice",
            id="own-name-twice",
        ),
        pytest.param(
            '[roles.oncall]\npools = ["chat"]\nactions = ["drain", "fly"]\n[operators]',
            "line 3: roles.oncall.actions.1: Input should be",
            id="role-action",
        ),
        pytest.param(
            '[roles.oncall]\nactions = ["*"]\n[operators]\nbob = ["oncall"]\n"al.ice" = ["boss"]',
            "line 5: operators.al.ice: there is no role 'boss'; known roles: oncall",
            id="operator-role",
        ),
        pytest.param(
            '\n[roles.oncall]\nactions = ["*"]',
            "line 2: roles.oncall: nobody has a role",
            id="roles-without-operators",
        ),
        pytest.param('[operators]\nbob = "boss"', "line 2: operators.bob", id="operator-no-list"),
        pytest.param("[default.drain]\ngrace_s = 1", "line 1: default: Extra", id="table"),
        pytest.param("pools = 3", "line 1: pools", id="pools-no-table"),
        pytest.param("[pools]\nchat = 3", "line 2: pools.chat", id="pool-no-table"),
    ],
)
def test_a_fault_names_key_and_line(text: str, told: str) -> None:
    """Whoever wrote the file finds the place."""
    with pytest.raises(PolicyError) as caught:
        parse_policy(text)
    assert told in str(caught.value)


def test_a_missing_file_names_the_setting(tmp_path: Path) -> None:
    """The way out is in the message."""
    with pytest.raises(PolicyError, match="GATEMESH_HEALTH_MANAGER_POLICY_FILE"):
        load_policy(tmp_path / "policy.toml")


def test_a_file_that_is_no_text_says_so(tmp_path: Path) -> None:
    """Instead of a traceback."""
    path = tmp_path / "policy.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError, match=r"policy.toml: no UTF-8 text"):
        load_policy(path)


def test_the_version_follows_the_rules_not_the_words() -> None:
    """Comments and order change nothing; a value does."""
    one = parse_policy("# hello\n[defaults.drain]\ngrace_s = 60")
    other = parse_policy("[defaults.condition_a]\nlevels = ['L2', 'L1']\n")
    changed = parse_policy("[defaults.drain]\ngrace_s = 61")
    assert one.version == other.version == Policy().version
    assert changed.version != one.version
    assert len(one.version) == 12


def test_a_pool_may_have_conditions_of_its_own() -> None:
    """Instead of those of the defaults; the rules' version knows them."""
    text = '[[defaults.own_conditions]]\nname = "many_l2"\nlevels = ["L2"]\nmore_than = 9\n'
    rules = parse_policy(text + '[[pools.chat.own_conditions]]\nname = "one"\nlevels = ["L1"]\n')
    assert [rule.name for rule in rules.for_pool("other").own_conditions] == ["many_l2"]
    assert [rule.name for rule in rules.for_pool("chat").own_conditions] == ["one"]
    assert rules.version != Policy().version
    assert Policy.model_validate_json(rules.canonical()) == rules


def test_who_may_ask_is_a_part_of_the_rules() -> None:
    """Their version knows it, and a replay finds it in them."""
    text = '[roles.oncall]\nactions = ["restart", "drain"]\n[operators]\nbob = ["oncall"]\n'
    rules = parse_policy(text)
    assert rules.roles["oncall"].allows("drain", "chat")
    assert rules.operators == {"bob": frozenset({"oncall"})}
    assert Policy.model_validate_json(rules.canonical()) == rules
    assert rules.version != Policy().version == parse_policy("").version
    assert parse_policy("[operators]").operators == {}
