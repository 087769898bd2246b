"""What is added to requests."""

import json
from collections.abc import Hashable
from dataclasses import replace

from gatemesh_agent.requests import Asked, Route, understand
from gatemesh_agent.wishes import NOTHING, Wish, Wishes

CHAT = understand(Route.CHAT, b'{"messages":[]}')
OWN = understand(Route.CHAT, b'{"messages":[],"logprobs":true}')
CAP = b'{"error":{"message":"logprobs of 20, which is greater than max allowed: 5"}}'
STRANGE = b'{"error":{"message":"Unrecognized argument: return_tokens_as_token_ids"}}'
NO_LOGPROBS = b'{"error":{"message":"logprobs are not supported"}}'


def test_log_probabilities_are_asked_with_token_ids() -> None:
    """Unless the client asked for its own."""
    wishes = Wishes(20)
    assert wishes.of(CHAT, "life") == Wish(20, by_id=True)
    assert json.loads(Wish(20, by_id=True).body(CHAT)) == {
        "messages": [],
        "logprobs": True,
        "top_logprobs": 20,
        "return_tokens_as_token_ids": True,
    }
    assert wishes.of(OWN, "life") == NOTHING
    assert NOTHING.body(OWN) == OWN.raw


def test_what_a_life_refuses_is_not_asked_again() -> None:
    """Another life is asked for all of it."""
    wishes = Wishes(20)
    first = wishes.of(CHAT, "a")
    assert wishes.lessened(first, "a", STRANGE) == Wish(20)
    assert wishes.lessened(Wish(20), "a", CAP) == Wish(5)
    assert wishes.of(CHAT, "a") == Wish(5)
    assert wishes.of(CHAT, "b") == first


def test_a_refusal_of_unknown_cause_counts_for_this_request_only() -> None:
    """It may be the combination with something the client asked."""
    wishes = Wishes(20)
    assert wishes.lessened(Wish(20), "a", NO_LOGPROBS) == NOTHING
    assert wishes.of(CHAT, "a").count == 20
    assert wishes.lessened(NOTHING, "a", NO_LOGPROBS) is None
    assert wishes.lessened(Wish(20), "a", b"no such model") is None


class Names:
    """Names every request; takes the name back where an engine minds it."""

    def named(self, wish: Wish, _asked: Asked, _life: Hashable) -> Wish:
        """Name it."""
        return replace(wish, probe_id="p1")

    def lessened(self, wish: Wish, _life: Hashable, error: bytes) -> Wish | None:
        """Take the name back."""
        return replace(wish, probe_id="") if wish.probe_id and b"vllm_xargs" in error else None


def test_requests_are_named_for_the_engines_plugin() -> None:
    """Also those that bring log probabilities of their own; nothing else of them changes."""
    wishes = Wishes(0, Names())
    assert json.loads(wishes.of(OWN, "life").body(OWN)) == {
        "messages": [],
        "logprobs": True,
        "vllm_xargs": {"probe_id": "p1"},
    }
    both = Wishes(20, Names()).of(CHAT, "life").body(CHAT)
    assert json.loads(both)["vllm_xargs"] == {"probe_id": "p1"}
    assert json.loads(both)["top_logprobs"] == 20


def test_a_name_is_taken_back_and_never_remembered() -> None:
    """It belongs to one request; what a life refuses else is remembered without it."""
    wishes = Wishes(20, Names())
    named = wishes.of(CHAT, "a")
    refused = wishes.lessened(named, "a", b"unknown field vllm_xargs")
    assert refused == replace(named, probe_id="")
    assert wishes.lessened(named, "a", CAP) is not None
    assert Wishes.of(wishes, CHAT, "a").probe_id == "p1"
