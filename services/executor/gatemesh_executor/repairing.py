"""What an engine offers for its own repair: vLLM's endpoints of the developer mode."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Protocol

import aiohttp

from gatemesh_common.errors import GatemeshError
from gatemesh_executor.engine_session import EngineSession

DEADLINE_S = 60.0
"""Reloading reads all weights; checksums of large ones take seconds."""


class RepairNotOfferedError(GatemeshError):
    """The engine has no such endpoint; a restart is the way on."""


class RepairFailedError(GatemeshError):
    """The engine could not do it, or its weights are still wrong; a restart is the way on."""


class EngineRepair(Protocol):
    """Acts inside of a running engine.

    Raises:
        RepairNotOfferedError: the engine does not offer it.
        RepairFailedError: it did not answer, or answered that it failed.
    """

    async def checksums(self, base_url: str) -> Mapping[str, str]:
        """Return the checksum of every parameter as it is in memory."""

    async def reload(self, base_url: str) -> None:
        """Load the weights from their files again."""

    async def reset_cache(self, base_url: str) -> bool:
        """Empty the prefix cache; False while requests use it."""


class NoRepair:
    """For engines that offer nothing."""

    async def checksums(self, base_url: str) -> Mapping[str, str]:
        """Offer nothing."""
        raise RepairNotOfferedError("no repair inside of engines is set up")

    async def reload(self, base_url: str) -> None:
        """Offer nothing."""
        raise RepairNotOfferedError("no repair inside of engines is set up")

    async def reset_cache(self, base_url: str) -> bool:
        """Offer nothing."""
        raise RepairNotOfferedError("no repair inside of engines is set up")


class HttpRepair(EngineSession):
    """Asks the engine itself."""

    deadline_s = DEADLINE_S

    async def checksums(self, base_url: str) -> Mapping[str, str]:
        """`POST /weight_checker`."""
        return read_checksums(await self._post(base_url, "/weight_checker", {"action": "checksum"}))

    async def reload(self, base_url: str) -> None:
        """`POST /collective_rpc` for `reload_weights`."""
        await self._post(base_url, "/collective_rpc", {"method": "reload_weights"})

    async def reset_cache(self, base_url: str) -> bool:
        """`POST /reset_prefix_cache`; engines that say nothing have done it."""
        answer = await self._post(base_url, "/reset_prefix_cache", None)
        return answer.get("success", True) is True if isinstance(answer, dict) else True

    async def _post(self, base_url: str, path: str, body: Any) -> Any:
        try:
            async with self.session.post(f"{base_url}{path}", json=body) as response:
                if response.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
                    raise RepairNotOfferedError(
                        f"{path} answers {response.status}; the engine needs VLLM_SERVER_DEV_MODE=1"
                    )
                if response.status != HTTPStatus.OK:
                    raise RepairFailedError(f"{path} answers {response.status}")
                body = await response.read()
                return json.loads(body) if body else None
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise RepairFailedError(f"{path}: {type(error).__name__}") from error


def read_checksums(answer: Any) -> dict[str, str]:
    """Return the checksum of each parameter in an answer of `/weight_checker`.

    Raises:
        RepairFailedError: there is none.
    """
    listed = answer.get("checksums") if isinstance(answer, dict) else None
    if not isinstance(listed, dict) or not listed:
        raise RepairFailedError("/weight_checker names no checksum")
    return {str(name): str(digest) for name, digest in listed.items()}
