"""The moment an answer begins."""

from datetime import UTC, datetime

from tests.unit.agent.rescue.streams import Bench, FakeClient, Script, unreachable

from gatemesh_agent.begun import begin_answer, settle_failures
from gatemesh_agent.cases import EngineError, MoveCause
from gatemesh_agent.reporting import Life
from gatemesh_common.messages import RequestRejected

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


async def test_the_first_to_answer_sends_the_status() -> None:
    """One that goes on with an answer does not send it again."""
    bench = Bench()
    story = bench.story()
    client = story.case.client
    assert isinstance(client, FakeClient)
    for name in "ab":
        await begin_answer(bench.reporter, bench.attempt(story, name), Script(b""), None)
    assert (client.status, client.instance_id) == (200, "a")


def test_those_who_failed_before_are_told_with_who_took_over() -> None:
    """Once."""
    bench = Bench()
    case = bench.story().case
    case.failures.append((unreachable(), Life("b", 0, None, numbered=True)))
    settle_failures(bench.reporter, case, "a")
    settle_failures(bench.reporter, case, "a")
    [rejected] = bench.published
    assert isinstance(rejected, RequestRejected)
    assert (rejected.instance_id, rejected.rerouted_to) == ("b", "a")


def failed(name: str, cause: MoveCause, status: int) -> EngineError:
    """Return an engine's error."""
    life = Life(name, 0, None, numbered=True)
    return EngineError(life, cause, status, None, {}, b"", None)


def test_errors_count_against_those_whose_request_another_answered() -> None:
    """One without room is not reported as broken; a torn answer is, whatever its status said."""
    bench = Bench()
    case = bench.story().case
    case.errors += [failed("b", "busy", 503), failed("c", "torn", 200)]
    settle_failures(bench.reporter, case, "a")
    assert [each.instance_id for each in bench.published] == ["c"]  # type: ignore[attr-defined]
    for name in "bc":
        window = bench.reporter.window(Life(name, 0, None, numbered=True))
        assert (window.requests, window.server_errors) == (1, 1)


def test_errors_that_nobody_was_spared_count_once() -> None:
    """The request may be their cause, so the rest of the pool is not accused of it."""
    bench = Bench()
    case = bench.story().case
    case.errors += [failed(name, "error", 500) for name in "abc"]
    settle_failures(bench.reporter, case, None)
    counts = [
        bench.reporter.window(Life(name, 0, None, numbered=True)).server_errors for name in "abc"
    ]
    assert counts == [1, 0, 0]
    assert bench.published == []
