"""System packages that the embedded stack needs, installed where that is allowed."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.progress import Progress

INSTALL_TIMEOUT_S = 900
RABBIT_HOMES = ("/usr/lib/rabbitmq/lib", "/opt", "/usr/local/lib/rabbitmq/lib")
"""Folders in which packages put `rabbitmq_server-VERSION/sbin`."""

BALANCERS = {"haproxy": "haproxy", "nginx": "nginx"}
"""Programs that tests run against, and the packages that bring them."""

FAULTS = (
    (
        re.compile(r"no space left on device|enough free space|disk quota", re.I),
        "the disk is full",
        "free some space (rabbitmq-server needs about 100 MB), then run the command again",
    ),
    (
        re.compile(
            r"could not resolve|temporary failure|could not connect|failed to fetch"
            r"|unable to locate package|connection (timed out|refused)|network is unreachable",
            re.I,
        ),
        "the package source cannot be reached or does not carry the package",
        "check the network and the apt sources",
    ),
    (
        re.compile(r"could not get lock|unable to acquire the dpkg", re.I),
        "another package installation is running",
        "wait for it to end, then run the command again",
    ),
    (
        re.compile(r"dpkg was interrupted", re.I),
        "an earlier package installation was interrupted",
        "run `dpkg --configure -a` as root, then the command again",
    ),
)
"""What the output of apt-get says, what that means, and the way out."""


def find_rabbitmq(homes: Iterable[str] = RABBIT_HOMES) -> Path | None:
    """Return the folder with the server's own scripts; the newest version when there are several.

    The wrappers that packages put on the path switch user and use the default node's folders.
    """
    found = [path for home in homes for path in Path(home).glob("rabbitmq_server-*/sbin")]
    return max(found, key=_version, default=None)


def _version(sbin: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", sbin.parent.name))


def ensure_rabbitmq(progress: Progress, homes: Iterable[str] = RABBIT_HOMES) -> Path:
    """Return the folder with the broker's scripts; install the package first when it is absent.

    Raises:
        MeshError: it is absent and cannot be installed; says why and what to do.
    """
    homes = tuple(homes)
    found = find_rabbitmq(homes)
    if found is None:
        alternative = "or set GATEMESH_AMQP_URL to use one that runs already"
        install_package("rabbitmq-server", progress, alternative)
        found = find_rabbitmq(homes)
    if found is None:
        raise MeshError(
            "rabbitmq-server is installed, but its scripts are in none of " + ", ".join(homes),
            "set GATEMESH_AMQP_URL to the address of a running RabbitMQ",
        )
    return found


def ensure_balancers(
    progress: Progress, balancers: Mapping[str, str] = BALANCERS, path: str | None = None
) -> None:
    """Install the load balancers that tests run against, where they are missing.

    Raises:
        MeshError: one is absent and cannot be installed; says why and what to do.
    """
    searched = path or os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
    for program, package in balancers.items():
        if shutil.which(program, path=searched) is None:
            install_package(package, progress, "or go without the tests of load balancers")


def install_package(package: str, progress: Progress, alternative: str) -> None:
    """Install one Debian package; `alternative` ends the advice where that fails.

    Raises:
        MeshError: no apt, no rights, no network, no space.
    """
    if shutil.which("apt-get") is None:
        raise MeshError(
            f"{package} is not installed and this system has no apt-get",
            f"install {package} with the system's own package tool, {alternative}",
        )
    if os.geteuid() != 0:
        raise MeshError(
            f"{package} is not installed, and installing it needs root",
            f"run `sudo apt-get install {package}` once, {alternative}",
        )
    with progress.step(f"Installing {package} (once)"):
        run_apt(["update", "-q"], alternative, must_pass=False)
        run_apt(["install", "-q", "-y", "--no-install-recommends", package], alternative)


def run_apt(arguments: list[str], alternative: str, *, must_pass: bool = True) -> None:
    """Run apt-get without questions; a stale list is no reason to stop, a failed install is.

    Raises:
        MeshError: it failed and `must_pass`, or ran past its time.
    """
    command = ["apt-get", "-o", "DPkg::Lock::Timeout=120", *arguments]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    try:
        result = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MeshError(
            f"`{' '.join(command)}` did not end within {INSTALL_TIMEOUT_S} s",
            f"check the network and run it by hand, {alternative}",
        ) from None
    if result.returncode and must_pass:
        raise explain_apt(arguments, result.stdout + result.stderr, alternative)


def explain_apt(arguments: list[str], output: str, alternative: str) -> MeshError:
    """Turn what apt-get wrote into what is wrong and what to do."""
    for pattern, meaning, cure in FAULTS:
        if pattern.search(output):
            return MeshError(f"cannot install {arguments[-1]}: {meaning}", f"{cure}, {alternative}")
    tail = "\n    ".join(output.strip().splitlines()[-5:])
    return MeshError(
        f"cannot install {arguments[-1]}; apt-get ended with:\n    {tail}",
        f"run `apt-get {' '.join(arguments)}` by hand, {alternative}",
    )
