"""Signs, digits and breaks where words should be."""

import random
from collections.abc import Callable

import pytest

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.noise import (
    CASE_LIMIT,
    COLUMN_LINES,
    DIGITS_LIMIT,
    INNER_LIMIT,
    LOST_LIMIT,
    WIDE_LIMIT,
    case_noise,
    column,
    inner_signs,
    lost_words,
    mixed_widths,
)
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]

PROSE = (
    "The mill stands by the river, and its wheel has turned for ages. Farmers brought rye and oats"
    " here each autumn, and in dry summers the miller kept bees. His daughter wrote a diary that"
    " the museum shows. "
)


def test_signs_inside_words() -> None:
    """A few are products and names; many of several kinds are noise."""
    words = [f"riv{sign}er" for sign in "#@~|^#@~|"]
    assert inner_signs(" ".join(words)) > 1
    assert inner_signs(" ".join(words[:INNER_LIMIT])) == 0
    assert inner_signs(" ".join(["riv#er"] * 20)) == 0


def test_letters_of_both_widths() -> None:
    """A full-width letter beside a plain one, again and again."""
    assert mixed_widths("ａb " * WIDE_LIMIT) == 0
    assert mixed_widths("ａb " * (WIDE_LIMIT + 1)) > 1
    assert mixed_widths("ＡＢＣ abc " * 20) == 0


def test_words_of_question_marks() -> None:
    """Letters that the encoding lacked became question marks; exclamations are no words."""
    lost = ["??", "???", "????,", "?????.", "?", "??", "???", "????", "??"]
    assert lost_words(" ".join(lost)) > 1
    assert lost_words(" ".join(lost[:LOST_LIMIT])) == 0
    assert lost_words(" ".join(["??"] * 30)) == 0


def test_case_noise() -> None:
    """Capitals inside most words; a few brand names are none."""
    words = [f"miLLs{chr(97 + n)}" for n in range(CASE_LIMIT + 1)]
    assert case_noise(" ".join(words)) > 1
    assert case_noise(" ".join(words[1:])) == 0
    assert case_noise(" ".join(["river"] * 40 + words)) == 0
    names = [f"handlePowerKey{chr(97 + n)}" for n in range(40)]
    assert case_noise(" ".join(names)) == 0


def test_one_word_a_line() -> None:
    """Running text broken after each word; a list of words has no stops and no sentence."""
    words = PROSE.split()
    assert column("x\n" + "\n".join(words[:COLUMN_LINES]) + "\n") > 0
    assert column("x\n" + "\n".join(words[: COLUMN_LINES - 1]) + "\n") == 0
    assert column("x\n" + "\n".join(f"lamp{'s' * n}" for n in range(40)) + "\n") == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("???? ?? ???????, ??? ????? ????. ?? ???? ??? ?????? ???", Reason.MOJIBAKE),
        ("\n".join(PROSE.split()), Reason.SPACING_LOST),
        (PROSE.upper(), None),
        ("".join(c.upper() if n % 2 else c for n, c in enumerate(PROSE)), Reason.SYMBOL_SOUP),
    ],
)
def test_noise_in_an_answer(text: str, reason: Reason | None, asking: Asking, judge: Judge) -> None:
    """The gate says why; a prompt that wants broken text excuses it."""
    judgement = judge(text, asking("Tell me about mills."), "length")
    assert judgement.reason is (reason or Reason.CLEAN)
    excused = judge(text, asking("Write it with typos and odd signs."), "length")
    assert excused.outcome is Outcome.PASSED


def test_digits_without_end(asking: Asking, judge: Judge) -> None:
    """A number that never ends, where nobody asked for digits."""
    rng = random.Random(4)
    digits = "".join(rng.choices("0123456789", k=2 * DIGITS_LIMIT))
    text = f"The moon is far: 384400.{digits}"
    assert judge(text, asking("How far is the moon?"), "length").reason is Reason.SYMBOL_SOUP
    assert judge(text, asking("Give me digits of pi."), "length").outcome is Outcome.PASSED
    assert judge(text[:DIGITS_LIMIT], asking("How far?"), "length").outcome is Outcome.PASSED
