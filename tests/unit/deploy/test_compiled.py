"""Which modules of the agent are compiled, as far as no compiler is needed."""

import shutil
from pathlib import Path

import pytest
from deploy.compiled import agent as compiled


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a folder that holds the packages."""
    for package in compiled.PACKAGES:
        source = compiled.REPOSITORY / package
        shutil.copytree(source, tmp_path / source.name)
    return tmp_path


def test_every_module_that_is_to_be_compiled_is_there(copy: Path) -> None:
    """A renamed one must be renamed in the list."""
    files = compiled.sources(copy)
    assert [each for each in files if not (copy / each).is_file()] == []
    assert "gatemesh_agent/gates/chain.py" in files
    assert "gatemesh_agent/gates/characters.py" not in files


def test_nobody_inherits_from_what_is_compiled(copy: Path) -> None:
    """A compiled class cannot be the base of one that is not."""
    files = set(compiled.sources(copy))
    bases = {
        line.split()[1].split("(")[0].rstrip(":")
        for each in files
        for line in (copy / each).read_text().splitlines()
        if line.startswith("class ")
    }
    others = [each for each in copy.rglob("*.py") if str(each.relative_to(copy)) not in files]
    found = [
        (each.name, line)
        for each in others
        for line in each.read_text().splitlines()
        if line.startswith("class ") and "(" in line
        if bases & set(line.partition("(")[2].rstrip("):").replace(",", " ").split())
    ]
    assert found == []


def test_a_folder_of_before_is_left_alone(tmp_path: Path) -> None:
    """What an agent may be running from is not written over."""
    with pytest.raises(SystemExit):
        compiled.main([str(tmp_path)])
