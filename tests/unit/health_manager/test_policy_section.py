"""What every table of the policy file promises."""

import pytest
from pydantic import ValidationError

from gatemesh_health_manager.policy_section import Section


class Example(Section):
    """A table with one key."""

    key: int = 1


def test_an_unknown_key_is_an_error() -> None:
    """It is a typing mistake, and its rule would be missing silently."""
    with pytest.raises(ValidationError, match="kex"):
        Example.model_validate({"kex": 2})


def test_rules_are_frozen() -> None:
    """Nobody changes rules that decisions name by their version."""
    with pytest.raises(ValidationError, match="frozen"):
        Example().key = 2  # type: ignore[misc]
