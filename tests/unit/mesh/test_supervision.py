"""What can be told of a supervisord without running one."""

from pathlib import Path

from gatemesh_mesh.state import StateFolder
from gatemesh_mesh.supervision import Supervision, tail


def test_nobody_answers_where_nothing_runs(tmp_path: Path) -> None:
    """`status` on a stopped stack is an answer."""
    folder = StateFolder(tmp_path)
    folder.create()
    supervision = Supervision(folder)
    assert not supervision.answers()
    assert supervision.survivors() == []
    assert supervision.close() == []


def test_the_end_of_a_log(tmp_path: Path) -> None:
    """A message holds the last lines, or says that there are none."""
    assert tail(tmp_path / "none") == "(no log)"
    log = tmp_path / "x.log"
    log.write_text("a\nb\nc\n")
    assert tail(log, lines=2) == "\n    b\n    c"
