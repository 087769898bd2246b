"""What another instance is sent, and how its answer is read."""

from typing import Any

import pytest
from tests.unit.shadow.parts import chat_answer, sample_of

from gatemesh_shadow.errors import NotReplayableError, ReplicaBrokenError
from gatemesh_shadow.replay import (
    CHAT,
    COMPLETIONS,
    own_is_comparable,
    prompt_ids,
    read_scores,
    read_second,
    replayable,
    score_body,
    second_body,
    tokenize_body,
)
from gatemesh_shadow.splits import Token

MESSAGES = [{"role": "user", "content": "Hi"}]
PICTURE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]


def test_tokenize_takes_what_shapes_the_prompt() -> None:
    """Tools and template arguments, nothing else."""
    request = {"model": "m", "messages": MESSAGES, "tools": [1], "temperature": 0, "seed": 1}
    assert tokenize_body(CHAT, request) == {
        "model": "m",
        "messages": MESSAGES,
        "tools": [1],
        "add_generation_prompt": True,
    }
    continued = {"messages": MESSAGES, "add_generation_prompt": False}
    assert tokenize_body(CHAT, continued)["add_generation_prompt"] is False


def test_plain_prompts() -> None:
    """As text, as a list of one, or as ids."""
    assert tokenize_body(COMPLETIONS, {"prompt": "x"}) == {"prompt": "x"}
    assert tokenize_body(COMPLETIONS, {"prompt": ["x"]}) == {"prompt": "x"}
    assert prompt_ids({"prompt": [1, 2]}) == [1, 2]
    assert prompt_ids({"prompt": "x"}) is None
    assert prompt_ids({"prompt": [True]}) is None


@pytest.mark.parametrize(
    ("path", "request_"),
    [
        (CHAT, {"messages": PICTURE}),
        (CHAT, {"messages": "x"}),
        (CHAT, {"messages": ["x"]}),
        (COMPLETIONS, {"prompt": ["a", "b"]}),
        (COMPLETIONS, {}),
        ("/v1/audio/speech", {}),
    ],
)
def test_what_cannot_be_replayed(path: str, request_: dict[str, Any]) -> None:
    """Pictures, several prompts, other routes."""
    with pytest.raises(NotReplayableError):
        tokenize_body(path, request_)


def test_other_routes_become_chats() -> None:
    """Responses and messages, as far as they are text."""
    responses = sample_of(
        path="/v1/responses",
        request={"model": "m", "instructions": "Be brief.", "input": "Hi", "max_output_tokens": 9},
    )
    assert replayable(responses) == (
        CHAT,
        {
            "model": "m",
            "max_tokens": 9,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
            ],
        },
    )
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    messages = sample_of(path="/v1/messages", request={"messages": parts, "max_tokens": 3})
    assert replayable(messages)[1]["messages"] == [{"role": "user", "content": "Hi"}]
    same = sample_of()
    assert replayable(same) == (same.path, same.request)


@pytest.mark.parametrize(
    "request_",
    [
        {"input": [{"type": "function_call_output", "output": "x"}]},
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        {"input": "x", "tools": [{}]},
        {"input": 3},
    ],
)
def test_other_routes_with_more_than_text(request_: dict[str, Any]) -> None:
    """Are left alone."""
    with pytest.raises(NotReplayableError):
        replayable(sample_of(path="/v1/responses", request=request_))


def test_score_body() -> None:
    """One prefill, one token."""
    assert score_body("m", (1, 2)) == {
        "model": "m",
        "prompt": [1, 2],
        "max_tokens": 1,
        "temperature": 0,
        "prompt_logprobs": 1,
    }
    assert "model" not in score_body(None, (1,))


def scores_body(*entries: dict[str, dict[str, float | None]] | None) -> dict[str, Any]:
    """An answer with prompt scores."""
    return {"choices": [{"prompt_logprobs": list(entries)}]}


def test_read_scores() -> None:
    """Of the last tokens, with the likeliest one at each."""
    body = scores_body(
        None, {"1": {"logprob": -9.0}}, {"2": {"logprob": -3.0}, "7": {"logprob": -0.1}}
    )
    scores = read_scores(body, [2])
    assert (scores.chosen, scores.favourite) == ((-3.0,), (-0.1,))


def test_read_the_texts_of_tokens() -> None:
    """Of the given one and of the favourite; they show what is a matter of spelling."""
    entry = {
        "2": {"logprob": -3.0, "decoded_token": " c"},
        "7": {"logprob": -0.1, "decoded_token": " cat"},
    }
    scores = read_scores({"choices": [{"prompt_logprobs": [None, entry]}]}, [2])
    assert (scores.pieces, scores.favourites) == ((" c",), (" cat",))
    assert (scores.chosen, scores.favourite) == ((-3.0,), (-0.1,))


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{}]},
        scores_body(None),
        scores_body(None, None, {"2": {"logprob": -1.0}}) | {"choices": [{"prompt_logprobs": []}]},
        scores_body(None, {"3": {"logprob": -1.0}}),
        scores_body(None, {"2": {"logprob": None}}),
        scores_body(None, {"2": {"logprob": float("inf")}}),
    ],
)
def test_broken_scores(body: dict[str, Any]) -> None:
    """Missing, of another token, or no numbers."""
    with pytest.raises(ReplicaBrokenError):
        read_scores(
            body, [2] if len(body["choices"][0].get("prompt_logprobs") or []) != 1 else [2, 2]
        )


def test_second_body() -> None:
    """The same request, whole, once, with log probabilities by id, and not longer than allowed."""
    request = {"messages": MESSAGES, "stream": True, "n": 3, "temperature": 0.5, "max_tokens": 900}
    body = second_body(CHAT, request, 64)
    assert (body["stream"], body["max_tokens"], body["temperature"]) == (False, 64, 0.5)
    assert "n" not in body
    assert body["return_tokens_as_token_ids"]
    assert second_body(COMPLETIONS, {"prompt": "x"}, 64)["logprobs"] == 5
    for name in ("max_tokens", "max_completion_tokens"):
        assert second_body(CHAT, {"messages": MESSAGES, name: None}, 64)["max_tokens"] == 64
    longest = second_body(CHAT, {"messages": MESSAGES, "max_completion_tokens": 5}, 64)
    assert longest["max_completion_tokens"] == 5
    assert "max_tokens" not in longest


def test_read_second() -> None:
    """Text, calls and tokens by id; none at all where ids are missing."""
    second = read_second(CHAT, chat_answer("Hi", [5], [-0.2]))
    assert (second.text, second.tokens, second.cut) == ("Hi", (Token(5, {5: -0.2}),), False)
    named = {"choices": [{"text": "Hi", "logprobs": {"tokens": ["Hi"], "top_logprobs": [None]}}]}
    assert read_second(COMPLETIONS, named).tokens == ()
    by_id = {
        "choices": [
            {
                "text": "Hi",
                "finish_reason": "length",
                "logprobs": {"tokens": ["token_id:5"], "top_logprobs": [{"token_id:5": -0.2}]},
            }
        ]
    }
    read = read_second(COMPLETIONS, by_id)
    assert (read.tokens, read.cut) == ((Token(5, {5: -0.2}),), True)
    called = {"choices": [{"message": {"content": None, "tool_calls": [{"id": "1"}]}}]}
    assert read_second(CHAT, called).tool_calls == ({"id": "1"},)


@pytest.mark.parametrize(
    ("mode", "request_", "comparable"),
    [
        ("raw", {"temperature": 0.3, "top_p": 0.5}, True),
        ("processed", {"temperature": 0}, True),
        ("processed", {"temperature": 1.0}, True),
        ("processed", {"temperature": 0.7}, False),
        ("processed", {"temperature": 0, "repetition_penalty": 1.2}, False),
    ],
)
def test_own_figures(mode: str, request_: dict[str, Any], *, comparable: bool) -> None:
    """Processed ones are the model's only without sampling rules."""
    assert own_is_comparable(mode, request_) is comparable
