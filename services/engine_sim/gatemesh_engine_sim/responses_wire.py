"""What `/v1/responses` sends, in vLLM's order of keys."""

from collections.abc import Sequence
from typing import Any

import orjson

from gatemesh_engine_sim.steps import Step
from gatemesh_engine_sim.wire import Choice, Json, Reply

NO_TURNS: Json = {"input_tokens_per_turn": [], "cached_tokens_per_turn": []}


class ResponsesWire:
    """Writes one response; it numbers its events, so each answer has a wire of its own."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._message = f"msg_{reply.request_id}"
        self._number = 0

    def opening(self, index: int) -> bytes:
        """What announces a response and its message."""
        response = self._response([], "in_progress", None)
        item = {**self._item([]), "status": "in_progress"}
        part = {"annotations": [], "text": "", "type": "output_text", "logprobs": []}
        return b"".join(
            (
                self._event("response.created", {"response": response}),
                self._event("response.in_progress", {"response": response}),
                self._event("response.output_item.added", {"item": item, "output_index": 0}),
                self._event(
                    "response.content_part.added", {"content_index": 0, **self._place, "part": part}
                ),
            )
        )

    def event(self, index: int, emission: Any, offset: int, *, first: bool) -> bytes:
        """One token's delta; a token without text has none."""
        if not emission.text:
            return b""
        count = self._reply.asked.logprobs
        figures = [] if count is None else [bare_figures(emission.step, count)]
        fields = {
            "content_index": 0,
            "delta": emission.text,
            "item_id": self._message,
            "logprobs": figures,
            "output_index": 0,
        }
        return self._event("response.output_text.delta", fields)

    def usage(self, completion_tokens: int) -> bytes:
        """Nothing: the end carries it."""
        return b""

    def closing(self, choices: Sequence[Choice]) -> bytes:
        """What repeats the message and ends the response."""
        [choice] = choices
        part = self._part(choice)
        text = {"content_index": 0, "item_id": self._message, "logprobs": [], "output_index": 0}
        return b"".join(
            (
                self._event("response.output_text.done", text, text=part["text"]),
                self._event(
                    "response.content_part.done", {"content_index": 0, **self._place, "part": part}
                ),
                self._event(
                    "response.output_item.done", {"item": self._item([part]), "output_index": 0}
                ),
                self._event("response.completed", {"response": self._whole(choice)}),
            )
        )

    def whole(self, choices: Sequence[Choice]) -> bytes:
        """The response object."""
        [choice] = choices
        return orjson.dumps(self._whole(choice))

    @property
    def _place(self) -> Json:
        return {"item_id": self._message, "output_index": 0}

    def _event(self, kind: str, fields: Json, **last: str) -> bytes:
        written = {**fields, "sequence_number": self._number, **last, "type": kind}
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps(written))

    def _part(self, choice: Choice) -> Json:
        count = self._reply.asked.logprobs
        figures = None if count is None else [figures_of(one.step, count) for one in choice]
        text = "".join(one.text for one in choice)
        return {"annotations": [], "text": text, "type": "output_text", "logprobs": figures}

    def _item(self, content: list[Json]) -> Json:
        return {
            "id": self._message,
            "content": content,
            "role": "assistant",
            "status": "completed",
            "type": "message",
            "phase": None,
        }

    def _whole(self, choice: Choice) -> Json:
        part = self._part(choice)
        output = [self._item([part])] if part["text"] else []
        cut = choice[-1].finish_reason == "length"
        return self._response(output, "incomplete" if cut else "completed", len(choice))

    def _response(self, output: list[Json], status: str, tokens: int | None) -> Json:
        asked = self._reply.asked
        cut = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {
            "id": f"resp_{self._reply.request_id}",
            "created_at": self._reply.created,
            "incomplete_details": cut,
            "instructions": None,
            "metadata": None,
            "model": asked.model,
            "object": "response",
            "output": output,
            "parallel_tool_calls": True,
            "temperature": asked.temperature,
            "tool_choice": "none",
            "tools": [],
            "top_p": 1.0,
            "background": False,
            "max_output_tokens": asked.max_tokens,
            "max_tool_calls": None,
            "previous_response_id": None,
            "prompt": None,
            "reasoning": None,
            "service_tier": "auto",
            "status": status,
            "text": None,
            "top_logprobs": asked.logprobs,
            "truncation": "disabled",
            "usage": None if tokens is None else self._usage(tokens),
            "user": None,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "input_messages": None,
            "output_messages": None,
        }

    def _usage(self, tokens: int) -> Json:
        prompt_tokens = len(self._reply.asked.prompt_ids)
        return {
            "input_tokens": prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0, **NO_TURNS},
            "output_tokens": tokens,
            "output_tokens_details": {
                "reasoning_tokens": 0,
                "tool_output_tokens": 0,
                "output_tokens_per_turn": [],
                "tool_output_tokens_per_turn": [],
            },
            "total_tokens": prompt_tokens + tokens,
        }


def figures_of(step: Step, count: int) -> Json:
    """Return one token of a whole answer with its candidates."""
    return {
        "token": step.token,
        "bytes": list(step.token.encode()),
        "logprob": step.logprob,
        "top_logprobs": [
            {"token": one.token, "bytes": list(one.token.encode()), "logprob": one.logprob}
            for one in step.top[:count]
        ],
    }


def bare_figures(step: Step, count: int) -> Json:
    """Return one token of a delta with its candidates; they carry no bytes there."""
    return {
        "token": step.token,
        "logprob": step.logprob,
        "top_logprobs": [{"token": one.token, "logprob": one.logprob} for one in step.top[:count]],
    }
