"""Runs the check of a weights folder as a process of its own."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Protocol

from gatemesh_executor.weights.manifest import WeightsRefusedError

NICENESS = 10
"""Below the engines beside it."""


class WeightCheck(Protocol):
    """Verifies and scans folders."""

    async def verify(self, folder: Path, manifest: Path, ignored: tuple[str, ...]) -> None:
        """Compare every file with the manifest; raises WeightsRefusedError."""

    async def scan(self, folder: Path) -> tuple[str, ...]:
        """Look at every number, return odd tensors; raises WeightsRefusedError."""


class ProcessCheck:
    """Starts the program for each order; cancelled, the program ends with it."""

    async def verify(self, folder: Path, manifest: Path, ignored: tuple[str, ...]) -> None:
        """Compare every file with the manifest."""
        await self._run(
            {
                "task": "verify",
                "folder": str(folder),
                "manifest": str(manifest),
                "ignored": ignored,
            }
        )

    async def scan(self, folder: Path) -> tuple[str, ...]:
        """Look at every number of every safetensors file."""
        found = await self._run({"task": "scan", "folder": str(folder)})
        return tuple(found["signs"])

    async def _run(self, order: dict[str, Any]) -> dict[str, Any]:
        program = (sys.executable, "-m", "gatemesh_executor.weights.check")
        process = await asyncio.create_subprocess_exec(
            *("nice", "-n", str(NICENESS), *program),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            output, _ = await process.communicate(json.dumps(order).encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise WeightsRefusedError(f"the check itself ended with code {process.returncode}")
        found: dict[str, Any] = json.loads(output)
        if "refused" in found:
            raise WeightsRefusedError(found["refused"])
        return found
