"""Kinds of repeated units."""

import pytest

from gatemesh_agent.gates.repetition import LIMIT_CHARS
from gatemesh_agent.gates.units import UnitKind, is_dense, is_prose, is_wordy, kind_of


def test_every_kind_has_a_limit() -> None:
    """No loop escapes for want of a limit."""
    assert set(LIMIT_CHARS) == set(UnitKind)


@pytest.mark.parametrize(
    ("unit", "kind"),
    [
        ("\n", UnitKind.BREAK),
        (" \t", UnitKind.BLANK),
        ("-", UnitKind.RULE),
        ("─", UnitKind.RULE),
        ("!", UnitKind.SIGN),
        ("🎉🎊", UnitKind.SIGNS),
        ("|:----------", UnitKind.PATTERN),
        ("0", UnitKind.DIGIT),
        ("0, ", UnitKind.DIGITS),
        ("a", UnitKind.LETTER),
        ("ha", UnitKind.SYLLABLE),
        ("a ", UnitKind.SYLLABLE),
        ("да ", UnitKind.WORD),
        ("lattice", UnitKind.WORD),
        ("ern lant", UnitKind.WORD),
        ("植物的光", UnitKind.SYLLABLE),
        ("アルタイル", UnitKind.TEXT),
        ("wie die Frau, ", UnitKind.TEXT),
        ("false, ", UnitKind.TEXT),
    ],
)
def test_kinds(unit: str, kind: UnitKind) -> None:
    """Rules, laughter and text are told apart."""
    assert kind_of(unit) is kind


def test_dense_scripts() -> None:
    """Chinese says more in a character than English."""
    assert is_dense("感谢您的提问")
    assert not is_dense("thank you 您")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0. It decouples the producer from the consumer.\n", True),
        ("第0步：重新检查第0步的结果，然后继续。", True),
        ("INSERT INTO seats (row, no) VALUES ('C', 0);\n", False),
        ("0.0.0.0  host-0.lab.example.internal\n", False),
        ("one two", False),
        ("", False),
    ],
)
def test_prose(text: str, expected: bool) -> None:  # noqa: FBT001
    """Sentences and data are told apart."""
    assert is_prose(text) is expected


def test_few_words_are_words() -> None:
    """A phrase is wordy, a row of data is not."""
    assert is_wordy("and the water ")
    assert not is_wordy("x = f(1);\n")
    assert not is_wordy("12, 14, 15, ")
