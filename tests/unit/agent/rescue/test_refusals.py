"""What is never continued is known from the request."""

from typing import Any

import pytest
from tests.unit.agent.rescue.streams import asking

from gatemesh_agent.requests import Asked, Route
from gatemesh_agent.rescue.refusals import SAID, Refusal, refusal_of

PICTURE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]}]


def test_every_refusal_is_worded() -> None:
    """Its client reads why."""
    assert set(SAID) == set(Refusal)


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({}, None),
        ({"n": 1, "seed": 3, "repetition_penalty": 1.1, "stop": ["x"]}, None),
        ({"tools": [{"type": "function"}], "tool_choice": "auto"}, None),
        ({"response_format": {"type": "text"}}, None),
        ({"n": 2}, Refusal.CHOICES),
        ({"use_beam_search": True}, Refusal.CHOICES),
        ({"response_format": {"type": "json_object"}}, Refusal.STRUCTURED),
        ({"structured_outputs": {"regex": "a+"}}, Refusal.STRUCTURED),
        ({"tool_choice": "required"}, Refusal.STRUCTURED),
        ({"tool_choice": {"type": "function"}}, Refusal.STRUCTURED),
        ({"presence_penalty": 0.1}, Refusal.PENALTIES),
        ({"frequency_penalty": -0.1}, Refusal.PENALTIES),
        ({"truncate_prompt_tokens": 9}, Refusal.PROMPT),
        ({"include_reasoning": False}, Refusal.REASONING),
        ({"logprobs": True, "seed": 1}, Refusal.LOGPROBS_SEED),
        ({"messages": PICTURE}, Refusal.MEDIA),
    ],
)
def test_what_a_chat_asks_decides(body: dict[str, Any], refusal: Refusal | None) -> None:
    """Where continuing would change what an answer means."""
    assert refusal_of(asking(**body)) is refusal


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({}, None),
        ({"prompt": [1, 2, 3]}, None),
        ({"prompt": ["one"]}, None),
        ({"prompt": ["one", "two"]}, Refusal.CHOICES),
        ({"best_of": 3}, Refusal.CHOICES),
        ({"echo": True}, Refusal.PROMPT),
        ({"logprobs": 0, "seed": 1}, Refusal.LOGPROBS_SEED),
    ],
)
def test_what_a_completion_asks_decides(body: dict[str, Any], refusal: Refusal | None) -> None:
    """As for chats."""
    assert refusal_of(asking(Route.COMPLETIONS, **body)) is refusal


def test_pictures_go_on_where_the_pool_says_so() -> None:
    """Every instance can see them then."""
    assert refusal_of(asking(messages=PICTURE), takes_media=True) is None


def test_other_routes_and_odd_bodies_do_not() -> None:
    """Nothing is known of them."""
    assert refusal_of(asking(Route.RESPONSES)) is Refusal.ROUTE
    assert refusal_of(asking(Route.MESSAGES)) is Refusal.ROUTE
    assert refusal_of(Asked(Route.CHAT, b"x")) is Refusal.UNJUDGED
