"""Programs that only tests run: a browser, and the checker of Prometheus."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.prerequisites import INSTALL_TIMEOUT_S, install_package
from gatemesh_mesh.progress import Progress

PROMTOOL_VARIABLE = "GATEMESH_PROMTOOL"
BROWSER_VARIABLE = "GATEMESH_CHROMIUM"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FETCHING = (("apt-get", "download", "-q"), ("dpkg-deb", "-x"))
"""Download into the present folder, and unpack an archive below one."""


def promtool_facts(folder: Path, progress: Progress, package: str = "prometheus") -> dict[str, str]:
    """Return the variable that names promtool; none where it cannot be had.

    Its package is unpacked below a folder, not installed: that would start a server.
    """
    program = folder / "usr" / "bin" / "promtool"
    if not program.exists() and (found := shutil.which("promtool")) is not None:
        return {PROMTOOL_VARIABLE: found}
    if not program.exists():
        with progress.step("Fetching promtool (once)"):
            unpack(package, folder)
    return {PROMTOOL_VARIABLE: str(program)} if program.exists() else {}


def unpack(package: str, folder: Path, commands: Sequence[Sequence[str]] = FETCHING) -> None:
    """Fetch a Debian package and unpack it below a folder; where that fails, nothing is there."""
    folder.mkdir(parents=True, exist_ok=True)
    download, extract = commands
    try:
        run([*download, package], folder)
        for archive in sorted(folder.glob(f"{package}_*.deb")):
            run([*extract, str(archive), str(folder)], folder)
            archive.unlink()
    except (OSError, subprocess.SubprocessError):
        return


def run(command: Sequence[str], folder: Path) -> None:
    """Run one command in a folder. Raises OSError or SubprocessError where it fails."""
    subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=INSTALL_TIMEOUT_S)


def ensure_browser(progress: Progress, browsers: Sequence[str] = BROWSERS) -> None:
    """Install Chromium where there is no browser for the console's tests; they skip without."""
    if os.environ.get(BROWSER_VARIABLE) or any(map(shutil.which, browsers)):
        return
    try:
        install_package("chromium", progress, "or go without the tests in a browser")
    except MeshError as error:
        progress.note(f"the console's tests in a browser are skipped: {error.reason}")
