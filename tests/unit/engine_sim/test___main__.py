"""The command line."""

import sys

import pytest

from gatemesh_engine_sim.__main__ import main


def test_wrong_settings_end_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One clean message, no traceback."""
    monkeypatch.setattr(sys, "argv", ["sim", "--port", "x"])
    assert main() == 2
    assert capsys.readouterr().err.startswith("--port (GATEMESH_SIM_PORT): ")
