"""Understanding request bodies."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_engine_sim.errors import ApiError
from gatemesh_engine_sim.fault_plan import FaultSpec
from gatemesh_engine_sim.intake import Asked, Route, parse_body, understand
from gatemesh_engine_sim.library import Library
from gatemesh_engine_sim.prompts import text_of_content
from gatemesh_engine_sim.settings import SimSettings

Ask = Callable[..., Asked]


def test_defaults(ask: Ask) -> None:
    """What a plain chat request means."""
    asked = ask()
    assert (asked.model, asked.question, asked.choices) == ("sim", "Tell me a story.", 1)
    assert (asked.temperature, asked.stream, asked.logprobs) == (1.0, False, None)
    assert asked.max_tokens == SimSettings().default_max_tokens
    assert not asked.greedy


@pytest.mark.parametrize(
    ("route", "body", "count"),
    [
        (Route.CHAT, {}, None),
        (Route.CHAT, {"logprobs": False}, None),
        (Route.CHAT, {"logprobs": True}, 0),
        (Route.CHAT, {"logprobs": True, "top_logprobs": 20}, 20),
        (Route.COMPLETIONS, {}, None),
        (Route.COMPLETIONS, {"logprobs": 0}, 0),
        (Route.COMPLETIONS, {"logprobs": 20}, 20),
        (Route.COMPLETIONS, {"logprobs": True}, 1),
    ],
)
def test_logprobs(ask: Ask, route: Route, body: dict[str, Any], count: int | None) -> None:
    """The two routes ask in different ways."""
    assert ask(route, **body).logprobs == count


@pytest.mark.parametrize(
    ("body", "status", "kind", "param"),
    [
        ({"model": "other"}, 404, "NotFoundError", "model"),
        ({"logprobs": True, "top_logprobs": 21}, 400, "BadRequestError", "logprobs"),
        ({"n": 2, "temperature": 0}, 400, "BadRequestError", None),
        ({"n": 0}, 400, "BadRequestError", None),
        ({"n": 1_000_000_000}, 400, "BadRequestError", None),
        ({"logprobs": True, "top_logprobs": "x"}, 400, "Bad Request", "body.top_logprobs"),
        ({"max_tokens": 8_193}, 400, "BadRequestError", "max_tokens"),
        ({"max_tokens": 0.5}, 400, "BadRequestError", "max_tokens"),
        ({"temperature": "hot"}, 400, "Bad Request", "body.temperature"),
        ({"messages": "hello"}, 400, "Bad Request", "body.messages"),
        ({"messages": ["hello"]}, 400, "Bad Request", "body.messages"),
        ({"messages": []}, 400, "BadRequestError", None),
        ({"top_logprobs": 3}, 400, "BadRequestError", "top_logprobs"),
        ({"vllm_xargs": {"sim_fault": 7}}, 400, "BadRequestError", "sim_fault"),
    ],
)
def test_refusals(
    ask: Ask, body: dict[str, Any], status: int, kind: str, param: str | None
) -> None:
    """With vLLM's status, kind and parameter."""
    with pytest.raises(ApiError) as refusal:
        ask(**body)
    error = refusal.value
    assert (error.status, error.kind, error.param) == (status, kind, param)


def test_completion_logprobs_that_are_no_number(ask: Ask) -> None:
    """Refused, and no error of the server."""
    with pytest.raises(ApiError, match="valid number"):
        ask(Route.COMPLETIONS, logprobs="x")


def test_missing_messages(library: Library) -> None:
    """The commonest mistake."""
    with pytest.raises(ApiError, match="Field required"):
        understand(Route.CHAT, {"prompt": "x"}, {}, SimSettings(), library.vocabulary)


def test_long_prompt_is_refused(ask: Ask) -> None:
    """With the parameter clients look for."""
    with pytest.raises(ApiError, match="maximum context length") as refusal:
        ask(messages=[{"role": "user", "content": "7" * 9_000}])
    assert refusal.value.param == "input_tokens"


def test_room_is_cut_silently(ask: Ask) -> None:
    """As vLLM does when prompt and answer together would be too long."""
    asked = ask(messages=[{"role": "user", "content": "7" * 8_000}], max_tokens=1_000)
    assert asked.max_tokens == 8_192 - len(asked.prompt_ids)


@pytest.mark.parametrize("prompt", ["Hello", ["Hello"], [["Hello"]][0]])
def test_completion_prompts(ask: Ask, prompt: object) -> None:
    """Text, or a list with one text."""
    assert ask(Route.COMPLETIONS, prompt=prompt).question == "Hello"


def test_completion_prompt_as_ids(ask: Ask, library: Library) -> None:
    """The way a broken answer is continued."""
    ids = library.vocabulary.encode("Hello")
    assert ask(Route.COMPLETIONS, prompt=ids).question == "Hello"


@pytest.mark.parametrize("prompt", ["", [], None, [1, "a"]])
def test_completion_without_prompt(ask: Ask, prompt: object) -> None:
    """Refused."""
    with pytest.raises(ApiError, match="prompt"):
        ask(Route.COMPLETIONS, prompt=prompt)


def test_fault_by_header_wins(library: Library) -> None:
    """Over the one in the body."""
    body = {"prompt": "x", "vllm_xargs": {"sim_fault": "flat"}}
    asked = understand(
        Route.COMPLETIONS, body, {"X-Sim-Fault": "nan"}, SimSettings(), library.vocabulary
    )
    assert asked.fault == FaultSpec(fault="nan")


def test_stop_strings(ask: Ask) -> None:
    """One or several."""
    assert ask(stop="a").stops == ("a",)
    assert ask(stop=["a", "b"]).stops == ("a", "b")
    assert ask().stops == ()


def test_content_parts() -> None:
    """Text parts are joined, images ignored."""
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]
    assert text_of_content(parts) == "ab"
    assert text_of_content(None) == ""


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"7", b"\xff"])
def test_bodies_that_are_no_object(raw: bytes) -> None:
    """400 in the shape for malformed bodies."""
    with pytest.raises(ApiError) as refusal:
        parse_body(raw)
    assert refusal.value.kind == "Bad Request"


@given(st.binary())
def test_any_bytes_parse_or_are_refused(raw: bytes) -> None:
    """No other error gets out."""
    with contextlib.suppress(ApiError):
        assert isinstance(parse_body(raw), dict)
