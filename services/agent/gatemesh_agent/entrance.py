"""The public port's entrance: turns requests away before anything is read of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aiohttp import hdrs

from gatemesh_agent.client import Client
from gatemesh_agent.door import CLOSED_PATH, Door, Holder, Refusal, is_open, secret_in
from gatemesh_agent.metering import Meter
from gatemesh_agent.metrics import KEY_TOKENS, TURNED_AWAY

API_KEY = "X-Api-Key"
CREDENTIALS = (hdrs.AUTHORIZATION, API_KEY)


@dataclass(frozen=True, slots=True)
class Entrance:
    """Lets requests in by path and by key; either may be off."""

    door: Door | None
    closes_paths: bool
    clock_s: Callable[[], float]
    engine_key: str | None = None
    """What engines are shown instead of the client's key, which is none of theirs."""

    @property
    def withheld(self) -> tuple[str, ...]:
        """The headers that do not go on to an engine."""
        return CREDENTIALS if self.door is not None else ()

    @property
    def credential(self) -> str | None:
        """What engines are shown in place of the client's key; None where it is nothing."""
        wanted = self.door is not None and self.engine_key is not None
        return f"Bearer {self.engine_key}" if wanted else None

    def enter(self, path: str, headers: Mapping[str, str]) -> Holder | Refusal | None:
        """Let a request in, or say why not; None where nobody has to show a key."""
        if self.closes_paths and not is_open(path):
            return CLOSED_PATH
        if self.door is None:
            return None
        secret = secret_in(headers.get(hdrs.AUTHORIZATION), headers.get(API_KEY))
        return self.door.enter(secret, self.clock_s())


def authorization_in(headers: Mapping[str, str]) -> str | None:
    """Return what a client shows of itself as `Authorization` words it, by whichever header."""
    api_key = headers.get(API_KEY)
    return headers.get(hdrs.AUTHORIZATION) or (f"Bearer {api_key}" if api_key else None)


async def turn_away(client: Client, refusal: Refusal) -> None:
    """Answer a request that was not let in.

    Raises:
        ClientGoneError: the client has left.
    """
    TURNED_AWAY.labels(why=refusal.why).inc()
    again = {} if refusal.retry_after_s is None else {"Retry_After": str(refusal.retry_after_s)}
    await client.fail(refusal.status, refusal.body, **again)


def begin_metering(client: Client, holder: Holder) -> None:
    """Count the tokens of a client's answer, where its key has a limit of them."""
    if holder.tokens is not None:
        client.meter = Meter()


def settle(client: Client, holder: Holder) -> None:
    """Charge a key with what the answer cost."""
    if holder.tokens is not None and client.meter is not None:
        tokens = client.meter.tokens()
        holder.tokens.use(tokens)
        KEY_TOKENS.labels(key=holder.key.name).inc(tokens)
