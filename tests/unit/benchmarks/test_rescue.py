"""Counting what of a damaged answer reached its client."""

from pathlib import Path
from typing import Any

import pytest
from benchmarks import rescue
from benchmarks.rescuing import Read

UNCUT = Read(status=200, text="The sea is wide.", finish="stop", ended=True)


def read(text: str, **more: Any) -> Read:
    """Return an answer as a client got it."""
    fields: dict[str, Any] = {"status": 200, "finish": "stop", "ended": True, **more}
    return Read(text=text, **fields)


@pytest.mark.parametrize(
    ("got", "bad", "missing"),
    [
        ("The sea is wide.", 0, 0),
        ("The sea", 0, 9),
        ("The sea!!!! is wide.", 4, 0),
        ("The sea the the the", 11, 8),
        ("", 0, 16),
        ("The wide.", 0, 7),
    ],
)
def test_letters_are_compared(got: str, bad: int, missing: int) -> None:
    """What is not the answer's is bad, what it lacks is missing."""
    assert rescue.compared(got, UNCUT.text) == (bad, missing)


def test_only_what_leaked_is_bad_of_an_answer_that_went_on() -> None:
    """Not what comes after it, though it ends elsewhere."""
    uncut = "The sea is wide and never rests, and it is deep, and it is cold."
    went_on = "The sea!!!!!! never rests, and it is deep, an"
    bad, missing = rescue.compared(went_on, uncut)
    assert bad == len("!!!!!!")
    assert missing == len(uncut) - len(went_on) + bad


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (read(UNCUT.text), "rescued"),
        (read(UNCUT.text, finish="length"), "wrong end"),
        (read("The sea", error="RescueRefused"), "error"),
        (read("", status=502), "error"),
        (read("The sea", ended=False), "torn"),
        (read("The sea !!!!"), "missed"),
        (read("The sea is wi"), "missed"),
    ],
)
def test_outcomes(answer: Read, outcome: str) -> None:
    """Only the uncut answer with its own end is a rescued one."""
    assert rescue.outcome_of(answer, UNCUT) == outcome


def test_another_length_at_the_limit() -> None:
    """A few letters more or less where both were cut by their limit, and nothing else."""
    uncut = read("The sea is wi", finish="length")
    assert rescue.outcome_of(read("The sea is wide", finish="length"), uncut) == "other length"
    assert rescue.outcome_of(read("The sea is mi", finish="length"), uncut) == "missed"
    far = read("The sea is wide and never rests", finish="length")
    assert rescue.outcome_of(far, uncut) == "missed"


def test_a_leak_of_a_strict_kind_fails_the_run() -> None:
    """Hidden tokens count as well."""
    case = {"kind": "nan", "bad_chars": 0, "silent_tokens": 0}
    assert not rescue.leaked({"matrix": {"cases": [case]}})
    assert rescue.leaked({"matrix": {"cases": [case | {"silent_tokens": 1}]}})
    assert not rescue.leaked({"matrix": {"cases": [case | {"kind": "loop", "bad_chars": 9}]}})
    assert not rescue.leaked({})


def test_the_page_keeps_what_is_around_its_markers(tmp_path: Path) -> None:
    """Also the second time; without the page another one is begun."""
    page = tmp_path / "rescue.md"
    page.write_text(f"Before\n{rescue.BEGIN}\nold\n{rescue.END}\nAfter\n")
    for _ in range(2):
        rescue.write_page(page, "| new |")
    text = page.read_text()
    assert text == f"Before\n{rescue.BEGIN}\n| new |\n{rescue.END}\nAfter\n"
    rescue.write_page(tmp_path / "none.md", "| new |")
    assert "| new |" in (tmp_path / "rescue-measured.md").read_text()


def test_runs_of_parts_make_one_page() -> None:
    """Cases add up; tables are apart for engines that tell log probabilities."""
    case = {
        "kind": "nan",
        "onset": 5,
        "stream": True,
        "outcome": "rescued",
        "bad_chars": 0,
        "silent_tokens": 0,
        "largest_gap_ms": 3.0,
    }
    runs: list[dict[str, Any]] = [
        {"matrix": {"cases": [case | {"agent": "logprobs"}]}},
        {"matrix": {"cases": [case | {"agent": "text"}, case | {"agent": "text"}]}},
        {"clean": {"streams": 3}},
    ]
    page = rescue.page_of(rescue.merged(runs))
    assert "With log probabilities; 1 answers" in page
    assert "Without log probabilities; 2 answers" in page
    assert "| `nan` **0** | 2 | 2 |" in page
    assert "| streams | 3 |" in page


def case(*, stream: bool, agent: str, onset: int, bad: int, silent: int = 0) -> dict[str, Any]:
    """Return what became of one damaged request."""
    told = {"kind": "nan", "stream": stream, "agent": agent, "onset": onset}
    return {**told, "bad_chars": bad, "silent_tokens": silent}


def test_what_reached_clients_is_told_by_onset() -> None:
    """The worst of each, with and without log probabilities; nothing where nothing was struck."""
    head, rows = rescue.by_onset(
        [
            case(stream=True, agent="logprobs", onset=0, bad=1),
            case(stream=True, agent="logprobs", onset=0, bad=3, silent=1),
            case(stream=True, agent="text", onset=5, bad=7),
            case(stream=False, agent="text", onset=5, bad=9),
        ]
    )
    assert head == ["kind", "streamed, token 0", "streamed, token 5", "whole"]
    assert list(rows) == [["`nan`", "4 / -", "- / 7", "- / 9"]]


def test_a_question_says_its_length_in_words_where_that_is_to_be_seen() -> None:
    """As people do; else its only number is none that gates heed."""
    assert "300 words" not in rescue.question_of(1, 5)[0]
    for number in range(2):
        question, _ = rescue.question_of(number, 5, counted=True)
        assert "in 300 words, length 1200" in question
