"""The moment an answer begins: from here on its instance is the one that answered."""

import time

from gatemesh_agent.cases import Attempt, Case
from gatemesh_agent.engine_errors import INTERNAL_ERROR
from gatemesh_agent.errors import InstanceFailedError
from gatemesh_agent.metrics import FIRST_BYTE_SECONDS
from gatemesh_agent.reporting import Reporter
from gatemesh_agent.upstream import Reply


def settle_failures(reporter: Reporter, case: Case, rerouted_to: str | None) -> None:
    """Report who failed the request before, and who took it over."""
    failures, case.failures = case.failures, []
    for failure, life in failures:
        reporter.reject(failure, case.request.origin, life, rerouted_to)
    settle_errors(reporter, case, rerouted_to)


def settle_errors(reporter: Reporter, case: Case, rerouted_to: str | None) -> None:
    """Count the errors that its client did not get, once it is known whether others answered.

    Where nobody did the request may be the cause: then it counts against the first instance
    alone, as if no other had been asked. That one has no room says nothing of the request.
    """
    errors, case.errors = case.errors, []
    for error in errors:
        if error.cause == "busy":
            reporter.window(error.life).count_status(error.status)
    own = [error for error in errors if error.cause != "busy"]
    for error in own if rerouted_to is not None else own[:1]:
        reporter.window(error.life).count_status(max(error.status, INTERNAL_ERROR))
        if rerouted_to is not None:
            failure = InstanceFailedError("broken", f"answered {error.status}")
            reporter.reject(failure, case.request.origin, error.life, rerouted_to)


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
