"""Added log probabilities leave no trace."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.stripping import (
    LogprobsCut,
    exists_for_logprobs_only,
    loads,
    part,
    value_end,
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    [
        '"logprobs":{"a":1}',
        '\\"logprobs\\":{',
        "}]",
        ',"finish_reason":',
        "\\",
        '"',
        "你好🌸",
        "\x00\u2028",
    ]
)
LOGPROB = st.none() | st.floats(-30, 0)
ENTRY = st.fixed_dictionaries(
    {
        "token": TEXT,
        "logprob": LOGPROB,
        "bytes": st.none() | st.lists(st.integers(0, 255), max_size=3),
        "top_logprobs": st.lists(
            st.fixed_dictionaries({"token": TEXT, "logprob": LOGPROB}), max_size=3
        ),
    }
)
CHAT_LOGPROBS = st.fixed_dictionaries({"content": st.lists(ENTRY, max_size=3)})
COMPLETION_LOGPROBS = st.fixed_dictionaries(
    {
        "text_offset": st.lists(st.integers(0, 99), max_size=2),
        "token_logprobs": st.lists(LOGPROB, max_size=2),
        "tokens": st.lists(TEXT, max_size=2),
        "top_logprobs": st.lists(st.dictionaries(TEXT, LOGPROB, max_size=3), max_size=2),
    }
)
LOGPROBS = st.none() | CHAT_LOGPROBS | COMPLETION_LOGPROBS
CHOICE = st.fixed_dictionaries(
    {
        "index": st.integers(0, 3),
        "delta": st.fixed_dictionaries({"content": TEXT}),
        "logprobs": LOGPROBS,
        "finish_reason": st.none() | st.just("stop"),
        "unknown": st.none() | st.dictionaries(TEXT, TEXT, max_size=2),
    }
)
ANSWER = st.fixed_dictionaries(
    {"id": TEXT, "choices": st.lists(CHOICE, max_size=3), "usage": st.none(), "extra": TEXT}
)


def compact(value: Any) -> bytes:
    """Write JSON as the engine does."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def spaced(value: Any) -> bytes:
    """Write JSON as other engines may."""
    return json.dumps(value, ensure_ascii=True, separators=(", ", ": ")).encode()


def bare(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer as it is without log probabilities."""
    choices = [{**choice, "logprobs": None} for choice in answer["choices"]]
    return {**answer, "choices": choices}


@given(ANSWER, st.sampled_from([b"", b"data: "]))
def test_the_rest_is_what_the_engine_would_have_written(
    answer: dict[str, Any], lead: bytes
) -> None:
    """Byte for byte, whatever stands in the strings."""
    parted = part(lead + compact(answer) + b"\n\n", len(lead))
    assert parted.rest == lead + compact(bare(answer)) + b"\n\n"
    assert parted.fields == answer


@given(ANSWER)
def test_another_spelling_of_json_is_kept(answer: dict[str, Any]) -> None:
    """White space and escapes stay as they were."""
    parted = part(spaced(answer))
    assert parted.rest == spaced(bare(answer))
    assert parted.fields == answer


@given(ANSWER, st.lists(st.integers(0, 100_000), max_size=8))
def test_the_cut_agrees_however_the_answer_arrives(
    answer: dict[str, Any], places: list[int]
) -> None:
    """An answer too large to hold loses the same bytes."""
    data = compact(answer)
    marks = sorted({place % (len(data) + 1) for place in places})
    filter_ = LogprobsCut()
    pieces = [data[a:b] for a, b in zip([0, *marks], [*marks, len(data)], strict=True)]
    assert b"".join(map(filter_.feed, pieces)) + filter_.end() == compact(bare(answer))


def test_a_cut_that_ends_within_a_value_gives_no_torn_value() -> None:
    """A broken stream shows nothing of what was added."""
    filter_ = LogprobsCut()
    assert (
        filter_.feed(b'{"choices":[{"logprobs":{"content":[{"tok')
        == b'{"choices":[{"logprobs":null'
    )
    assert filter_.end() == b""


def test_a_value_elsewhere_than_in_a_choice_is_kept() -> None:
    """Unknown fields stay, even one of that name."""
    data = compact({"choices": [{"logprobs": {"content": []}}], "x": {"logprobs": {"a": 1}}})
    parted = part(data)
    assert parted.rest == b'{"choices":[{"logprobs":null}],"x":{"logprobs":{"a":1}}}'
    assert parted.fields == json.loads(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"choices":[{"logprobs":{', id="torn"),
        pytest.param(b"[1]", id="no-object"),
        pytest.param(b"{", id="no-json"),
        pytest.param(b'{"a":"\xff"}', id="not-utf-8"),
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    """The caller passes it on as it is."""
    with pytest.raises(ValueError):  # noqa: PT011
        part(data)


def test_lone_surrogates_and_nan_are_read() -> None:
    """Python's own encoder writes them, so the engine may."""
    assert loads(b'{"a":"\\ud800"}') == {"a": "\ud800"}
    assert loads(b'{"a":NaN}')["a"] != loads(b'{"a":NaN}')["a"]


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        pytest.param(
            [{"delta": {}, "logprobs": {"content": []}, "finish_reason": None}], True, id="bare"
        ),
        pytest.param([{"delta": {}, "logprobs": None, "finish_reason": None}], False, id="none"),
        pytest.param(
            [{"delta": {}, "logprobs": {"content": []}, "finish_reason": "stop"}], False, id="last"
        ),
        pytest.param(
            [{"delta": {"content": ""}, "logprobs": {"content": []}}], False, id="held-text"
        ),
        pytest.param([{"text": "", "logprobs": {"tokens": []}}], False, id="completion"),
        pytest.param(
            [{"delta": {}, "logprobs": {}}, {"delta": {}, "logprobs": {}}], False, id="two"
        ),
        pytest.param([], False, id="usage"),
    ],
)
def test_only_bare_chat_events_exist_for_logprobs(choices: list[Any], expected: bool) -> None:  # noqa: FBT001
    """Dropping any other would change what the client sees."""
    assert exists_for_logprobs_only({"choices": choices}) is expected


def test_value_end_skips_brackets_in_strings() -> None:
    """Only brackets outside strings count."""
    data = b'x{"a":"}\\"]","b":[{}]}y'
    assert value_end(data, 1) == len(data) - 1
