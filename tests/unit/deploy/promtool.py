"""The checker of Prometheus, where this machine has it."""

import shutil
import subprocess

import pytest

PROMTOOL = shutil.which("promtool")

needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed (Debian package prometheus)"
)


def promtool(*arguments: str, given: bytes = b"", folder: str | None = None) -> str:
    """Run it and return what it said; fails with its words."""
    command = [str(PROMTOOL), *arguments]
    result = subprocess.run(command, input=given, capture_output=True, cwd=folder, check=False)
    said = (result.stdout + result.stderr).decode()
    assert result.returncode == 0, said
    return said
