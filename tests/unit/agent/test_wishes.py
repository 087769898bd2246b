"""What is added to requests."""

import json

from gatemesh_agent.requests import Route, understand
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
