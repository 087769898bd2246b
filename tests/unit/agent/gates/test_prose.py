"""Stale sentences."""

from collections.abc import Callable
from itertools import cycle, islice

from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.prose import (
    PROSE,
    SAME_SHARE,
    UNIT,
    UNUSUAL,
    Staleness,
    is_known,
    is_running,
    plain_sentences,
    sentences_of,
    units_of,
)
from gatemesh_agent.gates.units import looks_like_code
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]

VARIANTS = (
    "Recycling saves resources for us. ",
    "Recycling really saves resources for us. ",
    "Resources are saved for us by recycling. ",
    "For us, recycling saves the resources. ",
    "Recycling saves the resources for us. ",
)


NAMES = "Anna Ben Clara David Emma Frank Gina Hugo Ida Jonas Karin Lars Mona Nils Olga"


def test_a_drifting_loop(asking: Asking, judge: Judge) -> None:
    """Five ways to say one thing, over and over."""
    text = "".join(islice(cycle(VARIANTS), 40))
    assert judge(text, asking("What is it good for?")).reason is Reason.REPETITION
    assert judge("".join(VARIANTS) * 2, asking()).outcome is Outcome.PASSED


def test_a_frame_with_other_names(asking: Asking, judge: Judge) -> None:
    """Only the name changes; a request for as many excuses it."""
    text = "".join(
        f"I would like to thank {name} for the work on the plan.\n" for name in NAMES.split()
    )
    assert judge(text, asking("Write a short mail.")).reason is Reason.REPETITION
    assert judge(text, asking("Thank fifteen people.")).outcome is Outcome.PASSED


def test_code_and_poems_are_no_prose(asking: Asking, judge: Judge) -> None:
    """Rows of data and refrains may be alike."""
    rows = "".join(
        f'seats.insert(row="A", label="{name}", state="free");\n' for name in NAMES.split()
    )
    assert judge(rows, asking()).outcome is Outcome.PASSED
    assert is_running("the cat sat on the mat")
    assert not is_running("x = f(1); y = g(2)")


def test_same_share() -> None:
    """Three of four words make two sentences the same, two do not."""
    base = frozenset("abcd")
    assert is_known(base, [frozenset("abcx")])
    assert not is_known(base, [frozenset("abxy")])


@given(st.frozensets(st.sampled_from("abcdefgh")), st.frozensets(st.sampled_from("abcdefgh")))
def test_the_longer_sentence_decides(units: frozenset[str], earlier: frozenset[str]) -> None:
    """The quick look at lengths rules out only what cannot be the same."""
    shared = len(units & earlier)
    expected = shared >= SAME_SHARE * max(len(units), len(earlier))
    assert is_known(units, [earlier]) == expected


@given(st.text(st.characters(max_codepoint=127), max_size=80))
def test_plain_words_are_those_of_the_pattern(text: str) -> None:
    """The table is only a faster way."""
    assert units_of(text) == frozenset(UNIT.findall(text.lower()))


@given(st.text(st.sampled_from("aB9 .,!?\n\t\x1c'-(;"), max_size=60))
def test_plain_text_falls_into_the_same_sentences(text: str) -> None:
    """The quick way for ASCII text must change no verdict."""
    slow, end = sentences_of(text)
    quick, rest = plain_sentences(text)
    assert rest == end
    assert quick == [one for one in slow if one[1]]


@given(st.text(st.sampled_from("aB9 .,'’é-(;\x1c\u2028"), min_size=1, max_size=40))
def test_the_first_look_at_a_sentence_agrees_with_the_whole_one(text: str) -> None:
    """A sentence without an unusual sign is one of words by the long way too."""
    if UNUSUAL.search(text) is None:
        assert PROSE.count(text) == len(text)
        assert not looks_like_code(text)


@given(
    st.lists(
        st.sampled_from(["a b c.", "a b c\n", "x y z w!", "你好吗。", "短 句 子。"]), max_size=24
    ),
    st.integers(0, 160),
)
def test_a_last_look_that_is_left_out_would_have_found_nothing(
    sentences: list[str], later: int
) -> None:
    """The end of a short answer is not cut into sentences."""
    text = "".join(sentences)
    found = []
    for last in (True, False):
        window, staleness = TextWindow(), Staleness(RequestContext())
        for _ in window.blocks(text[:-later] if later else text):
            pass
        earlier = staleness.scan(window)
        for _ in window.blocks(text[-later:] if later else ""):
            pass
        window.rest()
        found.append((earlier, staleness.scan(window, last=last)))
    assert found[0] == found[1]
