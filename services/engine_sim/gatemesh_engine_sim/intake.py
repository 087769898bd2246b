"""Reads a request body into what the engine has to do; refuses what vLLM refuses."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson
from pydantic import ValidationError

from gatemesh_engine_sim.errors import bad_request, malformed, unknown_model
from gatemesh_engine_sim.fault_plan import FaultSpec, spec_of_header, spec_of_xargs
from gatemesh_engine_sim.prompts import Body, Prompt, chat_prompt, completion_prompt
from gatemesh_engine_sim.settings import SimSettings
from gatemesh_engine_sim.steps import IdOf
from gatemesh_engine_sim.translations import of_message, of_response, unchanged
from gatemesh_engine_sim.vocabulary import VOCABULARY_SIZE, Vocabulary

MAX_LOGPROBS = 20
MAX_CHOICES = 16_384
"""As many as vLLM takes."""


class Route(StrEnum):
    """The ways to ask for text."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    RESPONSES = "responses"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for text, understood."""

    route: Route
    model: str
    prompt: Prompt
    max_tokens: int
    temperature: float
    choices: int
    stream: bool
    logprobs: int | None
    """How many candidates per step; None: no log probabilities."""
    stops: tuple[str, ...]
    include_usage: bool
    return_token_ids: bool
    id_of: IdOf | None
    """Set where log probabilities are to name tokens by their ids."""
    prompt_logprobs: int | None
    """How many candidates per token of the prompt; None: the prompt is not scored."""
    seed: int
    response_format: Mapping[str, Any]
    fault: FaultSpec | None

    @property
    def question(self) -> str:
        """What picks the answer."""
        return self.prompt.question

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """The prompt's token ids."""
        return self.prompt.ids

    @property
    def greedy(self) -> bool:
        """True at temperature 0."""
        return self.temperature == 0


def parse_body(raw: bytes) -> Body:
    """The JSON object in a request body.

    Raises:
        ApiError: it is not JSON or not an object.
    """
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise malformed("json_invalid", "JSON decode error", value={}) from error
    if not isinstance(body, dict):
        raise malformed(
            "model_attributes_type",
            "Input should be a valid dictionary or object to extract fields from",
            value=body,
        )
    return body


def understand(
    route: Route, body: Body, headers: Mapping[str, str], settings: SimSettings, words: Vocabulary
) -> Asked:
    """What the body asks for.

    Raises:
        ApiError: with the status and body vLLM answers.
    """
    body = TRANSLATED[route](body)
    model = body.get("model") or settings.model
    if model != settings.model:
        raise unknown_model(str(model), settings.model)
    prompt = PROMPTS[route](body, words)
    temperature = _number(body, "temperature", 1.0)
    choices = int(_number(body, "n", 1))
    if choices < 1:
        raise bad_request(f"n must be at least 1, got {choices}.")
    if choices > MAX_CHOICES:
        raise bad_request(
            f"n must be at most {MAX_CHOICES}, got {choices}. To increase this limit, set the "
            "VLLM_MAX_N_SEQUENCES environment variable."
        )
    if choices > 1 and temperature == 0:
        raise bad_request(f"n must be 1 when using greedy sampling, got {choices}.")
    check_bias(body)
    return Asked(
        route=route,
        model=settings.model,
        prompt=prompt,
        max_tokens=_max_tokens(body, len(prompt.ids), settings),
        temperature=temperature,
        choices=choices,
        stream=bool(body.get("stream")),
        logprobs=LOGPROBS[route](body),
        stops=_stops(body),
        include_usage=bool((body.get("stream_options") or {}).get("include_usage")),
        return_token_ids=bool(body.get("return_token_ids")),
        id_of=words.token_id if body.get("return_tokens_as_token_ids") else None,
        prompt_logprobs=_prompt_logprobs(body),
        seed=int(_number(body, "seed", 0)),
        response_format=body.get("response_format") or {},
        fault=_own_fault(body, headers),
    )


def check_bias(body: Body) -> None:
    """Refuse a bias of a token that is none, as the engine does.

    Raises:
        ApiError: names the ids, and the size of the vocabulary.
    """
    bias = body.get("logit_bias")
    ids = [int(key) for key in bias if str(key).isdigit()] if isinstance(bias, dict) else []
    wrong = [token_id for token_id in ids if token_id >= VOCABULARY_SIZE]
    if wrong:
        raise bad_request(
            f"token_id(s) {wrong} in logit_bias contain out-of-vocab token ids. "
            f"Vocabulary size: {VOCABULARY_SIZE}",
            "logit_bias",
        )


def _max_tokens(body: Body, prompt_tokens: int, settings: SimSettings) -> int:
    room = settings.max_model_len - prompt_tokens
    if room < 1:
        message = (
            f"This model's maximum context length is {settings.max_model_len} tokens. However, "
            f"your prompt contains at least {prompt_tokens} input tokens, which exceeds this limit "
            "even without any output tokens. Please reduce the length of the input prompt. "
            f"(parameter=input_tokens, value={prompt_tokens})"
        )
        raise bad_request(message, "input_tokens")
    asked = body.get("max_completion_tokens") or body.get("max_tokens")
    if asked is None:
        return min(room, settings.default_max_tokens)
    if not isinstance(asked, int) or asked < 1:
        raise bad_request(
            f"max_tokens must be at least 1, got {asked}. (parameter=max_tokens, value={asked})",
            "max_tokens",
        )
    if asked > settings.max_model_len:
        message = (
            f"max_tokens={asked} cannot be greater than max_model_len={settings.max_model_len}. "
            f"Please request fewer output tokens. (parameter=max_tokens, value={asked})"
        )
        raise bad_request(message, "max_tokens")
    return min(asked, room)


def _chat_logprobs(body: Body) -> int | None:
    top = body.get("top_logprobs")
    if not body.get("logprobs"):
        if top:
            raise bad_request(
                "when using `top_logprobs`, `logprobs` must be set to true. "
                "(parameter=top_logprobs)",
                "top_logprobs",
            )
        return None
    return _capped(_count(body, "top_logprobs"))


def _completion_logprobs(body: Body) -> int | None:
    return None if body.get("logprobs") is None else _capped(_count(body, "logprobs"))


def _prompt_logprobs(body: Body) -> int | None:
    if body.get("prompt_logprobs") is None:
        return None
    count = int(_number(body, "prompt_logprobs", 0))
    if count < 0:
        raise bad_request("`prompt_logprobs` must be a positive value or -1.", "prompt_logprobs")
    if count and body.get("stream"):
        raise bad_request(
            "`prompt_logprobs` are not available when `stream=True`.", "prompt_logprobs"
        )
    return _capped(count)


def _count(body: Body, name: str) -> int:
    value = body.get(name)
    return value if isinstance(value, bool) else int(_number(body, name, 0))


def _capped(count: int) -> int:
    if count > MAX_LOGPROBS:
        raise bad_request(
            f"Requested sample logprobs of {count}, "
            f"which is greater than max allowed: {MAX_LOGPROBS} "
            f"(parameter=logprobs, value={count})",
            "logprobs",
            late=True,
        )
    return count


def _stops(body: Body) -> tuple[str, ...]:
    stop = body.get("stop") or ()
    return (stop,) if isinstance(stop, str) else tuple(str(one) for one in stop)


def _number(body: Body, name: str, default: float) -> float:
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise malformed("float_type", "Input should be a valid number", name, value=value)
    return value


def _own_fault(body: Body, headers: Mapping[str, str]) -> FaultSpec | None:
    header = headers.get("X-Sim-Fault")
    try:
        return spec_of_header(header) if header else spec_of_xargs(body.get("vllm_xargs") or {})
    except (ValidationError, ValueError) as error:
        raise bad_request(f"sim_fault: {error}", "sim_fault") from error


PROMPTS = dict.fromkeys(Route, chat_prompt) | {Route.COMPLETIONS: completion_prompt}
LOGPROBS = dict.fromkeys(Route, _chat_logprobs) | {Route.COMPLETIONS: _completion_logprobs}
TRANSLATED = dict.fromkeys(Route, unchanged) | {
    Route.RESPONSES: of_response,
    Route.MESSAGES: of_message,
}
