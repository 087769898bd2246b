"""The refusal by which an engine shows that its logits are not numbers."""

import json

NAN_TEXT = "Out of range float values are not JSON compliant"
BAD_REQUEST = 400


def is_nan_refusal(status: int, body: bytes) -> bool:
    """Return True for the 400 that means: the log probabilities that we asked for are not numbers.

    Source: vLLM 0.32, whose JSON encoder refuses NaN; a client's own fault never reads like that.
    """
    if status != BAD_REQUEST or NAN_TEXT.encode() not in body:
        return False
    try:
        error = json.loads(body).get("error")
    except (ValueError, AttributeError, RecursionError):
        return False
    message = error.get("message") if isinstance(error, dict) else None
    return isinstance(message, str) and message.startswith(NAN_TEXT)
