"""What the live measurement makes of what it hears."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from benchmarks.detecting import Answered, text_length
from benchmarks.detection import (
    BEGIN,
    END,
    EVERY_KIND,
    arguments,
    figures,
    keep,
    missing,
    table,
    word_of,
    write_page,
)

from gatemesh_common.messages import CheckLevel, Reason, Verdict

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def answered(name: str, begins_s: int = 0) -> Answered:
    """Return an answer of which ten characters come each second."""
    began = NOON + timedelta(seconds=begins_s)
    chars = [(began + timedelta(seconds=n), 10 * n) for n in range(6)]
    return Answered(name, "engine-1", 200, began, chars)


def failure(name: str, level: CheckLevel, *, hard: bool = False) -> Verdict:
    """Return a failed verdict."""
    return Verdict(
        timestamp=NOON,
        instance_id="engine-1",
        request_id=name,
        check_level=level,
        reason=Reason.DRIFT,
        hard=hard,
    )


def test_what_was_caught_is_counted_by_answer() -> None:
    """Two gates that fail one answer caught one answer; the earlier one says when."""
    answers = [answered("a"), answered("b", 1), answered("c", 2)]
    failed = {
        "b": [
            (NOON + timedelta(seconds=5), failure("b", CheckLevel.L4)),
            (NOON + timedelta(seconds=3), failure("b", CheckLevel.L1, hard=True)),
        ]
    }
    found = figures(answers, failed, None)
    assert found["caught_share"] == found["hard_share"] == pytest.approx(1 / 3, abs=1e-3)
    assert (found["median_s"], found["median_chars"]) == (2.0, 20)
    assert found["first_caught_request"] == 2
    assert set(found["by_gate"]) == {"L1", "L4"}
    assert "`x`" in table({"x": found})


def test_nothing_caught_is_a_figure_too() -> None:
    """Misses are what the page is read for."""
    found = figures([answered("a")], {}, None)
    assert (found["caught_share"], found["first_caught_request"]) == (0, None)


def test_text_is_counted_and_not_its_wrapping() -> None:
    """Escapes are one character."""
    assert text_length(b'data: {"choices":[{"delta":{"content":"a\\nb"}}]}') == 3
    assert text_length(b'data: {"choices":[{"delta":{}}]}') == 0


def test_the_page_keeps_its_words(tmp_path: Path) -> None:
    """Only the table between the markers is new."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_page(page, "new")
    assert page.read_text() == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


def test_an_unknown_kind_is_refused() -> None:
    """A typing mistake must not measure nothing."""
    assert arguments(["--kinds", "clean,drill:nan@24"]).kinds == ["clean", "drill:nan@24"]
    assert arguments([]).kinds == list(EVERY_KIND)
    with pytest.raises(SystemExit):
        arguments(["--kinds", "cleen"])


def test_what_there_is_is_kept_after_each_kind(tmp_path: Path) -> None:
    """A run that is cut short leaves it behind, with how it was made."""
    page, out = tmp_path / "page.md", tmp_path / "out.json"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    options = arguments(["--page", str(page), "--json", str(out), "--requests", "7"])
    row = {"answers": 7, "suite": "passed"}
    keep({"clean": row}, options)
    assert "| `clean` | 7 |" in page.read_text()
    assert "7 answers of up to 64 tokens" in page.read_text()
    assert json.loads(out.read_text()) == {"clean": row}
    later = arguments(["--json", str(out), "--kinds", "clean,drill:nan"])
    assert missing(later) == ["drill:nan"]
    keep({"clean": {"answers": 0, "suite": "the engine did not start"}}, options)
    assert missing(later) == ["clean", "drill:nan"]


def test_a_suite_may_fail_by_faults_alone() -> None:
    """All answers are right and one of them runs on: the page says what it was."""
    details = {"faults": {"fruit": "repeated_char", "json": "repeated_char"}}
    suite = failure("t", CheckLevel.L5).model_copy(update={"score": 1.0, "details": details})
    assert word_of(suite) == "failed (1.00 right), repeated_char 2"
    assert word_of(None) == "no answer"
