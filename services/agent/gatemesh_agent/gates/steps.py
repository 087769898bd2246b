"""Log probabilities of single steps, read from what OpenAI-compatible engines send."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from gatemesh_common.gates import TokenStep as TokenStep  # noqa: PLC0414

FIGURES = frozenset({float, int, type(None)})
LOST = "\ufffd"

step_of: Callable[[tuple[Any, ...]], TokenStep] = partial(tuple.__new__, TokenStep)
"""Makes one of its parts, in order; a third of the price of naming them."""

ID_MARK = "token_id:"
"""How a token is written where ids were asked for: `token_id:17`."""
LONGEST_ID = 10


def id_of(token: object) -> int | None:
    """Return the id that stands for a token's text, None where the text itself stands."""
    return id_in(token) if isinstance(token, str) else None


@lru_cache(maxsize=8192)
def id_in(token: str) -> int | None:
    """Return the id that a text stands for; the same few thousand tokens make up most answers."""
    if len(token) > LONGEST_ID + len(ID_MARK) or not token.startswith(ID_MARK):
        return None
    digits = token[len(ID_MARK) :]
    return int(digits) if digits.isdecimal() and len(digits) <= LONGEST_ID else None


def text_of_bytes(value: object) -> str:
    """Return the text that a chat entry's `bytes` spell; odd ones spell nothing."""
    if not isinstance(value, list):
        return ""
    try:
        return bytes(value).decode("utf-8", "replace")
    except (TypeError, ValueError):
        return ""


def steps_of_chat(logprobs: object) -> tuple[TokenStep, ...]:
    """Read `logprobs` of a chat choice or delta; what cannot be read is left out."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return ()
    if len(content) == 1:
        entry = content[0]
        return (chat_step(entry),) if is_entry(entry) else ()
    return tuple([chat_step(entry) for entry in content if is_entry(entry)])


def is_entry(entry: object) -> bool:
    """Return True for an object that carries a log probability, be it null."""
    return isinstance(entry, dict) and is_figure(entry.get("logprob", ""))


def is_figure(value: object) -> bool:
    """Return True for a JSON number or null."""
    # A tuple: a union takes three times as long to look into.
    return value is None or isinstance(value, (float, int))


def chat_step(entry: dict[str, Any]) -> TokenStep:
    """Read one entry of a chat choice."""
    token = entry.get("token", "")
    token_id = id_of(token)
    text = str(token) if token_id is None else text_of_bytes(entry.get("bytes"))
    figures = chat_figures(entry.get("top_logprobs"))
    return step_of((text, entry["logprob"], figures, True, token_id))


def chat_figures(top: object) -> tuple[float | None, ...]:
    """Return the figures of the candidates; what cannot be read is left out."""
    if not isinstance(top, list):
        return ()
    try:
        figures = tuple([candidate["logprob"] for candidate in top])
    except (TypeError, KeyError):
        figures = tuple([each.get("logprob") for each in top if isinstance(each, dict)])
    return only_figures(figures)


def only_figures(values: tuple[Any, ...]) -> tuple[float | None, ...]:
    """Return the values that are JSON numbers or null; nearly always all of them are."""
    if FIGURES.issuperset(map(type, values)):
        return values
    return tuple([value for value in values if is_figure(value)])


def steps_of_completion(
    logprobs: object, top_k: int | None = None, said: str = ""
) -> tuple[TokenStep, ...]:
    """Read `logprobs` of a completion choice; `top_k` is how many the request asked for.

    Entries keyed by text collide where ids decode alike, and one of them is lost. Entries keyed by
    id do not, but hold no text: each step then gets its part of what the choice `said`.
    """
    if not isinstance(logprobs, dict):
        return ()
    chosen = listed(logprobs, "token_logprobs")
    tops = listed(logprobs, "top_logprobs") or [None] * len(chosen)
    tokens = listed(logprobs, "tokens") + [""] * len(chosen)
    steps = tuple(
        completion_step(token, logprob, top, top_k)
        for token, logprob, top in zip(tokens, chosen, tops, strict=False)
        if is_figure(logprob)
    )
    return with_text(steps, said)


def with_text(steps: tuple[TokenStep, ...], said: str) -> tuple[TokenStep, ...]:
    """Return steps that are known by id only with their parts of a text, in order.

    One step has all of it, as in a stream; of several each has as many characters as the others.
    """
    count = len(steps)
    if not count or steps[0].token_id is None:
        return steps
    size = len(said)
    return tuple(
        step._replace(text=said[size * place // count : size * (place + 1) // count])
        for place, step in enumerate(steps)
    )


def listed(logprobs: dict[str, Any], name: str) -> list[Any]:
    """Return a list of the answer; none is an empty one."""
    value = logprobs.get(name)
    return value if isinstance(value, list) else []


def completion_step(text: object, logprob: Any, top: object, top_k: int | None) -> TokenStep:
    """Read one step of a completion choice."""
    token_id = id_of(text)
    shown = str(text) if token_id is None else ""
    if not isinstance(top, dict):
        return TokenStep(shown, logprob, token_id=token_id)
    whole = top_k is None or len(top) >= top_k
    complete = whole and "" not in top and LOST not in "".join(top)
    return TokenStep(shown, logprob, only_figures(tuple(top.values())), complete, token_id)
