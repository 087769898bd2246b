"""The release knows the schema that it is made for."""

from pathlib import Path

from gatemesh_common.schema import SCHEMA_VERSION

MIGRATIONS = Path(__file__).resolve().parents[3] / "migrations" / "versions"


def test_it_is_that_of_the_newest_migration() -> None:
    """Whoever adds a migration writes its number into `gatemesh_common/schema.py` too."""
    numbers = [file.name.partition("_")[0] for file in MIGRATIONS.glob("[0-9]*_*.py")]
    assert max(numbers) == SCHEMA_VERSION
