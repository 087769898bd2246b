"""Requests that an engine fails by an error of its own go elsewhere, within the terms."""

import time

import pytest
from tests.unit.agent.rescue.streams import Bench

from gatemesh_agent.cases import Case, MoveCause
from gatemesh_agent.moving import Moving, MovingTerms, cause_of
from gatemesh_agent.rescue.budget import RescueBudget

DIED = b'{"error":{"message":"EngineCore encountered an issue.","code":500}}'


def moving(bench: Bench, *, per_minute: int = 9, terms: MovingTerms | None = None) -> Moving:
    """Return what lets requests go elsewhere."""
    return Moving(bench.router, RescueBudget(per_minute, 1.0), terms or MovingTerms())


def case_of(bench: Bench, *tried: str) -> Case:
    """Return a request that was tried there."""
    case = bench.story().case
    case.tried = list(tried)
    return case


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (429, b"", "busy"),
        (503, b"", "busy"),
        (500, b"Internal Server Error", "error"),
        (502, b"", "error"),
        (504, b"", "error"),
        (500, DIED, None),
        (501, b"", None),
        (505, b"", None),
        (400, b"", None),
        (404, b"", None),
        (422, b"", None),
        (200, b"", None),
    ],
)
def test_only_errors_of_the_engines_own_may_pass(
    status: int, body: bytes, cause: MoveCause | None
) -> None:
    """What is the client's stays the client's; a death is counted apart."""
    assert cause_of(status, body) == cause


def test_no_more_moves_than_may_be() -> None:
    """Two others by default; none where that is forbidden."""
    bench = Bench()
    moves = moving(bench, terms=MovingTerms(moves=1))
    assert moves.allows(case_of(bench, "a"), "error")
    assert not moves.allows(case_of(bench, "a", "b"), "error")
    assert not moving(bench, terms=MovingTerms(moves=0)).allows(case_of(bench, "a"), "error")


def test_nobody_else_is_nobody_to_ask() -> None:
    """All were tried."""
    bench = Bench()
    assert not moving(bench, terms=MovingTerms(moves=9)).allows(
        case_of(bench, "a", "b", "c"), "error"
    )


def test_a_request_has_one_deadline() -> None:
    """Whoever answers it."""
    bench = Bench()
    case = case_of(bench, "a")
    case.begun_s = time.monotonic() - 61
    assert not moving(bench, terms=MovingTerms(total_s=60.0)).allows(case, "error")
    assert moving(bench, terms=MovingTerms(total_s=62.0)).allows(case, "error")


def test_the_budget_brakes_a_storm() -> None:
    """Only what is asked for counts."""
    bench = Bench()
    moves = moving(bench, per_minute=2)
    allowed = [moves.allows(case_of(bench, "a"), "error") for _ in range(4)]
    assert allowed == [True, True, False, False]


def test_a_pool_without_room_is_not_asked_round() -> None:
    """Where every other one said a moment ago that it has none, the next would."""
    bench = Bench()
    moves, case = moving(bench), case_of(bench, "a")
    bench.router.shun("b", time.monotonic())
    assert moves.allows(case, "busy")
    bench.router.shun("c", time.monotonic())
    assert not moves.allows(case, "busy")
    assert moves.allows(case, "error")
