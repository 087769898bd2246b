"""A passage in another language of the same script."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.languages import (
    LITTLE_WORDS,
    OWNERS,
    QUOTED,
    WORD,
    by_language,
    little_words,
    unquoted,
)
from gatemesh_common.messages import Outcome, Reason

GERMAN = (
    "Der Teig ist nicht fest genug, wenn man ihn mit kaltem Wasser anrührt und dann sofort backt. "
    "Die Hefe wird erst bei einer Wärme von dreißig Grad lebendig, und auch das Mehl nimmt dann "
    "mehr Wasser auf. Nach einer Stunde sind die Blasen so groß, dass sich der Laib wie ein "
    "Kissen hebt. "
)
SPANISH = (
    "También es importante que el horno esté bien caliente y que el pan repose al menos doce "
    "horas antes de cortarlo, porque la miga retiene mucha agua y se pega cuando todavía está muy "
    "húmeda. Los mejores panes del pueblo se hacen con una masa que no lleva más que agua, harina "
    "y sal. "
)
ENGLISH = (
    "This program is free software and it was written for the people that would have done all of "
    "this from the beginning, which is not what they were paid for, with the tools of their time. "
)

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]


def test_german_that_turns_into_spanish(asking: Asking, judge: Judge) -> None:
    """Both are Latin script; the little words tell."""
    found = judge(GERMAN + SPANISH, asking("Warum geht mein Teig nicht auf?"))
    assert (found.outcome, found.reason) == (Outcome.FAILED, Reason.LANGUAGE_SWITCH)
    assert found.span is not None
    assert found.span.char_start is not None
    assert found.span.char_start > len(GERMAN) - 64


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("Warum geht mein Teig nicht auf?", GERMAN * 2),
        ("Warum geht mein Teig nicht auf?", GERMAN + ENGLISH),
        ("Warum geht mein Teig nicht auf? Übersetze es ins Spanische.", GERMAN + SPANISH),
        ("¿Por qué no sube la masa? Explica también en alemán, por favor.", GERMAN + SPANISH),
        ("Warum geht mein Teig nicht auf?", f"{GERMAN}Ein Koch sagte: «{SPANISH}» {GERMAN}"),
        ("Warum geht mein Teig nicht auf?", f"{GERMAN}\n```\n{SPANISH}\n```\n{GERMAN}"),
    ],
    ids=["one", "english", "asked", "both", "quoted", "fenced"],
)
def test_what_people_ask_for(prompt: str, text: str, asking: Asking, judge: Judge) -> None:
    """Quotes, notices in English and wanted languages are no fault."""
    assert judge(text, asking(prompt)).outcome is Outcome.PASSED


def test_every_language_has_words_of_its_own() -> None:
    """Or it could never be told."""
    owned = dict.fromkeys(LITTLE_WORDS, 0)
    for language in OWNERS.values():
        owned[language] += 1
    assert min(owned.values()) >= 8


def test_little_words_are_counted_in_any_case() -> None:
    """Sentences begin with them."""
    assert by_language(little_words("Und der Hund ist nicht da."))["de"] >= 4


def test_one_foreign_word_over_and_over(asking: Asking, judge: Judge) -> None:
    """It may be a name, a letter or a column of a table."""
    nouns = ("Hefe", "Mehl", "Salz", "Wasser", "Milch", "Butter", "Zucker", "Ei", "Nuss", "Mohn")
    text = GERMAN + ", ".join(f"{noun} y {number}" for number, noun in enumerate(nouns)) + "."
    assert judge(text, asking("Warum geht mein Teig nicht auf?")).outcome is Outcome.PASSED


@given(st.lists(st.sampled_from(["The", "und", "don't", " ", "_", "0", "'", '"', "`", "-", "é"])))
def test_plain_text_is_read_as_the_patterns_read_it(parts: list[str]) -> None:
    """Tables and quick looks are only a faster way."""
    text = " ".join(parts) + "".join(parts)
    assert little_words(text) == [word for word in WORD.findall(text.lower()) if word in OWNERS]
    assert unquoted(text) == QUOTED.sub(" ", text)
