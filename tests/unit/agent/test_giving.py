"""What a client gets when nobody answered as asked."""

import json
from typing import Any

from tests.unit.agent.rescue.streams import Bench, FakeClient

from gatemesh_agent.cases import Case, EngineError, MoveCause
from gatemesh_agent.giving import give_first_error, give_least_bad
from gatemesh_agent.reporting import Life
from gatemesh_agent.shield import Withheld
from gatemesh_common.messages import Reason


def error(name: str, cause: MoveCause, status: int) -> EngineError:
    """Return an engine's error."""
    life = Life(name, 0, None, numbered=True)
    return EngineError(life, cause, status, None, {}, f"{name} says {status}".encode(), None)


def withheld(name: str, *, hard: bool) -> Withheld:
    """Return an answer that was objected to."""
    return Withheld(name, hard, Reason.REPETITION, 200, None, {}, b"round and round")


def client_of(case: Case) -> FakeClient:
    """Return who asked."""
    client: Any = case.client
    assert isinstance(client, FakeClient)
    return client


async def test_the_first_error_is_given_as_it_came() -> None:
    """With its instance; it counts against that one alone."""
    bench = Bench()
    case = bench.story().case
    case.errors += [error("a", "error", 500), error("b", "error", 502)]
    await give_first_error(bench.reporter, case)
    client = client_of(case)
    assert (client.status, client.instance_id, client.sent) == (500, "a", b"a says 500")
    counts = {
        name: bench.reporter.window(Life(name, 0, None, numbered=True)).server_errors
        for name in "ab"
    }
    assert counts == {"a": 1, "b": 0}


async def test_a_doubted_answer_is_better_than_an_error() -> None:
    """A proven one is not: whoever has no room may have a good one later."""
    bench = Bench()
    case = bench.story().case
    case.errors.append(error("b", "busy", 503))
    case.withheld.append(withheld("a", hard=True))
    await give_first_error(bench.reporter, case)
    assert client_of(case).status == 503
    case = bench.story().case
    case.errors.append(error("b", "busy", 503))
    case.withheld.append(withheld("a", hard=False))
    await give_first_error(bench.reporter, case)
    assert client_of(case).sent == b"round and round"


async def test_what_is_bad_everywhere_is_said_to_be_the_requests() -> None:
    """One bad answer says nothing of the request."""
    codes = []
    for names in ("a", "ab"):
        bench = Bench()
        case = bench.story().case
        case.withheld += [withheld(name, hard=True) for name in names]
        await give_least_bad(bench.reporter, case)
        codes.append(json.loads(client_of(case).sent)["error"]["code"])
    assert codes == ["answers_unfit", "answers_unfit_everywhere"]
