"""Pieces of the stream that came twice."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.doubles import (
    PIECE,
    SIZES,
    doubled_groups,
    doubled_share,
    has_doubled_letters,
    is_cut_at_blanks,
    is_doubled,
)
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]

TEXT = (
    "the bridge was built in iron and stone over nine years and it carries two lanes as well"
    " as a tram across our river"
)
WORDS = TEXT.split()


@pytest.mark.parametrize("sizes", [(1,), (2,), (3,), (3, 2, 3, 1, 4)])
def test_doubled_pieces(sizes: tuple[int, ...], asking: Asking, judge: Judge) -> None:
    """Each event of the stream came twice, of whatever size the events were."""
    text: list[str] = []
    at = number = 0
    while at < len(WORDS):
        group = WORDS[at : at + sizes[number % len(sizes)]]
        text += group * 2
        at += len(group)
        number += 1
    assert judge(" ".join(text), asking()).reason is Reason.DUPLICATED_PIECES
    assert judge(" ".join(text), asking("Repeat each word.")).outcome is Outcome.PASSED


def test_doubles_need_letters_and_variety() -> None:
    """Numbers, signs and one word over and over are no doubles."""
    assert doubled_groups(["a", "a", "b", "b"]) == [("a",), ("b",)]
    assert doubled_groups(["a", "b", "a", "b"]) == [("a", "b")]
    assert doubled_groups(["1", "1", "|", "|"]) == []
    assert doubled_share(["false,"] * 40) == 0.0
    assert doubled_share(WORDS) == 0.0


def test_doubled_letters() -> None:
    """Each character stands twice."""
    text = "A lake is a body of water surrounded by land."
    assert has_doubled_letters("".join(sign * 2 for sign in text))
    assert not has_doubled_letters(text)
    assert not has_doubled_letters("aabbccdd" * 20)
    assert not has_doubled_letters("0x7F: 110xxxxx 10xxxxxx 10xxxxxx 1110xxxx 10xxxxxx " * 5)


def test_a_short_passage_of_nothing_but_doubles(asking: Asking, judge: Judge) -> None:
    """Behind other text they are seen within 32 tokens; a word or two that stand twice are none."""
    good = "The tram runs every ten minutes by day and every half hour at night. " * 2
    bad = " ".join(word for word in WORDS for _ in "12")
    judgement = judge(good + bad, asking())
    assert judgement.reason is Reason.DUPLICATED_PIECES
    assert judgement.span is not None
    assert judgement.span.char_end is not None
    assert judgement.span.char_end <= len(good) + 128
    few = "It was very very cold, and so so late that that no one had had any more time to to go."
    assert judge(good + few, asking()).outcome is Outcome.PASSED


@given(st.text(st.characters(max_codepoint=127), max_size=80))
def test_plain_text_is_cut_as_the_pattern_cuts_it(text: str) -> None:
    """Splitting is only a faster way."""
    assert not is_cut_at_blanks(text) or text.split() == PIECE.findall(text)


@given(st.lists(st.sampled_from("abc,"), max_size=40))
def test_a_first_look_misses_no_group(pieces: list[str]) -> None:
    """Every place from which a group follows itself is where one is found, or inside one."""
    starts = [at for at in range(len(pieces)) if any(is_doubled(pieces, at, n) for n in SIZES)]
    assert bool(doubled_groups(pieces)) == bool(starts)
    if starts:
        size = next(n for n in SIZES if is_doubled(pieces, starts[0], n))
        assert doubled_groups(pieces)[0] == tuple(pieces[starts[0] : starts[0] + size])
