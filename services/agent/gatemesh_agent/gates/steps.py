"""Log probabilities of single steps, read from what OpenAI-compatible engines send."""

from typing import Any

from gatemesh_common.gates import TokenStep as TokenStep  # noqa: PLC0414

LOST = "\ufffd"


def steps_of_chat(logprobs: object) -> tuple[TokenStep, ...]:
    """Read `logprobs` of a chat choice or delta; what cannot be read is left out."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return ()
    return tuple([chat_step(entry) for entry in content if is_entry(entry)])


def is_entry(entry: object) -> bool:
    """Return True for an object that carries a log probability, be it null."""
    return isinstance(entry, dict) and is_figure(entry.get("logprob", ""))


def is_figure(value: object) -> bool:
    """Return True for a JSON number or null."""
    return value is None or isinstance(value, float | int)


def chat_step(entry: dict[str, Any]) -> TokenStep:
    """Read one entry of a chat choice."""
    top = entry.get("top_logprobs")
    listed = top if isinstance(top, list) else ()
    figures = [candidate.get("logprob") for candidate in listed if isinstance(candidate, dict)]
    return TokenStep(
        str(entry.get("token", "")),
        entry["logprob"],
        tuple([value for value in figures if is_figure(value)]),
    )


def steps_of_completion(logprobs: object, top_k: int | None = None) -> tuple[TokenStep, ...]:
    """Read `logprobs` of a completion choice; `top_k` is how many the request asked for.

    The entries are keyed by text, so ids that decode alike collide and one of them is lost.
    """
    if not isinstance(logprobs, dict):
        return ()
    chosen = listed(logprobs, "token_logprobs")
    tops = listed(logprobs, "top_logprobs") or [None] * len(chosen)
    texts = listed(logprobs, "tokens") + [""] * len(chosen)
    return tuple(
        completion_step(text, logprob, top, top_k)
        for text, logprob, top in zip(texts, chosen, tops, strict=False)
        if is_figure(logprob)
    )


def listed(logprobs: dict[str, Any], name: str) -> list[Any]:
    """Return a list of the answer; none is an empty one."""
    value = logprobs.get(name)
    return value if isinstance(value, list) else []


def completion_step(text: object, logprob: Any, top: object, top_k: int | None) -> TokenStep:
    """Read one step of a completion choice."""
    if not isinstance(top, dict):
        return TokenStep(str(text), logprob)
    whole = top_k is None or len(top) >= top_k
    complete = whole and not any(LOST in key or not key for key in top)
    figures = tuple(value for value in top.values() if is_figure(value))
    return TokenStep(str(text), logprob, figures, complete)
