"""The table of what a spoilt real engine's clients get."""

from benchmarks.rescue import Case
from benchmarks.rescue_real import table


def case(agent: str, outcome: str, bad: int = 0) -> Case:
    """Return one streamed chat that turned to NaN."""
    return Case("nan", 0, True, "chat", agent, outcome, bad, 0, 0, 1.0)  # noqa: FBT003


def test_cases_are_counted_by_drill_and_by_what_the_engine_told() -> None:
    """A clear error is neither whole nor wrong."""
    cases = [case("text", "missed", 7), case("text", "error"), case("logprobs", "rescued")]
    rows = table(cases).splitlines()
    assert rows[2] == "| `nan` | logprobs | 1 | 1 | 0 | 0 | 1 | 0 |"
    assert rows[3] == "| `nan` | text | 2 | 0 | 1 | 1 | 1 | 7 |"
