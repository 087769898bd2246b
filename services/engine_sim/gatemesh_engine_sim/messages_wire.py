"""What `/v1/messages` sends, in vLLM's order of keys."""

from collections.abc import Sequence
from typing import Any

import orjson

from gatemesh_engine_sim.errors import ApiError
from gatemesh_engine_sim.wire import Choice, Json, Reply

STOP_REASONS = {"stop": "end_turn", "length": "max_tokens"}


class MessagesWire:
    """Writes one message, or its events; it carries no log probabilities."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._name = f"chatcmpl-{reply.request_id}"

    def opening(self, index: int) -> bytes:
        """What announces a message and its block."""
        message: Json = {
            "id": self._name,
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": self._reply.asked.model,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self._usage(0),
        }
        block = {"type": "text", "text": ""}
        return event("message_start", {"message": message}) + event(
            "content_block_start", {"content_block": block, "index": 0}
        )

    def event(self, index: int, emission: Any, offset: int, *, first: bool) -> bytes:
        """One token's delta; a token without text has none."""
        if not emission.text:
            return b""
        delta = {"type": "text_delta", "text": emission.text}
        return event("content_block_delta", {"delta": delta, "index": 0})

    def usage(self, completion_tokens: int) -> bytes:
        """Nothing: the end carries it."""
        return b""

    def closing(self, choices: Sequence[Choice]) -> bytes:
        """What ends the block and the message."""
        [choice] = choices
        reason, sequence = stop_of(choice)
        delta = {"stop_reason": reason, "stop_sequence": sequence}
        return b"".join(
            (
                event("content_block_stop", {"index": 0}),
                event("message_delta", {"delta": delta, "usage": self._usage(len(choice))}),
                event("message_stop", {}),
            )
        )

    def whole(self, choices: Sequence[Choice]) -> bytes:
        """The message object; what is null is left out."""
        [choice] = choices
        reason, sequence = stop_of(choice)
        text = "".join(one.text for one in choice)
        named = {} if sequence is None else {"stop_sequence": sequence}
        return orjson.dumps(
            {
                "id": self._name,
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": text}],
                "model": self._reply.asked.model,
                "stop_reason": reason,
                **named,
                "usage": self._usage(len(choice)),
            }
        )

    def _usage(self, tokens: int) -> Json:
        return {"input_tokens": len(self._reply.asked.prompt_ids), "output_tokens": tokens}


def event(kind: str, fields: Json) -> bytes:
    """Return one named event."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **fields}))


def stop_of(choice: Choice) -> tuple[str | None, str | None]:
    """Return stop reason and stop sequence."""
    last = choice[-1]
    if last.stop_reason is not None:
        return "stop_sequence", last.stop_reason
    return STOP_REASONS.get(str(last.finish_reason)), None


def message_error(error: ApiError) -> bytes:
    """Return an error as this route words it."""
    shown = {"type": error.kind, "message": error.message}
    return orjson.dumps({"type": "error", "error": shown})
