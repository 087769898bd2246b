"""What clients read of a rescue: the error that ends a stream, and the marker if asked. Pure."""

import orjson

from gatemesh_agent.answers import NAMED_EVENT, shape_of
from gatemesh_agent.requests import Route
from gatemesh_agent.rescue.kept import Kept
from gatemesh_agent.rescue.refusals import ADVICE, AT_ONCE, Refusal
from gatemesh_agent.rescue.refusals import SAID as WHY
from gatemesh_agent.rescue.story import SAID as WHAT
from gatemesh_agent.rescue.story import Fault
from gatemesh_agent.sse import DONE

KIND = "RescueRefused"


def refused(fault: Fault, refusal: Refusal) -> bytes:
    """Return the JSON of the error for an answer that nobody goes on with."""
    found = f" ({fault.failure.reason})" if fault.failure is not None else ""
    message = (
        f"the stream from instance {fault.instance_id!r} {WHAT[fault.cause]}{found} and is not "
        f"continued: {WHY[refusal]}; {ADVICE.get(refusal, AT_ONCE)}"
    )
    error = {"message": message, "type": KIND, "param": None, "code": f"rescue_{refusal}"}
    return orjson.dumps({"error": error})


def ending(route: Route, body: bytes) -> bytes:
    """Return the events that end a stream of a route with an error."""
    if route in (Route.RESPONSES, Route.MESSAGES):
        return NAMED_EVENT % shape_of(route)(body)
    return b"data: " + body + b"\n\n" + DONE


def marker(fault: Fault, instance_id: str, kept: Kept, how: str) -> bytes:
    """Return the comment by which a client that asked learns where its answer changed hands."""
    told = {
        "from": fault.instance_id,
        "to": instance_id,
        "cause": fault.cause,
        "reason": fault.failure.reason if fault.failure is not None else None,
        "kept_tokens": kept.tokens,
        "leaked_tokens": kept.leaked,
        "by": how,
    }
    return b": gatemesh-rescue " + orjson.dumps(told) + b"\n\n"
