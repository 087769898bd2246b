"""Whether answers to probes are right."""

from pathlib import Path
from typing import Any

import pytest

from gatemesh_agent.checking import (
    fits_code,
    fits_copy,
    fits_json,
    fits_number,
    fits_pattern,
    judge_probe,
)
from gatemesh_common.messages import CheckLevel, Outcome, Reason

FENCED = '```json\n{"name": "Ada", "age": 36}\n```'


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Paris", True),
        ("The capital of France is **Paris**.", True),
        ("ＰＡＲＩＳ", True),
        ("Parisian", False),
        ("London", False),
    ],
)
def test_patterns(answer: str, right: bool) -> None:  # noqa: FBT001
    """Without regard to case and marks of form."""
    assert fits_pattern(answer, r"\bparis\b") is right


def test_numbers() -> None:
    """In digits or words."""
    assert fits_number("The answer is five.", 5)
    assert not fits_number("six", 5)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("AB-1234", True),
        ('Sure: "AB-1234".', True),
        ("`AB-1234`", True),
        ("AB–1234", True),
        ("ab-1234", False),
        ("AB-12345", False),
        ("XAB-1234", False),
        ("AB-1243", False),
        ("", False),
    ],
)
def test_copies(answer: str, right: bool) -> None:  # noqa: FBT001
    """Every sign, in its place and case; not as a part of something longer."""
    assert fits_copy(answer, "AB-1234") is right


def test_a_name_with_marks_is_copied() -> None:
    """Underscores are no emphasis here."""
    assert fits_copy("get_user_id", "get_user_id")
    assert not fits_copy("getuserid", "get_user_id")


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ('{"name":"Ada","age":36}', True),
        (' {\n "age": "36",\n "name": "ada", "more": []}\n', True),
        (FENCED, True),
        (f"Here it is:\n{FENCED}\nEnjoy!", True),
        ('Sure, {"name": "Ada", "age": 36} as asked.', True),
        ('{"name": "Ada", "age": 37}', False),
        ('{"name": "Ada"}', False),
        ('{"name": "Ada", "age": 36', False),
        ('[{"name": "Ada", "age": 36}]', True),
        ('["Ada", 36]', False),
        ("", False),
    ],
)
def test_objects(answer: str, right: bool) -> None:  # noqa: FBT001
    """In any white space, fenced or not; numbers may be texts."""
    assert fits_json(answer, {"name": "Ada", "age": 36}) is right


def test_any_value_may_be_asked_for() -> None:
    """The key counts."""
    assert fits_json('{"answer": null}', {"answer": "*"})
    assert not fits_json('{"reply": 1}', {"answer": "*"})


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("def add(a, b):\n    return a + b", True),
        ("```python\ndef add(a: int, b: int) -> int:\n    return a + b\n```\nThat is all.", True),
        ("Sure!\ndef plus(x, y):\n    total = x + y\n    return total\n\nIt adds two.", True),
        ("add = lambda a, b: a + b", True),
        ("def add(a, b):\n    return a + b\n\nprint(add(1, 2)\n", True),
        ("def add(a, b):\n    return a - b", False),
        ("def add(a):\n    return a + 1", False),
        ("def add(a, b)\n    return a + b", False),
        ("a + b", False),
        ("", False),
        ("\x00def add(a, b): return a + b", False),
    ],
)
def test_code_is_read(answer: str, right: bool) -> None:  # noqa: FBT001
    """Parsed and never run; what follows it or was cut off does not count."""
    assert fits_code(answer, 2, "+") is right


def test_code_is_never_run(tmp_path: Path) -> None:
    """Whatever a damaged engine writes."""
    target = tmp_path / "x"
    fits_code(f"open({str(target)!r}, 'w')\ndef add(a, b):\n    return a + b", 2, "+")
    assert not target.exists()


def request(text: str) -> dict[str, Any]:
    """Return a chat request."""
    return {"messages": [{"role": "user", "content": text}], "temperature": 0}


@pytest.mark.parametrize(
    ("answer", "gate", "outcome"),
    [
        pytest.param("**2**", CheckLevel.L5, Outcome.PASSED, id="bold"),
        pytest.param("The answer is two.", CheckLevel.L5, Outcome.PASSED, id="word"),
        pytest.param("２", CheckLevel.L5, Outcome.PASSED, id="full-width"),
        pytest.param("3", CheckLevel.L5, Outcome.FAILED, id="wrong"),
        pytest.param("", CheckLevel.L1, Outcome.FAILED, id="empty"),
        pytest.param("2" + "\ufffd" * 30, CheckLevel.L1, Outcome.FAILED, id="right-and-broken"),
    ],
)
def test_an_answer_is_judged(answer: str, gate: CheckLevel, outcome: Outcome) -> None:
    """Faults of the text first, then whether it is right."""
    found = judge_probe(r"(?i)\b(2|two)\b", request("1+1=?"), answer, "stop")
    assert (found.gate, found.outcome) == (gate, outcome)
    if gate is CheckLevel.L5:
        assert found.reason is (Reason.CLEAN if outcome is Outcome.PASSED else Reason.PROBES_FAILED)


LOOP = "C-A-C-A-C-A-C-A-C-A"


@pytest.mark.parametrize(
    ("accept", "text", "answer", "right"),
    [
        (r"(?i)c-a-t", "Spell the word CAT with hyphens.", LOOP, False),
        (r"(?i)c-a-t", "Spell the word CAT with hyphens.", "C–A–T", True),
        (r"(?i)^\W*pong\W*$", "Reply with exactly one word: PONG", "Pong.", True),
        (r"(?i)^\W*pong\W*$", "Reply with exactly one word: PONG", "**PONG**", True),
        (r"(?i)^\W*pong\W*$", "Reply with exactly one word: PONG", "Ping pong", False),
    ],
)
def test_kinds_of_probe_cases(accept: str, text: str, answer: str, right: bool) -> None:  # noqa: FBT001
    """The kinds of the shared cases."""
    passed = judge_probe(accept, request(text), answer, "stop").outcome is Outcome.PASSED
    assert passed is right
