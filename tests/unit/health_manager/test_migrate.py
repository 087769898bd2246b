"""Finding the migrations, and what they are."""

from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from gatemesh_common.errors import SettingsError
from gatemesh_health_manager.migrate import config_for, find_migrations, head_version


def test_the_checkout_brings_its_own() -> None:
    """Nothing has to be set."""
    assert (find_migrations(None) / "versions").is_dir()


def test_another_folder_must_hold_migrations(tmp_path: Path) -> None:
    """The error names the setting."""
    with pytest.raises(SettingsError, match="GATEMESH_HEALTH_MANAGER_MIGRATIONS_DIR"):
        find_migrations(tmp_path)


def test_the_migrations_are_one_line_with_numbers_that_sort() -> None:
    """A manager compares versions as texts."""
    folder = find_migrations(None)
    steps = list(ScriptDirectory.from_config(config_for(folder)).walk_revisions())
    numbers = [step.revision for step in reversed(steps)]
    assert numbers == sorted(numbers)
    assert head_version(folder) == numbers[-1]
    assert all(Path(str(step.path)).name.startswith(f"{step.revision}_") for step in steps)
