"""The command that shows captures, without a database."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gatemesh_ctl import cli
from gatemesh_ctl.application import EXIT_WRONG, application


def test_it_has_help_and_json() -> None:
    """And says that without an id it lists."""
    result = CliRunner().invoke(application, ["capture", "--help"])
    assert result.exit_code == 0
    for word in ("--json", "--incident", "--instance", "listed"):
        assert word in result.output


@pytest.mark.parametrize("words", [[], ["c-1"], ["--incident", "i-1"]])
def test_an_unknown_address_is_told(
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the variable to set."""
    monkeypatch.delenv("GATEMESH_DATABASE_URL", raising=False)
    monkeypatch.setenv("GATEMESH_STATE", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["gatemesh-ctl", "capture", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == EXIT_WRONG
    assert "GATEMESH_DATABASE_URL" in capsys.readouterr().err
