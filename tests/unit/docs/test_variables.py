"""Every variable that the pages name is one that something reads."""

import re
from pathlib import Path

import pytest
from deploy.docs.settings_page import settings_classes, variable_of

from gatemesh_engine_sim.settings import PREFIX, SimSettings

from .pages import PAGES, REPOSITORY

VARIABLE = re.compile(r"\bGATEMESH_[A-Z0-9_]*[A-Z0-9]\b(?![*…{])")
SETTINGS = {
    variable_of(found, name, field)
    for found in settings_classes().values()
    for name, field in found.model_fields.items()
} | {f"{PREFIX}{name}".upper() for name in SimSettings.model_fields}
PLACES = ("benchmarks", "deploy/docker", "libs", "services", "tests")
FILES = [REPOSITORY / "compose.yaml", REPOSITORY / "mesh"]


def read_elsewhere() -> set[str]:
    """Return the variables that are no settings of a service and are written out in the code."""
    roots = [REPOSITORY / place for place in PLACES]
    sources = [path for root in roots for path in (root, *root.rglob("*")) if is_source(path)]
    return {name for path in (*sources, *FILES) for name in VARIABLE.findall(path.read_text())}


def is_source(path: Path) -> bool:
    """Return whether a file is code that reads variables."""
    is_code = path.suffix in {".py", ".sh", ""} and path.name != "settings.py"
    return is_code and path.is_file() and "docs" not in path.relative_to(REPOSITORY).parts


EXAMPLES = {"GATEMESH_SIM_SOME_NAME"}
KNOWN = SETTINGS | read_elsewhere() | EXAMPLES


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_variables_are_read_by_something(path: Path) -> None:
    """One that nobody reads changes nothing, without a word."""
    # The changelog also tells of what was.
    if path.name != "CHANGELOG.md":
        assert sorted(set(VARIABLE.findall(path.read_text())) - KNOWN) == []
