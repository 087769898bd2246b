"""What clients ask, and how log probabilities are asked beside it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.requests import (
    INCLUDED,
    Route,
    decoding_of,
    generates,
    in_background,
    parsed,
    prompt_fingerprint,
    route_of,
    tenant_of,
    understand,
    understand_any,
    with_logprobs,
)
from gatemesh_common.messages import Decoding

KEY = b"0123456789abcdef"
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "你好 }"}]}
TEXT: dict[str, Any] = {"model": "m", "prompt": "The sea"}


@pytest.mark.parametrize(
    ("method", "path", "route"),
    [
        ("POST", "/v1/chat/completions", Route.CHAT),
        ("POST", "/v1/completions", Route.COMPLETIONS),
        ("POST", "/v1/responses", Route.RESPONSES),
        ("POST", "/v1/messages", Route.MESSAGES),
        ("POST", "/v1/messages/count_tokens", None),
        ("POST", "/v1/responses/resp_1/cancel", None),
        ("GET", "/v1/responses", None),
        ("GET", "/v1/chat/completions", None),
        ("POST", "/v1/chat/completions/", None),
        ("POST", "/v1/embeddings", None),
    ],
)
def test_four_paths_are_guarded(method: str, path: str, route: Route | None) -> None:
    """Everything else passes as it is."""
    assert route_of(method, path) is route


def test_other_ways_to_generate_are_known() -> None:
    """They are counted as unguarded."""
    assert generates("POST", "/inference/v1/generate")
    assert not generates("GET", "/inference/v1/generate")
    assert not generates("POST", "/v1/responses")
    assert not generates("POST", "/v1/embeddings")


@pytest.mark.parametrize(
    ("route", "extra", "own", "addable"),
    [
        pytest.param(Route.CHAT, {}, False, True, id="chat"),
        pytest.param(Route.CHAT, {"logprobs": False}, False, True, id="chat-false"),
        pytest.param(Route.CHAT, {"logprobs": None}, False, True, id="chat-null"),
        pytest.param(Route.CHAT, {"logprobs": 0}, False, True, id="chat-0"),
        pytest.param(Route.CHAT, {"logprobs": True}, True, False, id="chat-true"),
        pytest.param(Route.CHAT, {"top_logprobs": 5}, False, False, id="chat-refused-by-engine"),
        pytest.param(Route.CHAT, {"top_logprobs": 0}, False, True, id="chat-top-0"),
        pytest.param(Route.CHAT, {"echo": True}, False, False, id="chat-echo"),
        pytest.param(Route.CHAT, {"logprob_token_ids": [1]}, False, False, id="chat-token-ids"),
        pytest.param(Route.COMPLETIONS, {}, False, True, id="text"),
        pytest.param(Route.COMPLETIONS, {"logprobs": None}, False, True, id="text-null"),
        pytest.param(Route.COMPLETIONS, {"logprobs": 0}, True, False, id="text-0"),
        pytest.param(Route.COMPLETIONS, {"logprobs": 5}, True, False, id="text-5"),
        pytest.param(Route.COMPLETIONS, {"echo": True}, False, False, id="text-echo"),
        pytest.param(Route.RESPONSES, {}, False, True, id="response"),
        pytest.param(Route.RESPONSES, {"include": [INCLUDED]}, True, False, id="response-own"),
        pytest.param(Route.RESPONSES, {"include": ["x"]}, False, True, id="response-other"),
        pytest.param(Route.RESPONSES, {"include": "x"}, False, False, id="response-odd"),
        pytest.param(Route.RESPONSES, {"include": None}, False, True, id="response-null"),
        pytest.param(Route.RESPONSES, {"top_logprobs": 20}, False, True, id="response-top-20"),
        pytest.param(Route.RESPONSES, {"top_logprobs": 21}, False, False, id="response-top-21"),
        pytest.param(Route.RESPONSES, {"top_logprobs": True}, False, False, id="response-top-odd"),
        pytest.param(Route.MESSAGES, {"logprobs": True}, False, False, id="message"),
    ],
)
def test_who_asked_for_logprobs(
    route: Route,
    extra: dict[str, Any],
    own: bool,  # noqa: FBT001
    addable: bool,  # noqa: FBT001
) -> None:
    """Nothing is added where the client asked itself, or where it would show."""
    asked = understand(route, json.dumps(CHAT | extra).encode())
    assert (asked.own_logprobs, asked.may_add) == (own, addable)


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b"\xff\xfe{\x00}\x00", b'"x"'])
def test_what_is_no_object_is_not_understood(raw: bytes) -> None:
    """The engine is the one to refuse it."""
    asked = understand(Route.CHAT, raw)
    assert asked.body is None
    assert not asked.may_add


def test_lone_surrogates_are_understood() -> None:
    """The engine's parser takes them."""
    body = parsed(b'{"messages":[{"content":"\\ud800"}]}')
    assert body == {"messages": [{"content": "\ud800"}]}
    assert len(prompt_fingerprint(body, KEY)) == 32


@given(
    st.dictionaries(
        st.text(max_size=5), st.text(max_size=5) | st.none() | st.booleans(), max_size=4
    ),
    st.sampled_from(["", " ", "\n \t"]),
    st.sampled_from([Route.CHAT, Route.COMPLETIONS, Route.RESPONSES]),
    st.integers(1, 20),
)
def test_the_added_wish_overrules_and_the_rest_stays(
    body: dict[str, Any], blank: str, route: Route, count: int
) -> None:
    """All that the client wrote is still there, byte for byte and in its order."""
    raw = (blank + json.dumps(body, ensure_ascii=False, indent=1) + blank).encode()
    asked = understand(route, raw)
    sent = with_logprobs(asked, count)
    wishes: dict[Route, dict[str, Any]] = {
        Route.CHAT: {"logprobs": True, "top_logprobs": count},
        Route.COMPLETIONS: {"logprobs": count},
        Route.RESPONSES: {"include": [INCLUDED], "top_logprobs": count},
    }
    assert json.loads(sent) == body | wishes[route]
    end = raw.rindex(b"}")
    assert sent.startswith(raw[:end])
    assert sent.endswith(raw[end:])


def test_fingerprints_tell_prompts_apart_and_nothing_else() -> None:
    """Five copies of one prompt must be known as one."""
    one = prompt_fingerprint(CHAT, KEY)
    assert prompt_fingerprint(CHAT | {"temperature": 1, "user": "x"}, KEY) == one
    assert prompt_fingerprint(TEXT, KEY) != one
    assert prompt_fingerprint(CHAT, b"another key 0123") != one


def test_tenants_are_hashed() -> None:
    """The API key comes first, then the user field; neither travels."""
    by_key = tenant_of("Bearer secret", {"user": "ann"}, KEY)
    assert by_key is not None
    assert "secret" not in by_key
    assert by_key != tenant_of(None, {"user": "ann"}, KEY)
    assert tenant_of(None, {"user": 5}, KEY) is None
    assert tenant_of(None, {}, KEY) is None


@pytest.mark.parametrize(
    ("temperature", "decoding"),
    [
        (0, Decoding.GREEDY),
        (0.0, Decoding.GREEDY),
        (0.7, Decoding.SAMPLED),
        (None, Decoding.UNKNOWN),
        ("hot", Decoding.UNKNOWN),
    ],
)
def test_decoding(temperature: object, decoding: Decoding) -> None:
    """Unset is unknown: the model's own default decides."""
    assert decoding_of({"temperature": temperature}) is decoding


def test_what_the_client_wants_included_stays() -> None:
    """Ours comes behind it."""
    asked = understand(Route.RESPONSES, b'{"include":["reasoning.encrypted_content"],"input":"x"}')
    sent = json.loads(with_logprobs(asked, 20, by_id=True))
    assert sent["include"] == ["reasoning.encrypted_content", INCLUDED]
    assert "return_tokens_as_token_ids" not in sent


@pytest.mark.parametrize(
    ("raw", "route"),
    [
        (b'{"messages":[],"prompt":"x"}', Route.CHAT),
        (b'{"prompt":"x"}', Route.COMPLETIONS),
        (b'{"input":"x"}', None),
        (b"{", None),
    ],
)
def test_a_body_of_any_shape_is_known_by_its_fields(raw: bytes, route: Route | None) -> None:
    """As the engine tries them."""
    asked = understand_any(raw)
    assert (asked.route if asked else None) is route


def test_work_in_the_background_is_known() -> None:
    """Its answer is fetched later, past the gates."""
    assert in_background(Route.RESPONSES, {"background": True})
    assert not in_background(Route.RESPONSES, {})
    assert not in_background(Route.CHAT, {"background": True})


def test_the_prompt_of_every_route_has_a_fingerprint() -> None:
    """What the system says is part of it, as it is in a conversation."""
    prints = {
        prompt_fingerprint(body, KEY)
        for body in (
            {"input": "x"},
            {"input": "x", "instructions": "y"},
            {"messages": ["x"], "system": "y"},
            {"messages": ["x"]},
            {"prompt": "z"},
        )
    }
    assert len(prints) == 5
    assert prompt_fingerprint({"input": "x"}, KEY) == prompt_fingerprint({"prompt": "x"}, KEY)
