"""One stream to a client, whoever writes it: what was kept, what went wrong, how often it moved."""

from dataclasses import dataclass, field
from enum import StrEnum

from gatemesh_agent.cases import Case
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.requests import Route
from gatemesh_agent.rescue.continuing import goes_by_ids
from gatemesh_agent.rescue.kept import Kept
from gatemesh_agent.rescue.refusals import Refusal
from gatemesh_agent.rescue.splicing import Head
from gatemesh_common.errors import GatemeshError


class Cause(StrEnum):
    """Why a stream leaves an instance."""

    GATE = "gate"
    BROKEN = "broken"
    DIED = "died"
    ERROR = "error"
    STALLED = "stalled"
    EJECTED = "ejected"


SAID = {
    Cause.GATE: "was damaged",
    Cause.BROKEN: "broke off",
    Cause.DIED: "ended with its engine",
    Cause.ERROR: "ended in an error of the engine",
    Cause.STALLED: "came to a halt",
    Cause.EJECTED: "was cut: the instance is taken out",
}
"""Each one as its client reads it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why one instance does not end a stream."""

    cause: Cause
    instance_id: str
    failure: Judgement | None = None
    """What a gate holds against it."""
    refusal: Refusal | None = None
    """Why nobody else goes on with it, where that is known already."""
    is_decided: bool = False
    """True where it was asked for room in the budget."""


class StreamFaultError(GatemeshError):
    """A stream that an instance does not end; what is good of it is kept."""

    def __init__(self, story: "Story", fault: Fault) -> None:
        super().__init__(fault.cause)
        self.story = story
        self.fault = fault


@dataclass(slots=True)
class Shown:
    """What kinds of output an answer has, or its client has got."""

    content: bool = False
    calls: bool = False
    reasoning: bool = False
    """True while it is in its reasoning."""
    reasoned: bool = False
    """True once there was reasoning."""

    def take(self, newer: "Shown") -> None:
        """Take in what there is by now."""
        self.content |= newer.content
        self.calls |= newer.calls
        self.reasoned |= newer.reasoned
        self.reasoning = newer.reasoning


@dataclass(slots=True)
class Story:
    """One stream to one client."""

    case: Case
    shape: Refusal | None
    """Why this request's answers are not continued once some of one was seen."""
    kept: Kept = field(default_factory=Kept)
    head: Head = field(default_factory=Head)
    shown: Shown = field(default_factory=Shown)
    faults: list[Fault] = field(default_factory=list)
    continuations: int = 0
    whole: bool = True
    """False once the kept part is not all there, so that nobody could go on with it."""
    by: str = ""
    """How the part under way was asked for."""
    end: bytes = b""
    """An end that looks torn, for its client if nobody goes on from there."""

    @property
    def route(self) -> Route:
        """The client's route."""
        return self.case.request.asked.route

    @property
    def choices(self) -> int:
        """How many choices the answer has."""
        count = (self.case.request.asked.body or {}).get("n")
        return count if type(count) is int else 1

    @property
    def restarts(self) -> bool:
        """True while the client has seen nothing of an answer, so that another can be given."""
        if not self.case.client.begun:
            return True
        return not self.shown.content and self.route in (Route.CHAT, Route.COMPLETIONS)

    @property
    def deaths(self) -> int:
        """Engines that died under it."""
        died = sum(each.cause in (Cause.DIED, Cause.BROKEN) for each in self.faults)
        return self.case.deaths + died

    @property
    def is_bad_everywhere(self) -> bool:
        """True once a gate has failed it at more than one instance."""
        bad = {each.instance_id for each in self.faults if each.cause is Cause.GATE}
        return len(bad) > 1

    @property
    def goes_by_ids(self) -> bool:
        """True where the kept part can go on by its token ids."""
        return goes_by_ids(self.case.request.asked, self.kept)

    def why_not(self) -> Refusal | None:
        """Return why nobody may go on from here, as far as that lies in the answer."""
        if self.restarts:
            return None
        if self.shape is not None:
            return self.shape
        if self.shown.calls:
            return Refusal.TOOL_CALL
        if self.shown.reasoning or (self.shown.reasoned and not self.goes_by_ids):
            return Refusal.REASONING
        return None if self.whole else Refusal.TOO_LONG
