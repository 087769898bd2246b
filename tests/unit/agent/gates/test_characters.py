"""Odd characters are faults unless the prompt wants them."""

from collections.abc import Callable

import pytest

from gatemesh_agent.gates.characters import (
    INVISIBLE_LIMIT,
    MARKS_LIMIT,
    PRIVATE_LIMIT,
    PRIVATE_LIMIT_IN_CODE,
)
from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.l1_text import TextGate
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]

LEAD = "The lamp stands on the pier"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("a\x00b", Reason.CONTROL_CHARS, id="nul"),
        pytest.param("a\x7fb", Reason.CONTROL_CHARS, id="delete"),
        pytest.param("a\x0bb", Reason.CONTROL_CHARS, id="vertical-tab"),
        pytest.param("a\x9cb", Reason.CONTROL_CHARS, id="c1"),
        pytest.param("a\ufffeb", Reason.INVALID_CHARS, id="noncharacter"),
        pytest.param("a\ufdd0b", Reason.INVALID_CHARS, id="noncharacter-arabic"),
        pytest.param("a\ud800b", Reason.INVALID_CHARS, id="high-surrogate"),
        pytest.param("a\udc00b", Reason.INVALID_CHARS, id="low-surrogate"),
        pytest.param("a\ud800", Reason.INVALID_CHARS, id="surrogate-at-end"),
        pytest.param("a\ufffdb", Reason.REPLACEMENT_CHARS, id="replacement"),
        pytest.param("a" + "\ue001" * (PRIVATE_LIMIT + 1), Reason.PRIVATE_USE_CHARS, id="private"),
        pytest.param("a" + "\u0301" * (MARKS_LIMIT + 1), Reason.INVISIBLE_CHARS, id="marks"),
        pytest.param("a" + "\u200b" * (INVISIBLE_LIMIT + 1), Reason.INVISIBLE_CHARS, id="hidden"),
        pytest.param("\u2060".join("abcdefgh " * 20), Reason.INVISIBLE_CHARS, id="spread"),
    ],
)
def test_faults(text: str, reason: Reason, asking: Asking, judge: Judge) -> None:
    """Each kind is named, also where a block ends in the middle."""
    for lead in ("", LEAD, LEAD[:14], LEAD[:15]):
        assert judge(lead + text, asking()).reason is reason


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("tab\tand\r\nbreak", id="white"),
        pytest.param("page\x0cbreak", id="form-feed"),
        pytest.param("a\ud83d\ude00b", id="surrogate-pair"),
        pytest.param("bullet \uf0b7" * PRIVATE_LIMIT, id="one-private"),
        pytest.param("```\n" + "\ue0b0" * PRIVATE_LIMIT_IN_CODE + "\n```", id="private-in-code"),
        pytest.param("a" + "\u0301" * MARKS_LIMIT, id="marks-at-limit"),
        pytest.param("a" + "\u200b" * INVISIBLE_LIMIT, id="hidden-at-limit"),
        pytest.param("👨‍👩‍👧‍👦 🏴󠁧󠁢󠁥󠁮󠁧󠁿", id="emoji-sequences"),
        pytest.param("Viết một câu ngắn về mùa thu", id="vietnamese"),
    ],
)
def test_healthy(text: str, asking: Asking, judge: Judge) -> None:
    """What people and scripts need passes."""
    assert judge(text, asking()).outcome is Outcome.PASSED


def test_persian_joiners(asking: Asking, judge: Judge) -> None:
    """Persian writes a joiner in every other word."""
    text = "می‌بارد و خیابان‌ها خیس می‌شوند؛ بچه‌ها می‌دوند. " * 3
    assert judge(text, asking("باران یعنی چه؟")).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("Real escape characters please", "\x1b[32mOK\x1b[0m"),
        ("Nerd font icons?", "\ue0b0\ue0b1\ue0b2"),
        ("What is U+FFFD?", "\ufffd is a mark"),
        ("Zalgo", "h" + "\u0336" * 20),
    ],
)
def test_wanted(prompt: str, text: str, asking: Asking, judge: Judge) -> None:
    """The prompt decides."""
    assert judge(text, asking(prompt)).outcome is Outcome.PASSED
    assert judge(text, asking()).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("end", "reason", "outcome"),
    [
        ("\ufffd", "length", Outcome.PASSED),
        ("\ufffd\ufffd\ufffd", "length", Outcome.PASSED),
        ("\ufffd" * 4, "length", Outcome.FAILED),
        ("\ufffd", "stop", Outcome.FAILED),
    ],
)
def test_a_character_cut_by_the_limit(
    end: str, reason: str, outcome: Outcome, asking: Asking, judge: Judge
) -> None:
    """The limit excuses up to three bytes of one character."""
    for lead in (LEAD, LEAD[:16], LEAD[:15], LEAD[:13]):
        assert judge(lead + end, asking(), reason).outcome is outcome


def test_drawing_widely_allows_one(asking: Asking, judge: Judge) -> None:
    """A small healthy model breaks a character now and then at temperature 1."""
    wide = asking(temperature=1.0)
    assert judge("one \ufffd here", wide).outcome is Outcome.PASSED
    assert judge("one \ufffd and two \ufffd here", wide).outcome is Outcome.FAILED


def test_a_hot_answer_is_what_was_asked_for(asking: Asking, judge: Judge) -> None:
    """Nobody restarts an engine over temperature 2."""
    assert judge("a\x00b \ufffd c", asking(temperature=2)).outcome is Outcome.PASSED


def test_stray_bytes_drawn_by_chance(asking: Asking, judge: Judge) -> None:
    """At temperature 1 a healthy engine draws half a character now and then; not at 0.7."""
    text = "The bridge\x80\x93 was old."
    assert judge(text, asking(temperature=1.0)).outcome is Outcome.PASSED
    assert judge(text * 2, asking(temperature=1.0)).reason is Reason.CONTROL_CHARS
    assert judge(text, asking(temperature=0.7)).reason is Reason.CONTROL_CHARS
    assert judge("a\x00b", asking(temperature=1.0)).reason is Reason.CONTROL_CHARS


CODE = """def test_lost(self):
    message = parse(raw, errors="replace")
    self.equal(message.text, "fje\ufffdll")
    self.equal(message.size, 6)
"""


def test_a_literal_may_name_the_sign_once(asking: Asking, judge: Judge) -> None:
    """Tests of decoders expect it; outside a literal, or again, it is a fault."""
    assert judge(CODE, asking("Show me the test.")).outcome is Outcome.PASSED
    for worse in (CODE + CODE, CODE.replace("raw", "r\ufffdw")):
        assert judge(worse, asking("Show me the test.")).reason is Reason.REPLACEMENT_CHARS


def test_the_first_private_character_is_where_the_fault_is(asking: Asking) -> None:
    """Not where the block begins that it stands in: what is right before it stands."""
    gate = TextGate(asking())
    text = "The ferry leaves at eight \ue001\ue002 and the pier is empty by then."
    failure = next(found for letter in text if (found := gate.feed_text(letter)) is not None)
    assert failure.span is not None
    assert failure.span.char_start == text.index("\ue001")
