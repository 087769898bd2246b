"""Packing recorded answers."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_engine_sim.pack import align, answer_of, cut, pick_damaged, records, write

END = ["", "<|im_end|>", 2, -0.2, []]


def entry(token: str, logprob: float | None = -0.123456) -> dict[str, Any]:
    """One entry of `logprobs.content`."""
    return {
        "token": token,
        "logprob": logprob,
        "top_logprobs": [{"token": token, "logprob": logprob}],
    }


def record(
    *tokens: str, prompt_id: str = "q00", mode: str = "greedy", status: int = 200
) -> dict[str, Any]:
    """A recorded whole answer."""
    choice = {
        "message": {"content": "".join(tokens)},
        "logprobs": {"content": [entry(token) for token in tokens]},
        "token_ids": list(range(len(tokens))),
    }
    return {
        "prompt_id": prompt_id,
        "mode": mode,
        "stream": False,
        "status": status,
        "request": {"messages": [{"role": "user", "content": "?"}]},
        "body": json.dumps({"choices": [choice]}),
    }


@pytest.mark.parametrize(
    ("tokens", "content", "texts"),
    [
        pytest.param(["a", "b"], "ab", ["a", "b"], id="plain"),
        pytest.param(["a", "<|endoftext|>", "b"], "ab", ["a", "", "b"], id="hidden"),
        pytest.param(["", "", "字"], "字", ["", "", "字"], id="part-character"),
        pytest.param(["a", "", "b"], "a\ufffdb", ["a", "", "\ufffdb"], id="lost-bytes"),
    ],
)
def test_align(tokens: list[str], content: str, texts: list[str]) -> None:
    """Whose text is whose."""
    assert align(tokens, content) == texts


@given(st.lists(st.text("ab ", min_size=1)))
def test_aligned_texts_are_the_content(tokens: list[str]) -> None:
    """When every token is visible."""
    assert align(tokens, "".join(tokens)) == tokens


def test_whole_answer() -> None:
    """Figures are rounded, refusals skipped."""
    answer = answer_of(record("Hi", "!"))
    assert answer is not None
    assert answer["steps"][0] == ["Hi", "Hi", 0, -0.1235, [["Hi", -0.1235]]]
    assert answer_of(record("Hi", status=400)) is None


def test_streamed_answer() -> None:
    """NaN stays null."""
    choice = {
        "delta": {"content": ""},
        "logprobs": {"content": [entry("x", None)]},
        "token_ids": [0],
    }
    opening = {"choices": [{"delta": {"role": "assistant"}, "logprobs": None}]}
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in (opening, {"choices": [choice]}))
    streamed = record() | {"stream": True, "body": body + "data: [DONE]\n\n"}
    answer = answer_of(streamed)
    assert answer is not None
    assert answer["steps"] == [["", "x", 0, None, [["x", None]]]]


def test_cut_after_a_sentence() -> None:
    """With a real end step."""
    answer = answer_of(record("One", ".", " Two"))
    assert answer is not None
    assert [step[0] for step in cut(answer, "One.", END)["steps"]] == ["One", ".", ""]
    assert cut(answer, "", END) is answer
    with pytest.raises(ValueError, match="Three"):
        cut(answer, "Three", END)


def test_damaged_picks_prefer_telling_prompts() -> None:
    """So many of each decoding."""
    recorded = [
        record("a", prompt_id="code08"),
        record("b", prompt_id="q00"),
        record("c", prompt_id="q00", mode="temp1"),
    ]
    picked = pick_damaged(recorded, 1)
    assert [(one["mode"], one["steps"][0][0]) for one in picked] == [
        ("greedy", "b"),
        ("temp1", "c"),
    ]


def test_written_files_are_reproducible(tmp_path: Path) -> None:
    """Same input, same bytes; and records reads what was written line by line."""
    write(tmp_path / "a.gz", [1, "é"])
    write(tmp_path / "b.gz", [1, "é"])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    (tmp_path / "lines.gz").write_bytes(gzip.compress(b'{"a": 1}\n{"a": 2}\n'))
    assert [one["a"] for one in records(tmp_path / "lines.gz")] == [1, 2]
