"""Gates that are plugged in from elsewhere: held to the protocol, and kept from harming traffic."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_common.gates import Ending, GateOpener, GateRequest, PluggedGate, TokenStep
from gatemesh_common.messages import CheckLevel, Outcome, Reason

T = TypeVar("T")

REQUEST_STAGE = {"stage": "request"}
ANSWER_STAGE = {"stage": "answer"}


class Watcher(Protocol):
    """Learns how plugged-in gates do."""

    def clock(self) -> float:
        """Return seconds that only grow."""

    def failed(self, name: str, error: Exception) -> None:
        """Learn that a gate raised and is off for this answer."""

    def spent(self, name: str, seconds: float) -> None:
        """Learn what a gate took of one answer."""


@dataclass(frozen=True, slots=True)
class Plug:
    """One gate that the operator switched on."""

    name: str
    open_gate: GateOpener
    settings: Mapping[str, str] = field(default_factory=dict)


class WatchedGate:
    """Runs one plugged-in gate on one choice; what it raises ends it, and nothing else."""

    def __init__(self, plug: Plug, request: GateRequest, watcher: Watcher) -> None:
        self._name = plug.name
        self._watcher = watcher
        self._spent_s = 0.0
        self._failure: Judgement | None = None
        self._gate: PluggedGate | None = None
        self._gate = self._guarded(lambda: plug.open_gate(request))
        self.abstains = self._gate is None and self._failure is None
        """True when it has nothing to say about this request."""

    def judge_request(self) -> Judgement | None:
        """Return the failure that the request itself is; the answer is then not judged."""
        return self._asked(lambda gate: gate.judge_request(), REQUEST_STAGE)

    def feed_text(self, delta: str) -> Judgement | None:
        """Take the next piece of visible text."""
        return self._asked(lambda gate: gate.feed_text(delta), ANSWER_STAGE)

    def feed_steps(self, steps: Sequence[TokenStep]) -> Judgement | None:
        """Take the next steps."""
        return self._asked(lambda gate: gate.feed_steps(steps), ANSWER_STAGE)

    def finish(self, ending: Ending) -> Judgement:
        """Conclude; a gate that raised, or has no conclusion, is skipped and says so."""
        earlier = self._failure
        found = self._asked(lambda gate: gate.finish(ending), ANSWER_STAGE)
        self._watcher.spent(self._name, self._spent_s)
        return earlier or found or self._failure or self._skipped()

    def _asked(
        self, ask: Callable[[PluggedGate], Judgement | None], stage: Mapping[str, str]
    ) -> Judgement | None:
        gate = self._gate
        if gate is None or self._failure is not None:
            return None
        found = self._guarded(lambda: self._checked(ask(gate), stage))
        if found is not None and found.outcome is Outcome.FAILED:
            self._failure = found
        return found

    def _guarded(self, act: Callable[[], T]) -> T | None:
        began = self._watcher.clock()
        try:
            return act()
        # Whatever a stranger's code raises: traffic goes on without it.
        except Exception as error:  # noqa: BLE001
            self._gate = None
            self._failure = self._skipped()
            self._watcher.failed(self._name, error)
            return None
        finally:
            self._spent_s += self._watcher.clock() - began

    def _checked(self, found: Judgement | None, stage: Mapping[str, str]) -> Judgement | None:
        """Return what a gate said as a plugged-in gate may say it: soft, under its own name."""
        if found is None:
            return None
        if not isinstance(found, Judgement):
            raise TypeError("a gate returned something else than a Judgement")
        details = {**found.details, **stage} if found.outcome is Outcome.FAILED else found.details
        return replace(found, gate=CheckLevel.PLUGIN, name=self._name, hard=False, details=details)

    def _skipped(self) -> Judgement:
        return Judgement(CheckLevel.PLUGIN, Outcome.SKIPPED, Reason.GATE_FAILED, name=self._name)


class FlaggedAlready:
    """Stands for a gate that failed the request: its answer has the same verdict."""

    def __init__(self, failure: Judgement) -> None:
        self._failure = failure
        self._told = False

    def feed_text(self, delta: str) -> Judgement | None:
        """Return the failure, once."""
        return self._tell() if delta else None

    def feed_steps(self, steps: Sequence[TokenStep]) -> Judgement | None:
        """Return the failure, once."""
        return self._tell() if steps else None

    def finish(self, _ending: Ending) -> Judgement:
        """Return the failure."""
        return self._failure

    def _tell(self) -> Judgement | None:
        told, self._told = self._told, True
        return None if told else self._failure


class Plugs:
    """The gates that are switched on, in the order in which the operator named them."""

    def __init__(self, plugs: Iterable[Plug], pool: str, watcher: Watcher) -> None:
        self._plugs = tuple(plugs)
        self._pool = pool
        self._watcher = watcher

    def open(
        self, body: Mapping[str, object], prompt: str
    ) -> dict[str, WatchedGate | FlaggedAlready]:
        """Return the gates of one choice by name; one that flags the request says no more."""
        opened: dict[str, WatchedGate | FlaggedAlready] = {}
        for name, gate in self._opened(body, prompt):
            failure = failure_of(gate)
            opened[name] = gate if failure is None else FlaggedAlready(failure)
        return opened

    def flags(self, body: Mapping[str, object], prompt: str) -> Judgement | None:
        """Return the first failure that the request itself is; None lets it pass."""
        found = (failure_of(gate) for _, gate in self._opened(body, prompt))
        return next((failure for failure in found if failure is not None), None)

    def _opened(self, body: Mapping[str, object], prompt: str) -> Iterable[tuple[str, WatchedGate]]:
        for plug in self._plugs:
            request = GateRequest(body, prompt, self._pool, plug.settings)
            gate = WatchedGate(plug, request, self._watcher)
            if not gate.abstains:
                yield plug.name, gate


def failure_of(gate: WatchedGate) -> Judgement | None:
    """Return the failure that a gate holds a request to be."""
    found = gate.judge_request()
    return found if found is not None and found.outcome is Outcome.FAILED else None
