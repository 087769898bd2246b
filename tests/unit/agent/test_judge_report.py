"""What people and programs see of a judged answer."""

import io
import json

import pytest
from rich.console import Console

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.judge_report import (
    FAULTY_CHARS,
    as_fields,
    excerpt,
    place_of,
    show,
    summary,
    visible,
)
from gatemesh_agent.reading import Reading
from gatemesh_agent.saved import SavedAnswer, SavedChoice
from gatemesh_agent.saved_judging import Judged, JudgedAnswer
from gatemesh_common.messages import CheckLevel, Outcome, Reason, Span

TEXT = "The river \x00\x00 flows on."


def choice(text: str = TEXT) -> SavedChoice:
    """Return a choice that came token by token, four characters each."""
    pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
    readings = [
        Reading(piece, (TokenStep(piece, -1.0),), other_output=False, calls=()) for piece in pieces
    ]
    return SavedChoice(0, readings, "stop")


def failure(span: Span | None, gate: CheckLevel = CheckLevel.L1, name: str = "") -> Judgement:
    """Return a failure at a place."""
    return Judgement(gate, Outcome.FAILED, Reason.CONTROL_CHARS, score=2.0, span=span, name=name)


def judged(*failures: Judgement, status: int = 200, expect: str | None = None) -> JudgedAnswer:
    """Return an answer with these failures."""
    answer = SavedAnswer("a", {}, status=status, expect=expect)
    passed = Judgement(CheckLevel.L3, Outcome.SKIPPED, Reason.NO_LOGPROBS)
    return JudgedAnswer(answer, (Judged(choice(), (*failures, passed)),) if status == 200 else ())


def shown(answer: JudgedAnswer, *, colour: bool) -> str:
    """Return what is printed."""
    output = io.StringIO()
    show(
        Console(
            file=output,
            force_terminal=colour,
            width=120,
            color_system="standard" if colour else None,
        ),
        answer,
    )
    return output.getvalue()


def test_the_span_at_fault_is_marked() -> None:
    """By brackets where there is no colour; nothing in it hides."""
    answer = judged(failure(Span(char_start=10, char_end=12)))
    assert "characters 10 to 12: The river [[\\x00\\x00]] flows on." in shown(answer, colour=False)
    coloured = shown(answer, colour=True)
    assert "\x1b[" in coloured
    assert "[[" not in coloured
    assert "control_chars" in coloured


@pytest.mark.parametrize(
    ("span", "place"),
    [
        (None, None),
        (Span(), None),
        (Span(char_start=3), (3, len(TEXT))),
        (Span(char_start=3, char_end=999), (3, len(TEXT))),
        (Span(char_start=len(TEXT)), None),
        (Span(token_start=1, token_end=3), (4, 12)),
        (Span(token_start=1), (4, len(TEXT))),
        (Span(token_start=99), None),
    ],
)
def test_a_span_is_found_in_the_text(span: Span | None, place: tuple[int, int] | None) -> None:
    """Of tokens, too; one outside the text is not shown."""
    assert place_of(failure(span), choice()) == place


def test_a_long_span_is_cut() -> None:
    """A screen is not flooded by what flooded the answer."""
    text = "x" * 1000
    [line] = excerpt(failure(Span(char_start=0)), choice(text), marked=True)
    assert f"… {1000 - FAULTY_CHARS} more characters" in line.plain


def test_programs_get_every_field() -> None:
    """As JSON, named as in messages."""
    fields = as_fields(judged(failure(Span(char_start=1), CheckLevel.PLUGIN, "own")))
    written = json.loads(json.dumps(fields))
    assert written["failed"]
    verdict = written["choices"][0]["verdicts"][0]
    assert (verdict["check_level"], verdict["gate"], verdict["span"]) == (
        "LX",
        "own",
        {"char_start": 1},
    )


def test_labels_and_refusals_are_told() -> None:
    """A refusal says nothing of the engine's health."""
    assert "failed, labelled pass" in shown(judged(failure(None), expect="pass"), colour=False)
    assert "refused by the engine (400)" in shown(judged(status=400), colour=False)


def test_sums() -> None:
    """What a file of answers comes to."""
    answers = [
        judged(failure(None), expect="fail"),
        judged(expect="fail"),
        judged(),
        judged(status=400),
    ]
    assert summary(answers) == {"answers": 4, "failed": 1, "refused": 1, "not_as_labelled": 1}


def test_everything_is_visible() -> None:
    """Line feeds, controls, private use and lone surrogates."""
    assert visible("a\n\x00\ue000\ud800é") == "a\\n\\x00\\ue000\\ud800é"
