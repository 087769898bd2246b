"""Captures as they are stored: figures by column, all text in one of its own."""

from gatemesh_common.captures import Capture
from gatemesh_health_manager.storable import Row, storable

AS_THEY_ARE = (
    *("message_id", "source", "agent_id", "pool", "instance_id", "incarnation", "model"),
    *("model_version", "engine_version", "request_id", "choice", "traceparent", "verdict_id"),
    *("hard", "score", "threshold", "gate_version", "steps_seen", "chars_seen", "finish_reason"),
    *("text_policy", "text_withheld", "second_instance_id", "labels", "gates", "sampling"),
    "redactions",
)


def capture_row(capture: Capture) -> Row:
    """Return the row of a capture; the database adds when it came."""
    at_fault = [step.n for step in capture.steps if step.fault]
    # Whatever its sender says: where no text may be, none is stored.
    texts = None if capture.text_policy == "none" else capture.texts
    return {name: storable(getattr(capture, name)) for name in AS_THEY_ARE} | {
        "at": capture.timestamp,
        "check_level": capture.check_level.value,
        "reason": capture.reason.value,
        "decoding": capture.decoding.value,
        "span": None if capture.span is None else capture.span.model_dump(exclude_none=True),
        "steps": [step.model_dump() for step in capture.steps],
        "fault_from": min(at_fault, default=None),
        "fault_until": max(at_fault) + 1 if at_fault else None,
        "texts": None if texts is None else storable(texts.model_dump()),
    }
