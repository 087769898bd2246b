"""What all commands share: where they print, and how they fail."""

import json
from collections.abc import Sequence

import pytest

from gatemesh_ctl import application as frame
from gatemesh_ctl.errors import CtlError
from gatemesh_ctl.store import Row

ROWS: Sequence[Row] = [{"instance_id": "engine-0", "more": 1}]


def test_rows_are_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs get every column, people the ones that fit."""
    frame.show_rows(ROWS, ("instance_id",), json_form=False)
    assert "more" not in capsys.readouterr().out
    frame.show_rows(ROWS, ("instance_id",), json_form=True)
    assert json.loads(capsys.readouterr().out) == ROWS
    frame.show_rows([], ("instance_id",), json_form=True)
    assert json.loads(capsys.readouterr().out) == []


def test_errors_go_where_errors_go(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets the data alone."""
    frame.print_error(CtlError("wrong [red]", "way out"))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "error: wrong [red]\n  way out\n"


def test_without_an_address_there_is_no_store(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The variable is named."""
    monkeypatch.delenv("GATEMESH_DATABASE_URL", raising=False)
    monkeypatch.setenv("GATEMESH_STATE", str(tmp_path_factory.mktemp("none")))
    with pytest.raises(CtlError, match="GATEMESH_DATABASE_URL"):
        frame.open_store()
