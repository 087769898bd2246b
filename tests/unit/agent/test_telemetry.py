"""Windows add up what happened and begin anew."""

from datetime import UTC, datetime, timedelta

import pytest

from gatemesh_agent.gates.l2_perplexity import Usual
from gatemesh_agent.gates.pool_baseline import Metric
from gatemesh_agent.telemetry import MOST_SKETCHES, Telemetry, Window
from gatemesh_common.messages import CheckLevel, Decoding, GateCounts, Outcome, Sketch

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(seconds=5)


@pytest.mark.parametrize(
    ("status", "client_errors", "server_errors"),
    [(200, 0, 0), (399, 0, 0), (400, 1, 0), (499, 1, 0), (500, 0, 1), (503, 0, 1)],
)
def test_statuses(status: int, client_errors: int, server_errors: int) -> None:
    """4xx never counts against an instance."""
    window = Window()
    window.count_status(status)
    assert window.requests == 1
    assert (window.client_errors, window.server_errors) == (client_errors, server_errors)


def test_first_tokens_are_counted_by_their_delay() -> None:
    """A window without a stream tells none."""
    telemetry = Telemetry("agent-0", "p", NOON)
    for seconds in (0.1, 0.1, 1.0):
        telemetry.of("e", 1).note_first_token(seconds)
    telemetry.of("e", 2).count_status(200)
    with_streams, without = telemetry.roll(LATER, {})
    assert with_streams.first_tokens == {26: 2, 39: 1}
    assert without.first_tokens == {}


def test_a_skip_is_never_a_pass() -> None:
    """Each reason has its own count."""
    window = Window()
    window.count_gate(CheckLevel.L1, Outcome.PASSED, "clean")
    window.count_gate(CheckLevel.L1, Outcome.FAILED, "empty")
    window.count_gate(CheckLevel.L1, Outcome.SKIPPED, "cut_short")
    window.count_gate(CheckLevel.L1, Outcome.SKIPPED, "cut_short")
    counts = window.gates[CheckLevel.L1].counts()
    assert counts == GateCounts(passed=1, failed=1, skipped={"cut_short": 2})


def test_each_life_has_its_window() -> None:
    """A restarted instance begins at zero."""
    telemetry = Telemetry("agent-0", "p", NOON)
    telemetry.of("e", 1).tokens += 3
    telemetry.of("e", 2).tokens += 5
    telemetry.of("e", 1).tokens += 4
    found = telemetry.roll(LATER, {"e": 2})
    assert [(w.incarnation, w.tokens, w.in_flight) for w in found] == [(1, 7, 2), (2, 5, 2)]
    assert {(w.window_start, w.window_end) for w in found} == {(NOON, LATER)}


def test_a_roll_begins_anew() -> None:
    """Nothing is told twice, and windows join without a gap."""
    telemetry = Telemetry("agent-0", "p", NOON)
    telemetry.of("e", 1).requests += 1
    assert len(telemetry.roll(LATER, {})) == 1
    assert telemetry.roll(LATER, {}) == []
    telemetry.of("e", 1).requests += 1
    [window] = telemetry.roll(LATER + timedelta(seconds=5), {})
    assert window.window_start == LATER


def usual(value: float, script: str = "latin") -> Usual:
    """Return the figures of a greedy answer."""
    return Usual(Decoding.GREEDY, script, {Metric.NLL_WHOLE: value})


def test_sketches_travel_once_with_their_life() -> None:
    """Each kind of answer has its own."""
    telemetry = Telemetry("agent-0", "p", NOON)
    for value, script in ((0.5, "latin"), (0.51, "latin"), (0.9, "han")):
        telemetry.of("e", 1).add_usual(usual(value, script))
    [window] = telemetry.roll(LATER, {})
    greedy = {"metric": "nll_whole", "decoding": Decoding.GREEDY, "width": 0.02}
    assert window.sketches == (
        Sketch(script="latin", bins={25: 2}, **greedy),
        Sketch(script="han", bins={45: 1}, **greedy),
    )
    telemetry.of("e", 1).requests += 1
    [window] = telemetry.roll(LATER, {})
    assert window.sketches == ()


def test_sketches_are_bounded() -> None:
    """Random letters of a hundred scripts do not make a message endless."""
    window = Window()
    for number in range(MOST_SKETCHES + 50):
        window.add_usual(usual(0.5, f"block_{number:x}"))
    window.add_usual(usual(0.5, "block_0"))
    assert len(window.sketches) == MOST_SKETCHES
    assert window.sketches["nll_whole", Decoding.GREEDY, "block_0"].count == 2
