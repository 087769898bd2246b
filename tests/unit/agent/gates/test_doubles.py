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


PIECES = [TEXT[at : at + 7] for at in range(0, len(TEXT), 7)]
SENTENCES = (
    "The mill stands by the river. ",
    "Its wheel still turns today. ",
    "A miller kept bees and sheep. ",
    "His daughter wrote a diary. ",
)


def test_pieces_cut_anywhere(asking: Asking, judge: Judge) -> None:
    """Events that end inside words came twice; who wants repetition gets it."""
    text = "".join(piece * 2 for piece in PIECES)
    assert judge(text, asking(), "length").reason is Reason.DUPLICATED_PIECES
    assert judge(text, asking("Repeat each piece."), "length").outcome is Outcome.PASSED
    assert judge("".join(PIECES), asking()).outcome is Outcome.PASSED


def test_sentences_that_stand_twice(asking: Asking, judge: Judge) -> None:
    """Three sentences twice each are no emphasis, two may be."""
    three = "".join(one * 2 for one in SENTENCES[:3])
    assert judge(three, asking()).reason is Reason.DUPLICATED_PIECES
    two = "".join(one * 2 for one in SENTENCES[:2])
    rest = f"{TEXT}, and {' '.join(reversed(WORDS))}. "
    assert judge(rest + two + rest.upper(), asking(), "length").outcome is Outcome.PASSED


def test_paragraphs_that_stand_twice(asking: Asking, judge: Judge) -> None:
    """Two different paragraphs, each sent twice, far apart as they are."""
    first, second = f"{SENTENCES[0]}{TEXT}.", f"{SENTENCES[2]}{TEXT[::-1]}."
    text = f"{first}\n\n{first}\n\n{second}\n\n{second}\n\n"
    assert judge(text, asking(), "length").reason is Reason.DUPLICATED_PIECES
    once = f"{first}\n\n{first}\n\n{second}\n\n"
    assert judge(once, asking(), "length").outcome is Outcome.PASSED


def test_words_three_times(asking: Asking, judge: Judge) -> None:
    """Four words three times each; a stutter of three is a way to write."""
    words = TEXT.split()
    text = " ".join(f"{word} " * (3 if at % 5 == 0 else 1) for at, word in enumerate(words))
    assert judge(text, asking(), "length").reason is Reason.DUPLICATED_PIECES
    few = " ".join(f"{word} " * (3 if at in {0, 9, 15} else 1) for at, word in enumerate(words))
    assert judge(few, asking(), "length").outcome is Outcome.PASSED


@pytest.mark.parametrize("joiner", ["", "\n"])
def test_an_answer_that_begins_anew(joiner: str, asking: Asking, judge: Judge) -> None:
    """Snapshots of a growing text, joined as if they were pieces."""
    text = joiner.join(" ".join(WORDS[:count]) for count in range(2, 12))
    assert judge(text, asking(), "length").reason is Reason.DUPLICATED_PIECES
    assert judge(text, asking("Write a poem that grows."), "length").outcome is Outcome.PASSED


def test_chinese_words_of_doubled_characters(asking: Asking, judge: Judge) -> None:
    """高高兴兴 is a word, not a fault of the stream."""
    text = (
        "高高兴兴、干干净净、明明白白、大大方方、清清楚楚、热热闹闹、平平安安、来来往往、整整齐齐"
    )
    assert judge(text, asking("列举AABB式词语。")).outcome is Outcome.PASSED
