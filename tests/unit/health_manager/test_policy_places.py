"""Where a fault of the policy file stands."""

import pytest

from gatemesh_common.invalid import Place
from gatemesh_health_manager.policy_places import explained

TEXT = """
[playbooks.mine]
steps = ["drain"]

[defaults.condition_a]
more_than = 1

[pools.chat.drain]
grace_s = 2
[[defaults.own_conditions]]
name = "a1"
[[defaults.own_conditions]]
name = "b1"
"""


@pytest.mark.parametrize(
    ("place", "told"),
    [
        pytest.param(("defaults", "condition_a", "more_than"), "line 6", id="key"),
        pytest.param(("defaults", "condition_a", "other"), "line 5", id="table-of-a-missing-key"),
        pytest.param(("pools", "chat", "drain", "grace_s"), "line 9", id="pool"),
        pytest.param(("defaults", "own_conditions", 1, "name"), "line 13", id="one-of-several"),
    ],
)
def test_the_line_is_named(place: Place, told: str) -> None:
    """That of the key, or of the table where it should stand."""
    words = ".".join(map(str, place))
    assert explained("p.toml", TEXT, [(place, "wrong")]) == f"p.toml {told}: {words}: wrong"


def test_a_playbook_is_named_as_the_file_has_it() -> None:
    """Pools inherit it from the top of the file."""
    faults = [(("defaults", "playbooks", "mine", "steps"), "wrong")]
    assert explained("p", TEXT, faults) == "p line 3: playbooks.mine.steps: wrong"


def test_what_is_inherited_is_told_once() -> None:
    """A pool is not to blame for the defaults; for its own keys it is."""
    tail = ("condition_a", "more_than")
    faults = [
        (("defaults", *tail), "wrong"),
        (("pools", "chat", *tail), "wrong"),
        (("pools", "chat", "drain", "grace_s"), "wrong"),
    ]
    lines = explained("p", TEXT, faults).splitlines()
    assert lines == [
        "p line 6: defaults.condition_a.more_than: wrong",
        "p line 9: pools.chat.drain.grace_s: wrong",
    ]
