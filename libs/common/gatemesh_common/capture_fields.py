"""What a capture says of the verdict that it was taken for. Pure."""

from typing import Any

from gatemesh_common.messages import Verdict


def fields_of(verdict: Verdict) -> dict[str, Any]:
    """Return the fields of a capture that are the verdict's; whoever takes it adds the rest."""
    return {
        "timestamp": verdict.timestamp,
        "traceparent": verdict.traceparent,
        "instance_id": verdict.instance_id,
        "incarnation": verdict.incarnation,
        "model_version": verdict.model_version,
        "request_id": verdict.request_id,
        "choice": verdict.choice,
        "verdict_id": verdict.message_id,
        "check_level": verdict.check_level,
        "reason": verdict.reason,
        "hard": verdict.hard,
        "score": verdict.score,
        "threshold": verdict.threshold,
        "span": verdict.span,
        "gate_version": verdict.gate_version,
        "decoding": verdict.decoding,
    }
