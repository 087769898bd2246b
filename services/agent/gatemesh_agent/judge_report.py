"""Shows what the gates say of saved answers: for people in colour, for programs as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.saved import OK, SavedChoice
from gatemesh_agent.saved_judging import JudgedAnswer
from gatemesh_common.messages import CheckLevel, Outcome

COLOURS = {Outcome.FAILED: "bold red", Outcome.PASSED: "green", Outcome.SKIPPED: "yellow"}
AT_FAULT = "bold white on red"
OPENED, CLOSED = "[[", "]]"
"""Around the span at fault where there is no colour."""
BEFORE_CHARS, FAULTY_CHARS, AFTER_CHARS = 60, 160, 40
COLUMNS = ("gate", "outcome", "reason", "score", "threshold", "proof")


def as_fields(judged: JudgedAnswer) -> dict[str, Any]:
    """Return an answer's verdicts as JSON fields; of the text only where it is at fault."""
    return {
        "answer": judged.answer.label,
        "status": judged.answer.status,
        "expect": judged.answer.expect,
        "failed": judged.failed,
        "choices": [
            {
                "index": one.choice.index,
                "finish_reason": one.choice.finish_reason,
                "verdicts": [verdict_fields(each) for each in one.judgements],
            }
            for one in judged.choices
        ],
    }


def verdict_fields(judgement: Judgement) -> dict[str, Any]:
    """Return one gate's verdict as JSON fields, named as in messages."""
    return {
        "check_level": judgement.gate,
        "gate": judgement.name or None,
        "outcome": judgement.outcome,
        "reason": judgement.reason,
        "hard": judgement.hard,
        "score": judgement.score,
        "threshold": judgement.threshold,
        "span": judgement.span.model_dump(exclude_none=True) if judgement.span else None,
        "details": dict(judgement.details),
    }


def show(console: Console, judged: JudgedAnswer) -> None:
    """Print one answer: its gates, and the text around each span at fault."""
    clean = Outcome.PASSED if judged.judged else Outcome.SKIPPED
    outcome = Outcome.FAILED if judged.failed else clean
    console.print(Text.assemble((judged.answer.label, "bold"), "  ", heading(judged, outcome)))
    for one in judged.choices:
        console.print(table_of(one.judgements))
        for failure in one.failures:
            for line in excerpt(failure, one.choice, marked=not console.is_terminal):
                console.print(line, soft_wrap=True)
    console.print()


def heading(judged: JudgedAnswer, outcome: Outcome) -> tuple[str, str]:
    """Return what is said of an answer in a word, and its colour."""
    if judged.answer.status != OK and not judged.failed:
        return f"refused by the engine ({judged.answer.status}): nothing to judge", "yellow"
    labelled = judged.answer.expect
    told = f", labelled {labelled}" if labelled else ""
    return f"{outcome}{told}", COLOURS[outcome]


def table_of(judgements: Sequence[Judgement]) -> Table:
    """Return one row for each gate."""
    table = Table(box=None, header_style="dim", pad_edge=True)
    for name in COLUMNS:
        table.add_column(name)
    for each in judgements:
        table.add_row(*cells_of(each))
    return table


def cells_of(judgement: Judgement) -> Iterator[Text]:
    """Yield the cells of one gate."""
    name = f"{judgement.gate} {judgement.name}" if judgement.name else str(judgement.gate)
    yield Text(name)
    yield Text(str(judgement.outcome), COLOURS[judgement.outcome])
    yield Text(str(judgement.reason))
    yield Text(figure(judgement.score))
    yield Text(figure(judgement.threshold))
    yield Text(proof_of(judgement))


def proof_of(judgement: Judgement) -> str:
    """Return how much a failure proves."""
    if judgement.outcome is not Outcome.FAILED:
        return "-"
    if judgement.gate is CheckLevel.PLUGIN:
        return "counts for nothing"
    return "hard" if judgement.hard else "soft"


def figure(value: float | None) -> str:
    """Return a number as a person wants it."""
    return "-" if value is None else f"{value:.4g}"


def excerpt(failure: Judgement, choice: SavedChoice, *, marked: bool) -> Iterator[Text]:
    """Yield what a failure is about: its figures, and the text around its span."""
    name = failure.name or str(failure.gate)
    if failure.details:
        told = ", ".join(f"{key} {value}" for key, value in failure.details.items())
        yield Text(f"  {name}: {told}", "dim")
    place = place_of(failure, choice)
    if place is None:
        return
    text, (begin, end) = choice.text, place
    shown = min(end, begin + FAULTY_CHARS)
    faulty = visible(text[begin:shown])
    cut = f"… {end - shown} more characters" if end > shown else ""
    yield Text.assemble(
        f"  {name}, characters {begin} to {end}: ",
        visible(text[max(begin - BEFORE_CHARS, 0) : begin]),
        (f"{OPENED}{faulty}{CLOSED}" if marked else faulty, AT_FAULT),
        (cut, "dim") if cut else visible(text[end : end + AFTER_CHARS]),
    )


def place_of(failure: Judgement, choice: SavedChoice) -> tuple[int, int] | None:
    """Return where in a text a failure's span is; spans of tokens are counted by their texts."""
    span, text = failure.span, choice.text
    if span is None:
        return None
    begin, end = span.char_start, span.char_end
    if begin is None and span.token_start is not None:
        steps = choice.steps
        stop = len(steps) if span.token_end is None else span.token_end
        begin = sum(len(step.text) for step in steps[: span.token_start])
        end = sum(len(step.text) for step in steps[:stop])
    if begin is None or begin >= len(text):
        return None
    return begin, min(len(text) if end is None else end, len(text))


def visible(text: str) -> str:
    """Return a text in which nothing hides: control and lost characters are spelt out."""
    return "".join(
        character if character.isprintable() else escaped(character) for character in text
    )


def escaped(character: str) -> str:
    """Return a character as Python spells it."""
    return character.encode("unicode_escape").decode()


def summary(judged: Sequence[JudgedAnswer]) -> Mapping[str, int]:
    """Return how many answers there were, and how many failed or said nothing to judge."""
    return {
        "answers": len(judged),
        "failed": sum(one.failed for one in judged),
        "refused": sum(one.answer.status != OK and not one.failed for one in judged),
        "not_as_labelled": sum(
            one.answer.expect is not None and one.failed != (one.answer.expect == "fail")
            for one in judged
        ),
    }
