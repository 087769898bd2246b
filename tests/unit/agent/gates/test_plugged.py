"""A plugged-in gate is held to the protocol and can harm nothing."""

from collections.abc import Sequence

import pytest

from gatemesh_agent.gates.plugged import Plug, Plugs, WatchedGate
from gatemesh_common.gates import Ending, GateRequest, Judgement, TokenStep
from gatemesh_common.messages import CheckLevel, Outcome, Reason

END = Ending("stop")
FLAG = Judgement(CheckLevel.L1, Outcome.FAILED, Reason.FLAGGED, hard=True, details={"list": "x"})
PASS = Judgement(CheckLevel.PLUGIN, Outcome.PASSED, Reason.CLEAN)


class Gate:
    """Flags a request that says `bad`, and an answer that says `worse`; raises at `boom`."""

    def __init__(self, request: GateRequest) -> None:
        self.request = request
        self.seen = ""

    def judge_request(self) -> Judgement | None:
        """Look at the prompt."""
        return FLAG if "bad" in self.request.prompt else None

    def feed_text(self, delta: str) -> Judgement | None:
        """Look at the text."""
        self.seen += delta
        if "boom" in self.seen:
            raise RuntimeError("the client's secret text")
        return FLAG if "worse" in self.seen else None

    def feed_steps(self, steps: Sequence[TokenStep]) -> Judgement | None:
        """Steps say nothing."""

    def finish(self, ending: Ending) -> Judgement:
        """Pass, or say what was found."""
        return FLAG if "worse" in self.seen else PASS


class Watcher:
    """Keeps what it learns; its clock ticks a second a look."""

    def __init__(self) -> None:
        self.now = 0.0
        self.faults: list[tuple[str, str]] = []
        self.times: list[tuple[str, float]] = []

    def clock(self) -> float:
        """Tick."""
        self.now += 1
        return self.now

    def failed(self, name: str, error: Exception) -> None:
        """Keep it."""
        self.faults.append((name, type(error).__name__))

    def spent(self, name: str, seconds: float) -> None:
        """Keep it."""
        self.times.append((name, seconds))


def watched(watcher: Watcher, prompt: str = "") -> WatchedGate:
    """Return a gate under watch."""
    return WatchedGate(Plug("own", Gate), GateRequest({}, prompt, "p"), watcher)


def test_a_failure_is_told_once_softly_and_under_the_gates_name() -> None:
    """A stranger's gate proves nothing about an engine."""
    gate = watched(Watcher())
    assert gate.feed_text("wor") is None
    found = gate.feed_text("se")
    assert found is not None
    assert (found.gate, found.name, found.hard) == (CheckLevel.PLUGIN, "own", False)
    assert found.details == {"list": "x", "stage": "answer"}
    assert gate.feed_text("worse") is None
    assert gate.finish(END) == found


def test_a_pass_is_a_pass() -> None:
    """And its time is known."""
    watcher = Watcher()
    gate = watched(watcher)
    gate.feed_text("fine")
    gate.feed_steps(())
    assert gate.finish(END) == Judgement(
        CheckLevel.PLUGIN, Outcome.PASSED, Reason.CLEAN, name="own"
    )
    assert watcher.times == [("own", 4.0)]


def test_a_gate_that_raises_is_off_for_this_answer() -> None:
    """It is skipped with a reason, never passed, and traffic goes on."""
    watcher = Watcher()
    gate = watched(watcher)
    assert gate.feed_text("boom") is None
    assert gate.feed_text("worse") is None
    found = gate.finish(END)
    assert (found.outcome, found.reason) == (Outcome.SKIPPED, Reason.GATE_FAILED)
    assert watcher.faults == [("own", "RuntimeError")]


def broken_opener(_request: GateRequest) -> Gate:
    """Raise."""
    raise ValueError("no")


def strange_opener(_request: GateRequest) -> object:
    """Return no gate."""
    return "no gate"


def odd_opener(request: GateRequest) -> object:
    """Return a gate that concludes with something else."""
    gate = Gate(request)
    gate.finish = lambda ending: "fine"  # type: ignore[method-assign,assignment,return-value]
    return gate


def silent_opener(request: GateRequest) -> object:
    """Return a gate without a conclusion."""
    gate = Gate(request)
    gate.finish = lambda ending: None  # type: ignore[method-assign,assignment,return-value]
    return gate


@pytest.mark.parametrize(
    ("opener", "error"),
    [
        (broken_opener, "ValueError"),
        (strange_opener, "AttributeError"),
        (odd_opener, "TypeError"),
    ],
)
def test_what_keeps_no_promise_is_skipped(opener: object, error: str) -> None:
    """From the opening to the end."""
    watcher = Watcher()
    plug = Plug("own", opener)  # type: ignore[arg-type]
    gate = WatchedGate(plug, GateRequest({}, "", "p"), watcher)
    gate.feed_text("x")
    assert gate.finish(END).reason is Reason.GATE_FAILED
    assert watcher.faults == [("own", error)]


def test_no_conclusion_is_no_pass() -> None:
    """A gate never lies."""
    plug = Plug("own", silent_opener)  # type: ignore[arg-type]
    gate = WatchedGate(plug, GateRequest({}, "", "p"), Watcher())
    assert gate.finish(END).outcome is Outcome.SKIPPED


def plugs(*more: Plug) -> Plugs:
    """Return two gates, one of which never has anything to say."""
    return Plugs([Plug("own", Gate), Plug("mute", lambda _request: None), *more], "p", Watcher())


def test_a_gate_may_abstain() -> None:
    """It then concludes nothing at all."""
    assert list(plugs().open({}, "fine")) == ["own"]


def test_a_flagged_request_is_the_verdict_of_its_answer() -> None:
    """So it is recorded where nothing is blocked, once per choice."""
    [gate] = plugs().open({}, "bad").values()
    assert gate.feed_text("") is None
    found = gate.feed_text("x")
    assert found is not None
    assert found.details == {"list": "x", "stage": "request"}
    assert gate.feed_text("y") is None
    assert gate.feed_steps((TokenStep("x", -1.0),)) is None
    assert gate.finish(END) == found


def test_a_flagged_request_is_known_before_it_is_sent() -> None:
    """A shield needs no answer."""
    found = plugs().flags({}, "bad")
    assert found is not None
    assert found.name == "own"
    assert plugs().flags({}, "fine") is None
    assert plugs(Plug("x", broken_opener)).flags({}, "fine") is None
