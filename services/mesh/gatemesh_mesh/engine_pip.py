"""Runs pip inside the engine's own environment, and words its failures."""

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatemesh_mesh.engine_machine import RealEngineUnavailableError

DEADLINE_S = 1800
RunCommand = Callable[[Sequence[str]], None]


@dataclass(frozen=True)
class PipFault:
    """What pip's output says, what that means, and the way out."""

    pattern: re.Pattern[str]
    reason: str
    cure: str


FAULTS = (
    PipFault(
        re.compile(r"no space left on device|disk quota exceeded", re.I),
        "the disk filled up during the installation",
        "free 6 GiB (the temporary folder counts too: TMPDIR), then run the command again",
    ),
    PipFault(
        re.compile(
            r"name resolution|name or service not known|newconnectionerror|connection refused"
            r"|network is unreachable|timed out|proxyerror|connection (reset|aborted)|sslerror",
            re.I,
        ),
        "the package index cannot be reached",
        "check the network and pip's settings (`pip config list`), then run the command again",
    ),
    PipFault(
        re.compile(r"no matching distribution found for torch|requires? torch==", re.I),
        "pip finds no CPU build of torch; it is not on the default index",
        "give pip the index with PyTorch's CPU builds (PIP_EXTRA_INDEX_URL) or a folder with the "
        "wheel (PIP_FIND_LINKS), then run the command again",
    ),
    PipFault(
        re.compile(r"no matching distribution found|is not a supported wheel", re.I),
        "no build of the engine fits this Python and processor",
        "use Python 3.11 on x86_64 Linux",
    ),
)
"""The first that matches counts, so what explains others stands first."""


def run_quietly(argv: Sequence[str]) -> None:
    """Run one step of the installation; nothing of it reaches the terminal.

    Raises:
        RealEngineUnavailableError: it failed or ran past its time.
    """
    try:
        result = subprocess.run(
            argv,
            env=pip_environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RealEngineUnavailableError(
            f"`{shorten(argv)}` did not end within {DEADLINE_S} s",
            "check the network, then run the command again; it goes on where it stopped",
        ) from None
    if result.returncode:
        raise explain(argv, result.stdout + result.stderr)


def pip_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which pip asks nothing and gives up early without a network."""
    unwanted = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"}
    kept = {name: value for name, value in environment.items() if name not in unwanted}
    quiet = {
        "PIP_RETRIES": "2",
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_PROGRESS_BAR": "off",
        "HF_HUB_OFFLINE": "1",
        "LC_ALL": "C.UTF-8",
    }
    return kept | quiet


def explain(argv: Sequence[str], output: str) -> RealEngineUnavailableError:
    """Turn what a failed step wrote into what is wrong and what to do."""
    for fault in FAULTS:
        if fault.pattern.search(output):
            return RealEngineUnavailableError(fault.reason, f"{fault.cure}, or use --sim")
    tail = "\n    ".join(output.strip().splitlines()[-5:])
    return RealEngineUnavailableError(
        f"`{shorten(argv)}` failed:\n    {tail}",
        "run that command by hand to see more, or use --sim",
    )


def shorten(argv: Sequence[str]) -> str:
    """Return a command for people: the program by name, and what it was asked."""
    return " ".join([Path(argv[0]).name, *argv[1:]])
