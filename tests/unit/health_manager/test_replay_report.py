"""What is printed of a replay."""

import io
from dataclasses import replace

from rich.console import Console

from gatemesh_health_manager.comparing import Comparison, Difference
from gatemesh_health_manager.replay_report import (
    compared_fields,
    pairs,
    played_fields,
    show_compared,
    show_played,
)
from gatemesh_health_manager.replaying import Changed, Step
from gatemesh_health_manager.usual import Episode, Ledger
from gatemesh_health_manager.what_if import Outcomes

from .samples import NOW, at

ONE = Episode("i", "engine-0", "default", "A", NOW, "resolved", 3.0)
STEP = Step(NOW, "engine-0", 1, "healthy", "condemned", "draining", "i", 70.0)


def printed(show: object, *values: object) -> str:
    """Return what goes to the console."""
    console = Console(file=io.StringIO(), width=200)
    assert callable(show)
    show(console, *values)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_nearest_incident_is_the_same_trouble() -> None:
    """Of one instance, within ten minutes; each once."""
    near, nearer = replace(ONE, opened_at=at(300)), replace(ONE, opened_at=at(-60))
    far, foreign = replace(ONE, opened_at=at(700)), replace(ONE, instance_id="engine-1")
    found = pairs([ONE], [near, nearer, far, foreign])
    assert [(one, other) for one, other in found if one] == [(ONE, nearer)]
    assert [other for one, other in found if not one] == [foreign, near, far]


def test_differences_are_shown_and_identity_is_said() -> None:
    """Both sides of the first difference."""
    same = Comparison(10, 2, 1, [], [])
    assert "every decision is the stored one" in printed(show_compared, same)
    outside = Changed("x", at(60), {"restarts": ((NOW,), ()), "penalty": (0.0, 5.0)})
    differences = [Difference("engine-0", STEP, None)]
    other = replace(same, differences=differences, changed_outside=[outside])
    text = printed(show_compared, other)
    assert "healthy -> draining (condemned), score 70" in text
    assert "replayed: nothing" in text
    assert "x was changed by something else" in text
    assert "restarts, penalty" in text
    assert compared_fields(other)["changed_outside"] == ["x"]
    assert compared_fields(other)["changed_fields"]["x"]["fields"] == ["restarts", "penalty"]
    assert compared_fields(other)["identical"] is False
    assert compared_fields(same)["identical"] is True


def test_what_other_rules_change_is_shown() -> None:
    """Incidents side by side, then the sums."""
    outcomes = Outcomes(Ledger(), Ledger())
    assert "incidents of conditions A to D" in printed(show_played, outcomes, NOW, at(60))
    assert played_fields(outcomes, NOW, at(60))["stored"] == {
        "incidents": 0,
        "out_of_rotation_s": 0,
        "median_isolated_s": None,
    }
