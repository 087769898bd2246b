"""The check as a process of its own."""

from pathlib import Path

import pytest

from gatemesh_executor.weights.checking import ProcessCheck
from gatemesh_executor.weights.manifest import WeightsRefusedError


async def test_findings_come_back(good_folder: Path, tmp_path: Path) -> None:
    """A refusal is raised here, though it was found there."""
    assert await ProcessCheck().scan(good_folder) == ()
    with pytest.raises(WeightsRefusedError, match="none"):
        await ProcessCheck().verify(good_folder, tmp_path / "none", ())


async def test_a_check_that_dies_refuses(
    good_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that nobody could look at are not served."""
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    with pytest.raises(WeightsRefusedError, match="ended with code"):
        await ProcessCheck().scan(good_folder)
