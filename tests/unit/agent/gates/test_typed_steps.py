"""What is read without the rest is what parsing all of it tells."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.steps import steps_of_chat
from gatemesh_agent.gates.typed_steps import read_chat_logprobs

FIGURES = st.floats(-30, 0) | st.integers(-9999, 0) | st.none()
TOKENS = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(
    ["token_id:17", "token_id:", "token_id:99999999999", '"', "\\"]
)
BYTES = st.none() | st.lists(st.integers(0, 300), max_size=4)
CANDIDATES = st.fixed_dictionaries({"token": TOKENS, "logprob": FIGURES, "bytes": BYTES})


def entry_of(chosen: dict[str, Any], top: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an entry as engines build it."""
    return {**chosen, "top_logprobs": top}


ENTRIES = st.builds(entry_of, CANDIDATES, st.lists(CANDIDATES, max_size=3))


@given(st.lists(ENTRIES, max_size=3), st.booleans())
def test_the_steps_are_those_that_parsing_tells(
    entries: list[dict[str, Any]],
    ascii_only: bool,  # noqa: FBT001 (hypothesis passes it)
) -> None:
    """Text, ids and figures, in order."""
    logprobs = {"content": entries}
    data = json.dumps(logprobs, ensure_ascii=ascii_only).encode()
    assert read_chat_logprobs(data).steps() == steps_of_chat(logprobs)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b'{"content":null}',
        b'{"tokens":["a"],"token_logprobs":[-1.0],"top_logprobs":[null]}',
        b'{"content":[{"token":"a","logprob":NaN,"top_logprobs":[]}]}',
        b'{"content":[{"token":"a","logprob":"-1","top_logprobs":[]}]}',
        b'{"content":[{"token":"a","top_logprobs":[]}]}',
        b'{"content":[{"token":"a","logprob":-1.0,"top_logprobs":[{"token":"\xff","logprob":-1}]}]}',
        b'{"content":[{"token":"a","logprob":-1.0,"top_logprobs":[{"token":"a","logprob":-1}]}',
    ],
)
def test_what_engines_do_not_build_is_left_to_the_parser(data: bytes) -> None:
    """Damage, text completions and figures that are none."""
    with pytest.raises(ValueError, match=r"."):
        read_chat_logprobs(data)
