"""What happens to a command between the broker and obedience: proven first, read then."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import ValidationError

from gatemesh_common.consuming import reason_of
from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import COMMAND, AnyCommand
from gatemesh_executor.trust import Trust

UNREADABLE = (ValidationError, json.JSONDecodeError, UnicodeDecodeError)


class NotTrustedError(GatemeshError):
    """A body that is neither proven nor a command; it goes to the dead letters."""


class Obedience(Protocol):
    """Carries out commands, or refuses them."""

    async def obey(self, command: AnyCommand) -> None:
        """Carry a command out; returns when its report is published."""

    async def refuse(self, command: AnyCommand, reason: str) -> None:
        """Report that a command is not trusted."""

    def abandon(self) -> None:
        """Let go of the commands under way."""


class Receiver:
    """Hands on what is trusted, and has the rest refused."""

    def __init__(self, trust: Trust, obedience: Obedience) -> None:
        self._trust = trust
        self._obedience = obedience

    async def receive(self, body: bytes, headers: Mapping[str, Any]) -> None:
        """Take one message; returns when it may be acknowledged.

        Raises:
            NotTrustedError, or what reading raises: the body is no command.
        """
        reason = self._trust.distrust(body, headers)
        if reason is None:
            await self._obedience.obey(read_command(body))
            return
        try:
            command = read_command(body)
        except UNREADABLE as error:
            raise NotTrustedError(f"{reason}; {reason_of(error)}") from None
        await self._obedience.refuse(command, reason)

    def abandon(self) -> None:
        """Let go of the commands under way; unacknowledged, they are delivered again."""
        self._obedience.abandon()


def read_command(body: bytes) -> AnyCommand:
    """Return the command that a body holds."""
    return COMMAND.validate_python(json.loads(body))
