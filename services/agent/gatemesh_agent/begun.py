"""The moment an answer begins: from here on its instance is the one that answered."""

import time

from gatemesh_agent.cases import Attempt, Case
from gatemesh_agent.metrics import FIRST_BYTE_SECONDS
from gatemesh_agent.reporting import Reporter
from gatemesh_agent.upstream import Reply


def settle_failures(reporter: Reporter, case: Case, rerouted_to: str | None) -> None:
    """Report who failed the request before, and who took it over."""
    failures, case.failures = case.failures, []
    for failure, life in failures:
        reporter.reject(failure, case.request.origin, life, rerouted_to)


async def begin_answer(
    reporter: Reporter, attempt: Attempt, reply: Reply, length: int | None
) -> None:
    """Send the client status and headers, unless another instance began its answer.

    Raises:
        ClientGoneError: the client has left.
    """
    instance_id, client = attempt.instance.instance_id, attempt.case.client
    settle_failures(reporter, attempt.case, instance_id)
    reporter.window(attempt.life).count_status(reply.status)
    if client.begun:
        return
    FIRST_BYTE_SECONDS.observe(time.monotonic() - attempt.case.begun_s)
    headers = reply.response.headers
    await client.begin(reply.status, reply.response.reason, headers, instance_id, length)
