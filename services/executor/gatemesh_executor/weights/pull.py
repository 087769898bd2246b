"""Running the configured pull command: limited environment, capped log, ended as a group."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gatemesh_common.errors import GatemeshError

PASSED_ON = (
    *("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)
"""Variables that every pull command gets; none of ours, which hold passwords."""
LOG_BYTES = 2**20
TAIL_BYTES = 2**13
READ_BYTES = 2**16
LEAVE_S = 5.0
"""Time that the command gets to leave after SIGTERM."""
LOOK_S = 0.05


class PullFailedError(GatemeshError):
    """The pull command could not be run, failed, or took too long; its log is named."""


@dataclass(frozen=True)
class PullOrder:
    """What is run, where, and for how long."""

    argv: tuple[str, ...]
    folder: Path
    log: Path
    environment: Mapping[str, str]
    timeout_s: float


class CappedLog:
    """Keeps the beginning and the end of what a program says, whatever the length."""

    def __init__(self, limit_bytes: int = LOG_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._limit_bytes = limit_bytes
        self._tail_bytes = tail_bytes
        self._dropped = 0

    def add(self, piece: bytes) -> None:
        """Take in what was said."""
        room = max(self._limit_bytes - len(self._head), 0)
        self._head += piece[:room]
        self._tail += piece[room:]
        beyond = max(len(self._tail) - self._tail_bytes, 0)
        self._dropped += beyond
        del self._tail[:beyond]

    def content(self) -> bytes:
        """Return what is kept; a line tells how much is not."""
        gap = f"\n[{self._dropped} bytes left out]\n".encode() if self._dropped else b""
        return bytes(self._head) + gap + bytes(self._tail)


def fill_in(argv: Sequence[str], folder: Path, model_version: str) -> tuple[str, ...]:
    """Return the command with `{folder}` and `{model_version}` replaced."""
    return tuple(
        part.replace("{folder}", str(folder)).replace("{model_version}", model_version)
        for part in argv
    )


def pull_environment(
    ours: Mapping[str, str], names: Sequence[str], folder: Path, model_version: str
) -> dict[str, str]:
    """Return the command's variables: the usual ones, those named, and where to write."""
    passed = {name: ours[name] for name in (*PASSED_ON, *names) if name in ours}
    return passed | {
        "GATEMESH_WEIGHTS_FOLDER": str(folder),
        "GATEMESH_MODEL_VERSION": model_version,
    }


async def run_pull(order: PullOrder) -> None:
    """Run the command to its end.

    Raises:
        PullFailedError: it did not end with code 0 in time. Nothing of it runs any more.
    """
    log = CappedLog()
    try:
        process = await asyncio.create_subprocess_exec(
            *order.argv,
            cwd=order.folder,
            env=dict(order.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise PullFailedError(f"{order.argv[0]}: {error.strerror}") from error
    try:
        async with asyncio.timeout(order.timeout_s):
            await _listen(process, log)
            code = await process.wait()
    except TimeoutError as error:
        raise PullFailedError(f"not done in {order.timeout_s:g} s; see {order.log}") from error
    finally:
        await _end_group(process)
        # A full disk takes no log; what the command did counts.
        with suppress(OSError):
            order.log.write_bytes(log.content())
    if code:
        raise PullFailedError(f"{order.argv[0]} ended with code {code}; see {order.log}")


async def _listen(process: asyncio.subprocess.Process, log: CappedLog) -> None:
    output = process.stdout
    while output is not None and (piece := await output.read(READ_BYTES)):
        log.add(piece)


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """End what is left of the command and its children.

    A child that outlived the command could still write into files that were verified.
    """
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await process.wait()
                await _until_empty(process.pid)
                return


async def _until_empty(group: int) -> None:
    """Return when no process of the group is left."""
    with suppress(ProcessLookupError):
        while True:
            os.killpg(group, 0)
            await asyncio.sleep(LOOK_S)
