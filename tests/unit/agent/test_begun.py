"""The moment an answer begins."""

from datetime import UTC, datetime

from tests.unit.agent.rescue.streams import Bench, FakeClient, Script, unreachable

from gatemesh_agent.begun import begin_answer, settle_failures
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
