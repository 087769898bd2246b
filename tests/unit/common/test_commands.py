"""Orders to the executor."""

from datetime import UTC, datetime

import pytest

from gatemesh_common.commands import COMMAND, RepairInstance, ReplaceInstance
from gatemesh_common.words import Action

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_every_action_has_a_command() -> None:
    """An action that nobody can send would be a lie."""
    for action in Action:
        fields = {
            "timestamp": NOON,
            "instance_id": "engine-0",
            "action": action.value,
            "incarnation": 1,
            "fence": 1,
            "expires_at": NOON,
        }
        assert COMMAND.validate_python(fields).action is action


@pytest.mark.parametrize("kind", [RepairInstance, ReplaceInstance])
def test_a_command_stands_under_its_action(kind: type[RepairInstance | ReplaceInstance]) -> None:
    """Consumers bind by it."""
    order = kind(timestamp=NOON, instance_id="e", incarnation=1, fence=1, expires_at=NOON)
    assert order.key() == f"command.v1.{order.action}.default.e"
