"""supervisord refuses to run for a starter that has gone."""

import subprocess
import sys


def test_a_starter_that_has_gone_is_noticed() -> None:
    """No daemon is left when its starter dies first."""
    command = [sys.executable, "-m", "gatemesh_mesh.supervisord", "1", "-c", "/none"]
    result = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert result.returncode == 1
    assert result.stdout + result.stderr == b""
