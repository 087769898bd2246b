"""What was added to `/v1/responses` leaves no trace."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.requests import Route
from gatemesh_agent.responses_stripping import ListsCut, part, part_by_value
from gatemesh_agent.strippers import stripper_of

TEXTS = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    [" ]}]", '"logprobs":[1]', "\\", '"', '"top_logprobs":3,', "]}]}"]
)
FIGURES = st.floats(-9999, 0) | st.none()
TOPS = st.lists(
    st.fixed_dictionaries({"token": TEXTS, "bytes": st.just([66]), "logprob": FIGURES}), max_size=2
)
ENTRIES = st.lists(
    st.fixed_dictionaries({"token": TEXTS, "logprob": FIGURES, "top_logprobs": TOPS}),
    min_size=1,
    max_size=3,
)
SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"logprobs": [1]}, {"top_logprobs": 20}, {"properties": {"logprobs": {"type": "x"}}}]
)


def compact(fields: dict[str, Any]) -> bytes:
    """Write JSON as the engine does."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def response(texts: list[str], logprobs: Any, count: int | None, schema: Any) -> dict[str, Any]:
    """Return a whole answer."""
    return {
        "id": "resp_1",
        "metadata": {"logprobs": "x"},
        "output": [
            {
                "type": "message",
                "content": [
                    {"annotations": [], "text": text, "type": "output_text", "logprobs": logprobs}
                ],
            }
            for text in texts
        ],
        "tools": [{"name": "f", "parameters": schema}],
        "status": "completed",
        "top_logprobs": count,
        "user": None,
    }


def events(text: str, logprobs: Any, count: int | None, schema: Any) -> list[dict[str, Any]]:
    """Return the events of a stream that carry log probabilities, or might."""
    content = {"annotations": [], "text": text, "type": "output_text", "logprobs": logprobs}
    return [
        {"response": response([], None, count, schema), "type": "response.created"},
        {
            "part": {"text": "", "type": "output_text", "logprobs": []},
            "type": "response.content_part.added",
        },
        {
            "delta": text,
            "logprobs": logprobs or [],
            "output_index": 0,
            "type": "response.output_text.delta",
        },
        {"logprobs": [], "text": text, "type": "response.output_text.done"},
        {"part": content, "type": "response.content_part.done"},
        {"item": {"content": [content]}, "type": "response.output_item.done"},
        {
            "response": response([text], logprobs, count, schema),
            "type": "response.completed",
        },
    ]


@given(st.lists(TEXTS, max_size=2), ENTRIES, st.integers(0, 20), SCHEMAS)
def test_a_whole_answer_is_as_if_none_were_asked(
    texts: list[str], entries: list[Any], count: int, schema: dict[str, Any]
) -> None:
    """Byte for byte, also where a client's own tools use the same names."""
    asked = response(texts, entries, count, schema)
    parted = part(compact(asked))
    assert parted.rest == compact(response(texts, None, None, schema))
    assert parted.fields == asked


@given(TEXTS, ENTRIES, st.integers(0, 20), SCHEMAS)
def test_every_event_is_as_if_none_were_asked(
    text: str, entries: list[Any], count: int, schema: dict[str, Any]
) -> None:
    """A delta keeps an empty list, all else `null`."""
    asked, plain = events(text, entries, count, schema), events(text, None, None, schema)
    for one, other in zip(asked, plain, strict=True):
        parted = part(b"event: x\ndata: " + compact(one) + b"\n\n", len(b"event: x\ndata: "))
        assert parted.rest == b"event: x\ndata: " + compact(other) + b"\n\n"
        assert parted.fields == one


@given(st.lists(TEXTS, max_size=2), ENTRIES, st.integers(0, 20), st.lists(st.integers(0, 10_000)))
def test_a_long_answer_is_cut_the_same_way(
    texts: list[str], entries: list[Any], count: int, places: list[int]
) -> None:
    """However it arrives, in bounded memory."""
    data = compact(response(texts, entries, count, {}))
    marks = sorted({place % (len(data) + 1) for place in places})
    cut = ListsCut()
    pieces = [data[a:b] for a, b in zip([0, *marks], [*marks, len(data)], strict=True)]
    got = b"".join(map(cut.feed, pieces)) + cut.end()
    assert got == compact(response(texts, None, None, {}))


def test_the_way_by_value_gives_the_same() -> None:
    """The slow way is a way out, not another answer."""
    asked = compact(response(["a"], [{"token": "a", "logprob": -1.5}], 3, {}))
    assert part_by_value(asked, 0).rest == part(asked).rest


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"logprobs":[1', b"\xff"])
def test_what_is_no_answer_is_told(data: bytes) -> None:
    """The caller forwards it unjudged."""
    with pytest.raises(ValueError):  # noqa: PT011
        part(data)


def test_only_responses_are_stripped_this_way() -> None:
    """The other routes carry objects."""
    assert stripper_of(Route.RESPONSES).part is part
    assert stripper_of(Route.CHAT).part is not part
