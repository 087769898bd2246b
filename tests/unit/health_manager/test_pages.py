"""The pages about policy, states and SQL follow the code."""

import re
from pathlib import Path
from typing import get_args

import pytest

from gatemesh_common.messages import InstanceState
from gatemesh_health_manager.migrate import find_migrations
from gatemesh_health_manager.own_conditions import (
    BurnCondition,
    ConsecutiveCondition,
    OwnCondition,
    RateCondition,
)
from gatemesh_health_manager.playbooks import SHIPPED, Step
from gatemesh_health_manager.policy import PoolPolicy
from gatemesh_health_manager.states import Trigger

DOCS = Path(__file__).parents[3] / "docs"
SECTIONS = {name: field.annotation for name, field in PoolPolicy.model_fields.items()}
KEYS = [
    f"{section}.{key}"
    for section, kind in SECTIONS.items()
    for key in getattr(kind, "model_fields", {})
]
OWN_KINDS = (OwnCondition, ConsecutiveCondition, RateCondition, BurnCondition)
OWN_KEYS = {key for kind in OWN_KINDS for key in kind.model_fields}
VIEWS = sorted(
    name
    for step in (find_migrations(None) / "versions").glob("*.py")
    for name in re.findall(r"\b\w+_v\d+\b", step.read_text())
)


@pytest.mark.parametrize("key", KEYS)
def test_every_rule_is_described(key: str) -> None:
    """Whoever changes one finds what it means."""
    assert f"`{key}`" in (DOCS / "policy.md").read_text()


@pytest.mark.parametrize("key", sorted(OWN_KEYS))
def test_every_key_of_own_conditions_is_described(key: str) -> None:
    """In the table of their section."""
    section = (
        (DOCS / "policy.md").read_text().split("## Conditions of your own")[1].split("\n## ")[0]
    )
    assert f"`{key}`" in section


@pytest.mark.parametrize("step", [*get_args(Step), *SHIPPED])
def test_every_step_and_shipped_playbook_is_described(step: str) -> None:
    """Whoever writes a playbook finds what each step does."""
    section = (DOCS / "policy.md").read_text().split("## Playbooks")[1].split("\n## ")[0]
    assert f"`{step}`" in section


@pytest.mark.parametrize("word", [*InstanceState, *Trigger])
def test_every_state_and_trigger_is_described(word: str) -> None:
    """Whoever reads a timeline finds what it says."""
    assert f"`{word}`" in (DOCS / "states.md").read_text()


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_described(view: str) -> None:
    """Whoever builds a dashboard finds what there is."""
    assert f"`{view}`" in (DOCS / "sql-views.md").read_text()
