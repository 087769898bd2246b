"""The reversible tokenizer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_engine_sim.steps import SPECIAL_TOKENS
from gatemesh_engine_sim.vocabulary import VOCABULARY_SIZE, Vocabulary, split

WORDS = Vocabulary([("\n", 198), ("\x0b", 199)], [" world", "Hello", "你"])


@given(st.text())
def test_decoding_gives_the_text_back(text: str) -> None:
    """For any text, known words or not."""
    assert WORDS.decode(WORDS.encode(text)) == text


@given(st.text())
def test_ids_are_within_the_vocabulary(text: str) -> None:
    """And never those of special tokens, whatever the text says."""
    assert all(len(SPECIAL_TOKENS) <= one < VOCABULARY_SIZE for one in WORDS.encode(text))


@given(st.text())
def test_tokens_joined_are_the_text(text: str) -> None:
    """Parts of a character are empty, its last token carries it."""
    assert "".join(token.text for token in WORDS.tokens(text)) == text


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param("Hello world", ["Hello", " world"], id="blank-belongs-to-word"),
        pytest.param("a 12.", ["a", " 1", "2", "."], id="single-digits"),
        pytest.param("你好a", ["你", "好", "a"], id="ideographs-alone"),
        pytest.param("a\n\nb", ["a", "\n\n", "b"], id="new-lines-together"),
    ],
)
def test_split(text: str, pieces: list[str]) -> None:
    """Like the recorded model's pieces, roughly."""
    assert split(text) == pieces


def test_recorded_ids_are_kept() -> None:
    """So that a prompt's ids look like the model's."""
    assert WORDS.encode("\n") == [198]


def test_unknown_ideograph_takes_three_tokens() -> None:
    """Two of them show nothing, as in the real engine."""
    assert [token.text for token in WORDS.tokens("好")] == ["", "", "好"]


def test_unknown_ids_show_as_replacement() -> None:
    """Special tokens are hidden, strangers are U+FFFD."""
    assert WORDS.decode([0, 1, 2, 48_000]) == "\ufffd"
    assert WORDS.decode([1, 2], show_special=True) == "<|im_start|><|im_end|>"


def test_chat_ids_mark_turns() -> None:
    """Each message opens with id 1 and closes with id 2; the model's turn stays open."""
    ids = WORDS.chat_ids([("user", "Hello")])
    assert (ids[0], ids.count(1), ids.count(2)) == (1, 2, 1)
    assert WORDS.decode(ids) == "user\nHello\nassistant\n"


def test_after_is_the_next_known_token() -> None:
    """A shifted vocabulary turns a new line into a vertical tab, as recorded."""
    assert WORDS.after("\n") == "\x0b"
