"""What is done with an answer once it is judged: evidence, samples, signs; never on its way."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gatemesh_agent.attribution import ClientRequest, Told
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.reporting import Life
from gatemesh_agent.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer that came to its end."""

    request: ClientRequest
    life: Life
    first: Transcript
    """What the first choice said."""
    failures: tuple[Judgement, ...]
    streamed: bool
    wants_shadow: bool
    """True when the client asked for its answer to be compared."""


@dataclass(slots=True)
class After:
    """Those who want to know how answers went."""

    hear: Callable[[str, Life, Told], None]
    """Told what an instance made of a request that another one failed."""
    readers: list[Callable[[Answered], None]] = field(default_factory=list)
    """Told of every judged answer."""
    refusals: list[Callable[[ClientRequest, Life, int, bytes], None]] = field(default_factory=list)
    """Told of every other answer: its status and body."""

    def answered(self, answer: Answered) -> None:
        """Tell every reader."""
        for reader in self.readers:
            reader(answer)

    def refused(self, request: ClientRequest, life: Life, status: int, body: bytes) -> None:
        """Tell of an answer that is no text."""
        for reader in self.refusals:
            reader(request, life, status, body)
