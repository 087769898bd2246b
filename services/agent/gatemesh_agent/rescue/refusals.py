"""Why an answer is not continued elsewhere: a closed list. Pure."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from gatemesh_agent.answers import EVERYWHERE
from gatemesh_agent.requests import Asked, Route
from gatemesh_agent.sampling import has_other_media


class Refusal(StrEnum):
    """Why an answer is not continued."""

    STRUCTURED = "structured_output"
    TOOL_CALL = "tool_call"
    CHOICES = "several_choices"
    LOGPROBS_SEED = "logprobs_with_seed"
    MEDIA = "other_media"
    PENALTIES = "penalties"
    REASONING = "reasoning"
    PROMPT = "prompt_form"
    ROUTE = "route"
    TOO_LONG = "too_long"
    UNJUDGED = "unjudged"
    BUDGET = "budget"
    TENANT_BUDGET = "tenant_budget"
    DEADLINE = "deadline"
    LIMIT = "continuations"
    DEATHS = "deaths"
    NO_INSTANCE = "no_instance"
    NOT_TAKEN = "not_taken"
    EVERYWHERE = "bad_everywhere"


SAID: Mapping[Refusal, str] = {
    Refusal.STRUCTURED: "a grammar or schema shapes it, and would begin anew",
    Refusal.TOOL_CALL: "a tool call was under way",
    Refusal.CHOICES: "it has several choices",
    Refusal.LOGPROBS_SEED: "log probabilities were asked of a seeded draw",
    Refusal.MEDIA: "its prompt holds pictures or sound",
    Refusal.PENALTIES: "its penalties would count what was said as a part of the prompt",
    Refusal.REASONING: "its reasoning was under way, or is not known",
    Refusal.PROMPT: "its prompt cannot be put together again",
    Refusal.ROUTE: "answers of this route are not continued",
    Refusal.TOO_LONG: "it is too long to be kept",
    Refusal.UNJUDGED: "it could not be read",
    Refusal.BUDGET: "the pool's budget of rescues is used up",
    Refusal.TENANT_BUDGET: "this client's share of the pool's budget of rescues is used up",
    Refusal.DEADLINE: "its time is up",
    Refusal.LIMIT: "it was continued as often as may be",
    Refusal.DEATHS: "two engines died under it",
    Refusal.NO_INSTANCE: "no other instance is in rotation",
    Refusal.NOT_TAKEN: "no other instance took it over",
    Refusal.EVERYWHERE: "it turned bad at more than one instance",
}
"""Each one as its client reads it."""

AT_ONCE = "send it again"
SOON = "send it again in a moment"
ADVICE: Mapping[Refusal, str] = {
    Refusal.EVERYWHERE: EVERYWHERE,
    Refusal.DEATHS: "it may be what ends them, so do not send it again as it is",
    Refusal.BUDGET: SOON,
    Refusal.TENANT_BUDGET: SOON,
    Refusal.NO_INSTANCE: SOON,
    Refusal.NOT_TAKEN: SOON,
}
"""What its client is told to do, where that is not to send it again at once."""

GRAMMARS = (
    *("structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar"),
    *("structural_tag", "guided_decoding_backend"),
)
FREE_FORMATS = (None, "text")


def refusal_of(asked: Asked, *, takes_media: bool = False) -> Refusal | None:
    """Return why answers to a request are never continued once some of one was seen."""
    body = asked.body
    if body is None:
        return Refusal.UNJUDGED
    for refusal, holds in RULES:
        if refusal is Refusal.MEDIA and takes_media:
            continue
        if holds(asked.route, body):
            return refusal
    return Refusal.LOGPROBS_SEED if asked.own_logprobs and has_seed(body) else None


def is_other_route(route: Route, _body: Mapping[str, Any]) -> bool:
    """Return True for routes whose events number and repeat what was said."""
    return route not in (Route.CHAT, Route.COMPLETIONS)


def has_several(route: Route, body: Mapping[str, Any]) -> bool:
    """Return True for more than one choice, or prompt, or beam."""
    if has_other_count(body, "n") or has_other_count(body, "best_of"):
        return True
    return bool(body.get("use_beam_search")) or (
        route is Route.COMPLETIONS and has_prompts(body.get("prompt"))
    )


def has_other_count(body: Mapping[str, Any], name: str) -> bool:
    """Return True where a count is asked for that is not 1."""
    return body.get(name) not in (None, 1)


def has_prompts(prompt: object) -> bool:
    """Return True for a list of several prompts."""
    return isinstance(prompt, list) and len(prompt) > 1 and not isinstance(prompt[0], int)


def is_structured(_route: Route, body: Mapping[str, Any]) -> bool:
    """Return True where a grammar holds the whole answer."""
    wish = body.get("response_format")
    kind = wish.get("type") if isinstance(wish, Mapping) else wish
    if kind not in FREE_FORMATS or any(body.get(name) is not None for name in GRAMMARS):
        return True
    return body.get("tool_choice") not in (None, "none", "auto")


def has_penalties(_route: Route, body: Mapping[str, Any]) -> bool:
    """Return True for penalties that count only what was said."""
    return any(body.get(name) for name in ("presence_penalty", "frequency_penalty"))


def has_odd_prompt(_route: Route, body: Mapping[str, Any]) -> bool:
    """Return True for a prompt that the engine cuts, repeats, or takes as vectors."""
    names = ("truncate_prompt_tokens", "echo", "prompt_embeds", "suffix")
    return any(body.get(name) for name in names)


def has_media(_route: Route, body: Mapping[str, Any]) -> bool:
    """Return True for a prompt with pictures or sound."""
    return has_other_media(body)


def has_seed(body: Mapping[str, Any]) -> bool:
    """Return True where draws are to be repeatable."""
    return body.get("seed") is not None


def hides_reasoning(_route: Route, body: Mapping[str, Any]) -> bool:
    """Return True where the engine withholds a part of what it wrote."""
    return body.get("include_reasoning") is False


RULES: tuple[tuple[Refusal, Callable[[Route, Mapping[str, Any]], bool]], ...] = (
    (Refusal.ROUTE, is_other_route),
    (Refusal.CHOICES, has_several),
    (Refusal.STRUCTURED, is_structured),
    (Refusal.PENALTIES, has_penalties),
    (Refusal.PROMPT, has_odd_prompt),
    (Refusal.MEDIA, has_media),
    (Refusal.REASONING, hides_reasoning),
)
