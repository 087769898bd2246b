"""The table of the fault suite: what was played, by which rule, how it ended, how long it took."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BEGIN, END = "<!-- scenarios begin -->", "<!-- scenarios end -->"
HEAD = (
    "| scenario | pass rule | result | back after, s | all, s |",
    "|---|---|---|---:|---:|",
)


@dataclass(frozen=True)
class Line:
    """How one scenario ended."""

    name: str
    rule: str
    passed: bool
    seconds: float
    back_s: float | None = None
    """From the end of the fault to a fresh event in SQL and an answered request."""


def table(lines: Sequence[Line]) -> str:
    """Return the table as Markdown."""
    rows = [
        f"| `{line.name}` | {line.rule} | {'passed' if line.passed else 'FAILED'} "
        f"| {'' if line.back_s is None else f'{line.back_s:.1f}'} | {line.seconds:.0f} |"
        for line in lines
    ]
    return "\n".join([*HEAD, *rows])


def write_page(page: Path, text: str) -> None:
    """Put the table between the markers of a page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page}: the markers {BEGIN} and {END} are missing")
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
