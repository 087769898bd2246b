"""Passages without words."""

import random
from collections.abc import Callable

import pytest

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.soup import BLOB_LIMIT, GLUED_LIMIT, is_glued_prose
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]

GLUED = "theyfeelsafebutalsowhentheyareinpain,becausethevibrationseemstocalmthemanddoesgood."
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def blob(size: int) -> str:
    """Return something that looks like base64."""
    return "".join(random.Random(5).choices(ALPHABET, k=size))


def signs(size: int) -> str:
    """Return loose signs."""
    return "".join(random.Random(5).choices("{}[]();:<>|&=!?\\*^%$#@~+,.\"'", k=size))


def digits(size: int) -> str:
    """Return digits and fragments, oddly spaced."""
    parts = ("1", "2", "11", "of", ",", ".", "the", "3 .", ", 2", "in", "a", "1 ,", "..")
    return " ".join(random.Random(5).choices(parts, k=size))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(signs(300), Reason.SYMBOL_SOUP, id="signs"),
        pytest.param(digits(120), Reason.SYMBOL_SOUP, id="digits"),
        pytest.param("Cats purr when " + GLUED, Reason.SPACING_LOST, id="glued"),
        pytest.param("Have a look at " + blob(2 * BLOB_LIMIT), Reason.ENCODED_BLOB, id="blob"),
    ],
)
def test_faults(text: str, reason: Reason, asking: Asking, judge: Judge) -> None:
    """Each kind is named."""
    assert judge(text, asking(), "length").reason is reason


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("Tell me a rule", signs(120)),
        ("Draw something in ASCII", signs(300)),
        ("Encode it in base64", blob(400)),
        ("Write it without spaces", GLUED),
        ("Which page?", "See https://example.org/a/" + blob(300)),
        ("Morse please", "... --- ... / .... . .-.. .-.. --- / " * 8),
        ("The key?", "```\n" + blob(300) + "\n```"),
        ("Long word?", "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz"),
    ],
)
def test_healthy(prompt: str, text: str, asking: Asking, judge: Judge) -> None:
    """Short, wanted, quoted and linked ones pass."""
    assert judge(text, asking(prompt), "length").outcome is Outcome.PASSED


def test_glued_prose_needs_the_mix_of_words() -> None:
    """A cry, a sequence and a key are no glued prose."""
    assert is_glued_prose(GLUED)
    assert len(GLUED) > GLUED_LIMIT
    assert not is_glued_prose("a" * 90)
    assert not is_glued_prose("ACGT" * 25)
    assert not is_glued_prose("bcdfghjklmnpqrstvwxz" * 4)
