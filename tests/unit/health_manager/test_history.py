"""A history goes into a file and comes out as it was."""

import gzip
from datetime import timedelta
from pathlib import Path

import pytest
from benchmarks.recorded import DAWN, MadeUpPool

from gatemesh_common.messages import Verdict
from gatemesh_health_manager.comparing import repeat
from gatemesh_health_manager.history import (
    Given,
    History,
    HistoryError,
    StoredIncident,
    read_history,
    write_history,
)
from gatemesh_health_manager.inputs import Input

from .samples import NOW, verdict

NAMES = ("engine-0", "engine-1")


def parts(given: Given) -> tuple[Input, list[Verdict]]:
    """Return an input as lists compare."""
    return given.input, list(given.verdicts)


def history() -> History:
    """Return a short history with one of each."""
    pool = MadeUpPool(NAMES, seed=2)
    pool.live(120, 5)
    made = pool.recorder.history()
    ended = NOW + timedelta(seconds=3)
    incident = StoredIncident("i", "engine-0", "default", "A", NOW, ended, "resolved")
    return History(
        made.policies, made.begin, [(NOW, verdict())], made.inputs, made.steps, [incident]
    )


def test_nothing_is_lost(tmp_path: Path) -> None:
    """Every part of it, and the decisions with it."""
    made, path = history(), tmp_path / "history.jsonl.gz"
    write_history(path, made)
    again = read_history(path)
    for part in ("policies", "begin", "earlier", "steps", "incidents"):
        assert getattr(again, part) == getattr(made, part)
    assert [parts(one) for one in again.inputs] == [parts(one) for one in made.inputs]
    assert again.steps
    assert repeat(again, DAWN).differences == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", "holds no fleet", id="empty"),
        pytest.param(b"{}", "line 1: no part", id="no-key"),
        pytest.param(b"[1]", "line 1: no part", id="no-object"),
        pytest.param(b'{"step":{}}', "line 1: no part", id="no-step"),
        pytest.param(b'{"policy":"x"}', "line 1: no part", id="no-policy"),
    ],
)
def test_what_is_no_history_is_told(tmp_path: Path, content: bytes, said: str) -> None:
    """The file and the line are named."""
    path = tmp_path / "history.jsonl.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(HistoryError, match=said):
        read_history(path)


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path) -> None:
    """Not there, not packed, no folder."""
    plain, broken = tmp_path / "plain", tmp_path / "broken"
    plain.write_text("{}")
    packed = gzip.compress(b"x" * 5000)
    broken.write_bytes(packed[:12] + b"\xff" * 9 + packed[21:])
    for path in (tmp_path / "none", plain, broken):
        with pytest.raises(HistoryError, match=path.name):
            read_history(path)
    with pytest.raises(HistoryError, match="cannot be written"):
        write_history(tmp_path / "none" / "file", history())
