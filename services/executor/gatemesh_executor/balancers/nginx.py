"""nginx: an upstream file replaced as a whole, a tested configuration, and workers that are new."""

import asyncio
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gatemesh_executor.balancers.base import (
    BalancerRefusedError,
    BalancerUnavailableError,
    Change,
    Server,
    Standing,
    change_for,
    weight_of,
)
from gatemesh_executor.balancers.config import NginxSettings
from gatemesh_executor.balancers.nginx_processes import (
    ask_to_reload,
    master_of,
    serving_workers,
)
from gatemesh_executor.balancers.upstream_file import servers_of, with_servers
from gatemesh_executor.pace import Pace

POLL_S = 0.05
LOOKS = 2
"""A worker says that it leaves just before it closes its listening sockets."""

Wanted = Mapping[str, tuple[bool, int]]
"""Whether each address is to be down, and its weight."""


class Nginx:
    """One running nginx and one of its upstream files.

    Whether nginx runs with what the file says is known only of files that were loaded by this
    object; the first change therefore reloads even if the file says all of it already.
    """

    def __init__(self, name: str, settings: NginxSettings, pace: Pace) -> None:
        self._name = name
        self._settings = settings
        self._pace = pace
        self._lock = asyncio.Lock()
        self._loaded: str | None = None
        self._loaded_at = float("-inf")

    async def take_out(self, server: Server) -> None:
        """Mark the server `down`, and see the workers go that did not know it."""
        await self._settle({server: 0.0})

    async def put_back(self, server: Server, share: float) -> None:
        """Give the server its weight and take `down` away."""
        await self._settle({server: share})

    async def set_weight(self, server: Server, share: float) -> None:
        """Change the weight, whether the server is down or not."""
        async with self._lock:
            text = await self._read()
            down, _ = self._known(text, server)
            weight = weight_of(share, self._settings.full_weight)
            await self._apply(text, {server.name: (down, weight)})

    async def look(self, server: Server) -> Standing:
        """Read the file; what nginx has not loaded from there does not count as out."""
        return self._standing(await self._read(), server)

    async def assert_again(self, shares: Mapping[Server, float]) -> tuple[Server, ...]:
        """Have the file say this again, and nginx run with it; for weights alone not too often."""
        text = await self._read()
        found = {server: self._standing(text, server) for server in shares}
        changes = {server: change_for(found[server], share) for server, share in shares.items()}
        different = tuple(server for server, change in changes.items() if change is not None)
        only_weights = set(changes.values()) <= {None, Change.SET_WEIGHT}
        paused = self._pace.now() < self._loaded_at + self._settings.weight_pause_s
        if self._loaded == text and only_weights and (paused or not different):
            return ()
        await self._settle(shares)
        return different

    async def _settle(self, shares: Mapping[Server, float]) -> None:
        async with self._lock:
            text = await self._read()
            await self._apply(
                text, {server.name: self._wanted(text, server, shares[server]) for server in shares}
            )

    def _wanted(self, text: str, server: Server, share: float) -> tuple[bool, int]:
        _, weight = self._known(text, server)
        return (False, weight_of(share, self._settings.full_weight)) if share else (True, weight)

    def _standing(self, text: str, server: Server) -> Standing:
        down, weight = self._known(text, server)
        out = down and self._loaded == text
        return Standing(out=out, weight=weight, full_weight=self._settings.full_weight)

    def _known(self, text: str, server: Server) -> tuple[bool, int]:
        found = servers_of(text).get(server.name)
        if found is None:
            raise BalancerRefusedError(
                f"{self._name}: {self._settings.upstream_file} has no line `server {server.name};`;"
                " add it there, or correct `server` in the instances file"
            )
        return found

    async def _apply(self, before: str, wanted: Wanted) -> None:
        after = with_servers(before, wanted)
        if after == before == self._loaded:
            return
        self._loaded = None
        done = False
        try:
            if after != before:
                await self._write(after)
            await self._test()
            await self._reload()
            done = True
        finally:
            # Whoever reloads nginx next must not get what was never seen to work.
            if not done and after != before:
                self._restore(before, after)
        self._loaded, self._loaded_at = after, self._pace.now()

    def _restore(self, before: str, after: str) -> None:
        path = self._settings.upstream_file
        with suppress(OSError):
            if path.read_text(encoding="utf-8") == after:
                replace_text(path, before)

    async def _read(self) -> str:
        path = self._settings.upstream_file
        try:
            return await asyncio.to_thread(path.read_text, encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BalancerUnavailableError(
                f"{self._name}: upstream_file {path} cannot be read ({type(error).__name__})"
            ) from error

    async def _write(self, text: str) -> None:
        path = self._settings.upstream_file
        try:
            await asyncio.to_thread(replace_text, path, text)
        except OSError as error:
            raise BalancerUnavailableError(
                f"{self._name}: upstream_file {path} cannot be replaced ({error.strerror}); the "
                "executor needs to write into its folder"
            ) from error

    async def _test(self) -> None:
        try:
            async with asyncio.timeout(self._settings.deadline_s):
                code, said = await run_to_end(self._settings.test)
        except TimeoutError as error:
            raise BalancerUnavailableError(
                f"{self._name}: the test command did not end in {self._settings.deadline_s:g} s"
            ) from error
        except OSError as error:
            raise BalancerRefusedError(
                f"{self._name}: test command {self._settings.test[0]!r} cannot be run "
                f"({error.strerror}); set `test` to nginx's full path and `-t`"
            ) from error
        if code:
            raise BalancerUnavailableError(
                f"{self._name}: nginx refuses its configuration, nothing was changed: "
                f"{first_fault(said)}"
            )

    async def _reload(self) -> None:
        master = await asyncio.to_thread(master_of, self._settings.pid_file)
        if master is None:
            raise BalancerUnavailableError(
                f"{self._name}: pid_file {self._settings.pid_file} names no running nginx"
            )
        old = await asyncio.to_thread(serving_workers, master)
        try:
            ask_to_reload(master)
        except PermissionError as error:
            raise BalancerRefusedError(
                f"{self._name}: may not signal nginx; run the executor as root or as nginx's user"
            ) from error
        await self._see_new_workers(master, old)

    async def _see_new_workers(self, master: int, old: frozenset[int]) -> None:
        deadline = self._pace.now() + self._settings.deadline_s
        seen = 0
        while seen < LOOKS:
            serving = await asyncio.to_thread(serving_workers, master)
            seen = seen + 1 if serving and not serving & old else 0
            if self._pace.now() >= deadline:
                raise BalancerUnavailableError(
                    f"{self._name}: nginx has no new workers {self._settings.deadline_s:g} s after "
                    "SIGHUP; its error log says why"
                )
            await self._pace.sleep(POLL_S)


def replace_text(path: Path, text: str) -> None:
    """Replace a file in one step; its mode stays, and a link to it stays a link."""
    real = path.resolve()
    mode = real.stat().st_mode & 0o7777
    # Not ending as the file does: a pattern in nginx's configuration must not include it.
    number, name = tempfile.mkstemp(prefix=f".{real.name}.", suffix=".part", dir=real.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as part:
            part.write(text)
            os.fchmod(part.fileno(), mode)
            part.flush()
            os.fsync(part.fileno())
        Path(name).replace(real)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


async def run_to_end(command: tuple[str, ...]) -> tuple[int, str]:
    """Run a command and return its exit code and what it said; it does not outlive this call."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, said.decode(errors="replace")


def first_fault(said: str) -> str:
    """Return the line of nginx's words that names the fault."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    faults = [line for line in lines if "[emerg]" in line or "[alert]" in line]
    return (faults or lines or ["no word why"])[0][:300]
