"""One guarded request, and what has become of it so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gatemesh_agent.attribution import ClientRequest
from gatemesh_agent.client import Client
from gatemesh_agent.errors import InstanceFailedError
from gatemesh_agent.reporting import Life
from gatemesh_agent.shield import Shield, Withheld
from gatemesh_agent.traffic import Exchange
from gatemesh_agent.watchdog import Waiting
from gatemesh_agent.wishes import Wish
from gatemesh_common.messages import RoutedInstance


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a guarded request may go."""

    pool: str
    reroutes: int
    max_answer_bytes: int
    max_event_bytes: int
    shield: Shield


MoveCause = Literal["busy", "error", "torn", "silent", "stalled"]
"""Why a request whose client has got nothing yet may go to another instance."""


@dataclass(frozen=True, slots=True)
class EngineError:
    """An answer that is no answer, as the engine gave it."""

    life: Life
    cause: MoveCause
    status: int
    http_reason: str | None
    headers: Mapping[str, str]
    body: bytes
    length: int | None
    """None for a stream."""

    async def give(self, client: Client) -> None:
        """Send it to the client as it came.

        Raises:
            ClientGoneError: the client has left.
        """
        where = self.life.instance_id
        await client.begin(self.status, self.http_reason, self.headers, where, self.length)
        await client.write(self.body)
        await client.end()


@dataclass(slots=True)
class Case:
    """One guarded request and what has become of it so far."""

    request: ClientRequest
    client: Client
    begun_s: float
    wants_shadow: bool = False
    """True when the client asked for its answer to be compared."""
    tells_rescue: bool = False
    """True when the client asked to be told where its answer was continued."""
    tried: list[str] = field(default_factory=list)
    failures: list[tuple[InstanceFailedError, Life]] = field(default_factory=list)
    last_resort: RoutedInstance | None = None
    """An instance whose log probabilities are NaN: it can still answer without them."""
    withheld: list[Withheld] = field(default_factory=list)
    """Answers that were bad, in shield mode."""
    errors: list[EngineError] = field(default_factory=list)
    """Errors of engines that the client has not got."""
    deaths: int = 0
    """Engines that died under it before they had said anything."""
    key: str | None = None
    """Set once an instance failed this request: what others make of it is evidence."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One case at one instance."""

    case: Case
    instance: RoutedInstance
    life: Life
    wish: Wish
    wait: Waiting
    """Tells the watchdog how far the answer is."""
    is_last: bool = False
    """True when nobody else is left: the client gets whatever comes."""

    def exchange(self, *, streamed: bool, retried: bool, continued: bool = False) -> Exchange:
        """Return what judging needs to know."""
        case = self.case
        return Exchange(
            request=case.request,
            life=self.life,
            streamed=streamed,
            wished=self.wish.count,
            retried=retried,
            follows=case.key is not None,
            continued=continued,
            probe_id=self.wish.probe_id,
        )
