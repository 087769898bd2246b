"""What a client gets when every instance's answer was objected to, or was an error."""

from gatemesh_agent.answers import answers_unfit
from gatemesh_agent.begun import settle_failures
from gatemesh_agent.cases import Case
from gatemesh_agent.metrics import UNFIT
from gatemesh_agent.reporting import Reporter
from gatemesh_agent.shield import least_bad

BAD_GATEWAY = 502


async def give_first_error(reporter: Reporter, case: Case) -> None:
    """Nobody answered: an answer that was only doubted passes, else what the first one said.

    Raises:
        ClientGoneError: the client has left.
    """
    if least_bad(case.withheld) is not None:
        await give_least_bad(reporter, case)
        return
    first = case.errors[0]
    settle_failures(reporter, case, None)
    await first.give(case.client)


async def give_least_bad(reporter: Reporter, case: Case) -> None:
    """Every answer was objected to: one that is not proven bad passes, and says so.

    Raises:
        ClientGoneError: the client has left.
    """
    answer, client = least_bad(case.withheld), case.client
    settle_failures(reporter, case, answer.instance_id if answer else None)
    if answer is None or answer.body is None:
        UNFIT.labels(fate="refused").inc()
        first = case.withheld[0]
        body = answers_unfit(first.reason, len(case.withheld))
        await client.fail(BAD_GATEWAY, body, first.instance_id)
        return
    UNFIT.labels(fate="passed").inc()
    headers, size = answer.headers or {}, len(answer.body)
    await client.begin(
        *(answer.status, answer.http_reason, headers, answer.instance_id, size),
        X_Gatemesh_Unfit=answer.reason,
    )
    await client.write(answer.body)
    await client.end()
