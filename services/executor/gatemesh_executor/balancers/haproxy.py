"""HAProxy over its runtime socket: drain, ready and weight, each read back."""

import asyncio
from collections.abc import Mapping
from csv import DictReader
from dataclasses import replace

from gatemesh_executor.balancers.base import (
    BalancerRefusedError,
    BalancerUnavailableError,
    Server,
    Standing,
    assert_each,
    change_for,
    weight_of,
)
from gatemesh_executor.balancers.config import HaproxySettings

FORCED_MAINTENANCE = 0x01
NO_NEW_REQUESTS = 0x3F
"""Bits of `srv_admin_state`: maintenance and drain, forced, inherited or for want of an address."""
SERVERS_ONLY = 4
UNIX_PREFIX = "unix://"


def parse_table(text: str, separator: str) -> list[dict[str, str]]:
    """Return the rows of an answer whose first line, behind `#`, names the columns."""
    lines = text.splitlines()
    head = next((at for at, line in enumerate(lines) if line.startswith("#")), None)
    if head is None:
        return []
    rows = [line for line in lines[head:] if line.strip()]
    rows[0] = rows[0].lstrip("# ")
    return [
        {name: value for name, value in row.items() if isinstance(value, str)}
        for row in DictReader(rows, delimiter=separator)
    ]


def standing_of(state: Mapping[str, str], stat: Mapping[str, str]) -> Standing:
    """Return how a server is treated, from its rows of `show servers state` and `show stat`."""
    return replace(treatment_of(state), sessions=int(stat["scur"]) + int(stat["qcur"]))


def treatment_of(state: Mapping[str, str]) -> Standing:
    """Return how a server is treated, without what runs there."""
    admin = int(state["srv_admin_state"])
    return Standing(
        out=bool(admin & NO_NEW_REQUESTS),
        weight=int(state["srv_uweight"]),
        full_weight=int(state["srv_iweight"]),
        by_hand=bool(admin & FORCED_MAINTENANCE),
    )


def differs(state: Mapping[str, str] | None, share: float) -> bool:
    """Return True when a server has to be told something, or is looked at more closely."""
    try:
        return state is None or change_for(treatment_of(state), share) is not None
    except (KeyError, ValueError):
        return True


class Haproxy:
    """One running HAProxy; a new connection for each command, as it wants it."""

    def __init__(self, name: str, settings: HaproxySettings) -> None:
        self._name = name
        self._settings = settings

    async def take_out(self, server: Server) -> None:
        """Drain the server; one in maintenance is out already and left so."""
        if not (await self.look(server)).out:
            await self._order(server, "state drain")
            if not (await self.look(server)).out:
                raise BalancerUnavailableError(f"{self._name}: {server} is not out after a drain")

    async def put_back(self, server: Server, share: float) -> None:
        """Give the server its weight, then have it ready; one in maintenance is left so."""
        found = await self.look(server)
        if found.by_hand:
            return
        await self._give_weight(server, share, found)
        if found.out:
            await self._order(server, "state ready")
            if (await self.look(server)).out:
                raise BalancerUnavailableError(f"{self._name}: {server} is out after `state ready`")

    async def set_weight(self, server: Server, share: float) -> None:
        """Give the server a part of the weight that it has in the configuration."""
        await self._give_weight(server, share, await self.look(server))

    async def look(self, server: Server) -> Standing:
        """Read state and running sessions."""
        try:
            state = (await self._states(server.backend))[server.name]
        except KeyError:
            raise BalancerRefusedError(
                f"{self._name}: HAProxy has no server {server}; correct `backend` and `server` in "
                "the instances file, or add it to haproxy.cfg and reload"
            ) from None
        command = f"show stat {state['be_id']} {SERVERS_ONLY} {state['srv_id']}"
        try:
            return standing_of(state, parse_table(await self._ask(command), ",")[0])
        except (KeyError, ValueError, IndexError) as error:
            raise BalancerUnavailableError(
                f"{self._name}: HAProxy's answer about {server} cannot be read"
            ) from error

    async def assert_again(self, shares: Mapping[Server, float]) -> tuple[Server, ...]:
        """Tell HAProxy again what it forgot when it was reloaded."""
        backends = sorted({server.backend for server in shares})
        states = {backend: await self._states(backend) for backend in backends}
        different = {
            server: share
            for server, share in shares.items()
            if differs(states[server.backend].get(server.name), share)
        }
        return await assert_each(self, different)

    async def _states(self, backend: str) -> dict[str, dict[str, str]]:
        rows = parse_table(await self._ask(f"show servers state {backend}"), " ")
        return {row["srv_name"]: row for row in rows if "srv_name" in row}

    async def _give_weight(self, server: Server, share: float, found: Standing) -> None:
        weight = weight_of(share, found.full_weight)
        if found.weight == weight:
            return
        await self._order(server, f"weight {weight}")
        if (await self.look(server)).weight != weight:
            raise BalancerUnavailableError(f"{self._name}: {server} did not take weight {weight}")

    async def _order(self, server: Server, change: str) -> None:
        answer = (await self._ask(f"set server {server} {change}")).strip()
        if answer:
            raise BalancerRefusedError(
                f"{self._name}: HAProxy refuses `{change}` for {server}: {answer[:200]}"
            )

    async def _ask(self, command: str) -> str:
        try:
            async with asyncio.timeout(self._settings.deadline_s):
                answer = await self._exchange(command)
        except (OSError, TimeoutError, ValueError) as error:
            raise BalancerUnavailableError(
                f"{self._name}: HAProxy did not answer on {self._settings.socket} "
                f"({type(error).__name__}); is it running, with `stats socket ... level admin`?"
            ) from error
        if answer.startswith("Permission denied"):
            raise BalancerRefusedError(
                f"{self._name}: HAProxy denies commands on {self._settings.socket}; give its "
                "`stats socket` line `level admin`"
            )
        return answer

    async def _exchange(self, command: str) -> str:
        reader, writer = await self._connect()
        try:
            writer.write(f"{command}\n".encode())
            await writer.drain()
            answer = await reader.read(-1)
        finally:
            writer.close()
        return answer.decode()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = self._settings.socket
        if address.startswith(UNIX_PREFIX):
            return await asyncio.open_unix_connection(address.removeprefix(UNIX_PREFIX))
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        return await asyncio.open_connection(host, int(port))
