"""Loops of any period are found at their limit and not before."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding, Judgement
from gatemesh_agent.gates.repetition import (
    DIGITS,
    LATE_START,
    LIMIT_CHARS,
    NEEDLE,
    LoopLimits,
    PeriodTracker,
    Repetition,
    may_hold_digits,
)
from gatemesh_agent.gates.units import UnitKind
from gatemesh_agent.gates.window import BLOCK
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]
LEAD = (
    "A kettle has three parts that wear out: the switch, the seal and the element. Most people"
    " notice the seal first, because water drips from the base when it is hard. Lime makes it bad;"
    " a spoon of vinegar every month keeps the metal clean. If the lamp stays dark, look at the"
    " fuse before you buy anything. Spare switches cost little and snap in place, but elements are"
    " welded, so a burnt one means a new kettle. Keep the box: makers often ask for its label when"
    " you send the thing back. Before the first use, fill it to the mark and pour the water away.\n"
)
Scanned = Callable[..., Finding | None]


@given(st.text("abc", min_size=1, max_size=30), st.text("xyz", max_size=40))
def test_the_tracker_finds_period_and_start(unit: str, lead: str) -> None:
    """The run begins where the unit first stood."""
    text = lead + unit * (NEEDLE * 3)
    tracker = PeriodTracker()
    tracker.advance(text, len(text), 0)
    assert tracker.period <= len(unit)
    assert len(unit) % tracker.period == 0
    assert tracker.start <= len(lead)


def test_the_tracker_lets_go() -> None:
    """A run ends where the text goes on differently."""
    tracker = PeriodTracker()
    text = "ab" * 40
    tracker.advance(text, len(text), 0)
    assert tracker.repeats(len(text)) == 40
    text += "something else now"
    tracker.advance(text, len(text), 18)
    assert tracker.repeats(len(text)) == 0


@pytest.mark.parametrize(
    ("unit", "kind"),
    [
        ("!", UnitKind.SIGN),
        ("-", UnitKind.RULE),
        ("0", UnitKind.DIGIT),
        ("a", UnitKind.LETTER),
        ("ha", UnitKind.SYLLABLE),
        ("lattice", UnitKind.WORD),
        ("of the sea and ", UnitKind.TEXT),
        ("\n", UnitKind.BREAK),
        (" ", UnitKind.BLANK),
        ("🎉🎊", UnitKind.SIGNS),
    ],
)
def test_each_kind_at_its_limit_and_past_it(
    unit: str, kind: UnitKind, asking: Asking, scanned: Scanned
) -> None:
    """Blocks of 16 characters are the resolution."""
    limit = LIMIT_CHARS[kind]
    fine = "Here:" + unit * (limit // len(unit))
    assert scanned(fine, Repetition(asking()).scan) is None
    flood = "Here:" + unit * ((limit + BLOCK) // len(unit) + 1)
    finding = scanned(flood, Repetition(asking()).scan)
    assert finding is not None
    assert finding.reason is Reason.REPETITION
    assert finding.start == pytest.approx(5, abs=1)


def test_a_paragraph_loop(asking: Asking, scanned: Scanned) -> None:
    """A long period needs fewer repeats; four are a refrain."""
    paragraph = (
        "The keeper climbed the stairs, lit the lamp, wrote the log and went to bed late. " * 2
    )
    assert scanned(paragraph * 2, Repetition(asking()).scan) is None
    assert scanned(paragraph * 5, Repetition(asking()).scan) is not None


@pytest.mark.parametrize("prompt", ["Repeat banana 100 times.", "Schreibe hundert mal banana"])
def test_the_prompt_may_ask_for_it(prompt: str, asking: Asking, scanned: Scanned) -> None:
    """What was asked for is no fault; far more of it is one."""
    assert scanned("banana " * 100, Repetition(asking(prompt)).scan) is None
    assert scanned("banana " * 140, Repetition(asking(prompt)).scan) is not None


def test_rows_that_differ_in_numbers(asking: Asking, scanned: Scanned) -> None:
    """A list with one item under many numbers is a loop; a table of data is not."""
    loop = "".join(f"{n}. It decouples the producer from it.\n" for n in range(1, 20))
    finding = scanned(loop, Repetition(asking()).scan)
    assert finding is not None
    assert finding.start < 64
    rows = "".join(f"10.0.0.{n}  host-{n}.lab.internal\n" for n in range(1, 40))
    assert scanned(rows, Repetition(asking()).scan) is None
    assert scanned(loop, Repetition(asking("Write it 20 times")).scan) is None


def test_a_countdown_is_no_loop(asking: Asking, scanned: Scanned) -> None:
    """Numbers alone may go on for long."""
    assert scanned(" ".join(map(str, range(400, 0, -1))), Repetition(asking()).scan) is None


def test_late_loops_have_less_room(asking: Asking) -> None:
    """Behind varied text a loop of words, of data and of one word is seen sooner."""
    limits = LoopLimits(asking())
    for unit in ("and the water ", "the ", "x = f(1);\n"):
        assert limits.chars(unit, start=LATE_START) < limits.chars(unit, start=LATE_START - 1)
    sentence = "The loader looks for the module in every folder of the path. "
    assert limits.chars(sentence, start=LATE_START) < 4 * len(sentence)


def test_a_flood_from_the_first_character(asking: Asking, scanned: Scanned) -> None:
    """An answer of nothing but one sign or number needs less than a run inside a text."""
    assert scanned("!" * 32, Repetition(asking()).scan) is not None
    assert scanned("0 " * 100, Repetition(asking()).scan) is not None
    assert scanned("Wait" + "!" * 20 + " What?", Repetition(asking()).scan) is None


def test_a_number_asks_for_things_and_not_for_one_sentence(
    asking: Asking, scanned: Scanned
) -> None:
    """A number in the prompt excuses rows of data, not the same words over and over."""
    prompt = asking("Is 97 a prime number?")
    assert scanned("Wait, let me check that again. " * 20, Repetition(prompt).scan) is not None
    assert scanned("0, 1, 0, 0, 1,\n" * 40, Repetition(prompt).scan) is None


def test_stamped_rows_and_tables(asking: Asking, scanned: Scanned) -> None:
    """A phrase behind a running time is a loop; the rule of a wide table is none."""
    stamped = "".join(f"[{n // 60:02}:{n % 60:02}] Thank you.\n" for n in range(40))
    assert scanned(stamped, Repetition(asking()).scan) is not None
    assert scanned("| Name |\n| :" + "-" * 240 + ":|\n", Repetition(asking()).scan) is None


def test_suspicion_rises_before_the_fault(asking: Asking, scanned: Scanned) -> None:
    """The agent sees a run while it is still allowed."""
    repetition = Repetition(asking())
    scanned("of the sea and " * 15, repetition.scan)
    assert 0.5 < repetition.suspicion < 1
    scanned("nothing of the kind in here at all", repetition.scan)
    assert repetition.suspicion == 0


def test_limits_grow_with_wishes(asking: Asking) -> None:
    """Playful, endless and code answers may repeat more."""
    plain = LoopLimits(asking()).chars("the lantern ")
    assert LoopLimits(asking("Write a song")).chars("the lantern ") == 2 * plain
    assert LoopLimits(asking("Repeat lantern forever")).chars("the lantern ") > 10 * plain
    digits = LoopLimits(asking()).chars("12, ")
    assert LoopLimits(asking()).chars("12, ", in_fence=True) == 2 * digits
    assert LoopLimits(asking()).chars("等等，我再确认") < plain / 2
    assert LoopLimits(asking("Repeat it 500 times")).chars("\n") == LIMIT_CHARS[UnitKind.BREAK]


def test_where_a_run_stands(asking: Asking, judge: Judge) -> None:
    """Fillers in literals and rows of numbers of a program have more room than in prose."""
    lead = "def test_width(self):\n    wrap = self.wrapper(columns=64)\n"
    code = lead + "    line = wrap(b'{}')\n    self.equal(len(line), 2)\n"
    row = "    9, 8, 7, 6, 5, 4,\n"
    rows = lead * 3 + "    return [\n" + row * 20 + "    ]\n"
    for fine in (code.format("q" * 100), rows):
        assert judge(fine, asking("Show me."), "length").outcome is Outcome.PASSED
    for bad in (code.format("q" * 400), rows.replace(row, row * 4), "The word is " + "q" * 100):
        assert judge(bad, asking("Show me."), "length").reason is Reason.REPETITION


def test_a_list_of_one_item(asking: Asking, judge: Judge) -> None:
    """Rows that bring nothing but the next number are seen sooner, sooner still behind a text."""
    row = "{}. Close the lid and wait for the light to turn green.\n"
    rows = [row.format(number) for number in range(1, 12)]
    assert judge("".join(rows[:5]), asking(), "length").outcome is Outcome.PASSED
    assert judge("".join(rows[:8]), asking(), "length").reason is Reason.REPETITION
    assert len(LEAD) > LATE_START
    assert judge(LEAD + "".join(rows[:3]), asking(), "length").outcome is Outcome.PASSED
    assert judge(LEAD + "".join(rows[:5]), asking(), "length").reason is Reason.REPETITION
    facts = [f"In the year {year} the mill made {year * 7 % 90} sacks.\n" for year in range(8)]
    assert judge("".join(facts), asking(), "length").outcome is Outcome.PASSED


def test_an_underlined_heading(asking: Asking, judge: Judge) -> None:
    """A rule may be as long as the line that it underlines, not longer."""
    title = "A heading " + "with more and more links in it " * 6
    fine = title + "\n" + "^" * len(title) + "\n\nText follows."
    assert judge(fine, asking()).outcome is Outcome.PASSED
    bad = title + "\n" + "^" * 3 * len(title)
    assert judge(bad, asking(), "length").reason is Reason.REPETITION


def test_padding_of_cells(asking: Asking, judge: Judge) -> None:
    """Wide tables pad their cells; blanks in running text have less room."""
    row = "| [name](https://example.org) |" + " " * 140 + "| what it does |\n"
    assert judge("| Name | Use |\n|---|---|\n" + row, asking()).outcome is Outcome.PASSED
    flood = judge("The name is" + " " * 140 + "and", asking(), "length")
    assert flood.reason is Reason.REPETITION


@given(st.text(max_size=BLOCK))
def test_a_block_without_digits_is_told_at_a_glance(block: str) -> None:
    """What the glance lets pass, the pattern would not change."""
    if not may_hold_digits(block):
        assert DIGITS.sub("0", block) == block


def test_digits_are_seen_at_a_glance() -> None:
    """Digits of other scripts too."""
    assert may_hold_digits("row 7")
    assert may_hold_digits("\u0667")
    assert not may_hold_digits("plain words")


@pytest.mark.parametrize("chars", [0, 4_000, 6_137, 6_144, 9_001])
def test_rows_with_numbers_behind_text_without_any(
    chars: int, asking: Asking, judge: Judge
) -> None:
    """Text that is put aside while no number stands in reach is not lost."""
    rng = random.Random(3)
    words = ["".join(rng.choices("aeiounrstldm", k=rng.randint(2, 8))) for _ in range(2_000)]
    rows = "".join(f"\n{n}. Check the name of the module and import it." for n in range(1, 40))
    between = " ".join(words)[:chars]
    assert judge(between + rows, asking(), "length").reason is Reason.REPETITION
    three = "".join(f"\n{n}. Check the name of the module and import it." for n in range(1, 4))
    judgement = judge(three + between + rows, asking(), "length")
    assert judgement.reason is Reason.REPETITION
    assert judgement.span is not None
    assert judgement.span.char_start is not None
    assert judgement.span.char_start >= (len(three + between) - 64 if chars else 0)


@pytest.mark.parametrize("prompt", ["Tell me about the sea in 300 words.", "Count to 300."])
@pytest.mark.parametrize(("unit", "limit"), [("!", 28), ("ha", 160), ("word ", 160)])
def test_a_length_or_a_count_asks_for_no_flood(
    prompt: str, unit: str, limit: int, asking: Asking, scanned: Scanned
) -> None:
    """Of one sign or word; what was asked for so many times still passes."""
    flood = "The sea is: " + unit * 120
    context = asking(prompt)
    finding = scanned(flood, Repetition(context).scan)
    assert finding is not None
    assert finding.threshold == limit
    assert scanned(flood, Repetition(asking(f"Write {unit.strip()} 120 times.")).scan) is None
