"""Other routes' requests written as chat requests, as vLLM does it inside. Pure."""

from collections.abc import Mapping
from typing import Any

Body = Mapping[str, Any]

LOGPROBS_INCLUDED = "message.output_text.logprobs"
KEPT = ("model", "temperature", "stream", "seed", "vllm_xargs", "messages", "max_tokens")


def of_response(body: Body) -> dict[str, Any]:
    """Return a `/v1/responses` request as a chat request."""
    asked: dict[str, Any] = {name: body[name] for name in KEPT if name in body}
    given = body.get("input")
    turns = [{"role": "user", "content": given}] if isinstance(given, str) else given
    before = body.get("instructions")
    system = [{"role": "system", "content": before}] if before else []
    asked["messages"] = [*system, *turns] if isinstance(turns, list) else turns
    if body.get("max_output_tokens") is not None:
        asked["max_tokens"] = body["max_output_tokens"]
    if LOGPROBS_INCLUDED in (body.get("include") or ()):
        asked |= {"logprobs": True, "top_logprobs": body.get("top_logprobs", 0)}
    asked["response_format"] = format_of((body.get("text") or {}).get("format"))
    return asked


def of_message(body: Body) -> dict[str, Any]:
    """Return a `/v1/messages` request as a chat request."""
    asked: dict[str, Any] = {name: body[name] for name in KEPT if name in body}
    if body.get("system") and isinstance(body.get("messages"), list):
        asked["messages"] = [{"role": "system", "content": body["system"]}, *body["messages"]]
    asked["stop"] = body.get("stop_sequences")
    asked["response_format"] = format_of((body.get("output_config") or {}).get("format"))
    return asked


def format_of(wanted: Any) -> dict[str, Any]:
    """Return a wanted format as chat requests nest it."""
    if not isinstance(wanted, dict):
        return {}
    return {"type": wanted.get("type"), "json_schema": {"schema": wanted.get("schema", {})}}


def unchanged(body: Body) -> dict[str, Any]:
    """Return a request that is written as the engine takes it."""
    return dict(body)
