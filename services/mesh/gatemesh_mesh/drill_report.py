"""What one drill showed: times, errors, and what reached the clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

from rich.console import Console
from rich.table import Table

from gatemesh_mesh.history import Moment
from gatemesh_mesh.traffic import Exchange


@dataclass(frozen=True)
class DrillResult:
    """The facts of one drill; a moment that never came is None."""

    instance: str
    fault: str
    began_at: datetime
    first_bad_token_at: datetime | None
    ejected_at: datetime | None
    confirmed_at: datetime | None
    readmitted_at: datetime | None
    timeline: Sequence[Moment]
    exchanges: Sequence[Exchange]
    clean_answers: Mapping[str, str] = field(default_factory=dict)
    """By prompt, what a healthy instance answers."""

    @property
    def isolation_s(self) -> float | None:
        """Seconds from the first bad token to the agents' confirmation that it is out."""
        return seconds_between(self.first_bad_token_at, self.confirmed_at)

    @property
    def repair_s(self) -> float | None:
        """Seconds from the first bad token to the return into rotation."""
        return seconds_between(self.first_bad_token_at, self.readmitted_at)

    @property
    def client_errors(self) -> list[Exchange]:
        """Requests whose client saw an error."""
        return [one for one in self.exchanges if one.failed]

    @property
    def other_errors(self) -> list[Exchange]:
        """Errors of requests that other instances answered."""
        return [one for one in self.client_errors if one.instance not in ("", self.instance)]

    @property
    def garbage_chars(self) -> int:
        """Characters that clients got of the bad instance beyond a healthy one's answer."""
        return sum(
            len(one.text) - common_length(one.text, self.clean_answers.get(one.prompt, ""))
            for one in self.suspects
        )

    @property
    def empty_answers(self) -> int:
        """Answers of the bad instance that held no text at all."""
        return sum(not one.text and not one.failed for one in self.suspects)

    @property
    def suspects(self) -> list[Exchange]:
        """Requests that the instance answered while it was bad."""
        return [
            one for one in self.exchanges if one.instance == self.instance and self._while_bad(one)
        ]

    @property
    def complete(self) -> bool:
        """True when the loop closed: out, and back in rotation without a person."""
        return self.isolation_s is not None and self.repair_s is not None

    def _while_bad(self, exchange: Exchange) -> bool:
        ended = exchange.finished_at or exchange.started_at
        back = self.readmitted_at
        return ended >= self.began_at and (back is None or exchange.started_at < back)


def seconds_between(first: datetime | None, last: datetime | None) -> float | None:
    """Return the seconds from one moment to another; None when one is missing."""
    return None if first is None or last is None else (last - first).total_seconds()


def show_timeline(console: Console, result: DrillResult) -> None:
    """Print the history of the drilled instance, timed from the first bad token."""
    zero = result.first_bad_token_at or result.began_at
    table = Table(title=f"{result.instance}: {result.fault} (seconds from the first bad token)")
    for column in ("s", "what", "", "detail"):
        table.add_column(column, overflow="fold")
    table.add_row(f"{(result.began_at - zero).total_seconds():+.3f}", "drill", "fault on", "")
    for moment in result.timeline:
        offset = (moment.at - zero).total_seconds()
        table.add_row(f"{offset:+.3f}", moment.kind, moment.what, moment.detail or "")
    console.print(table)


def show_summary(console: Console, results: Sequence[DrillResult]) -> None:
    """Print one line per drill, and the median time to isolation."""
    table = Table(title="Drills (times in seconds)")
    for heading in ("fault", "on", "out", "back", "requests", "errors", "elsewhere", "garbage"):
        table.add_column(heading)
    for one in results:
        counts = (len(one.exchanges), len(one.client_errors), len(one.other_errors))
        times = (in_seconds(one.isolation_s), in_seconds(one.repair_s))
        garbage = f"{one.garbage_chars} chars, {one.empty_answers} empty"
        table.add_row(one.fault, one.instance, *times, *map(str, counts), garbage)
    console.print(table)
    for line in legend(results):
        console.print(line, soft_wrap=True, highlight=False)


def legend(results: Sequence[DrillResult]) -> list[str]:
    """Say what the columns count, and the figure that the drills are judged by."""
    lines = [
        "out, back: of rotation and in it again, from the first bad token where a token is proof, "
        "else from the end of the first answer that failed",
        "errors: requests whose client saw an error; elsewhere: of these, on other instances",
        "garbage: what clients got of the bad instance beyond its healthy twin's answer "
        "(at most: two healthy engines may part, too), and answers without any text",
    ]
    isolation = [one.isolation_s for one in results if one.isolation_s is not None]
    if isolation:
        lines.append(
            f"out of rotation: median {median(isolation):.3f} s, "
            f"worst {max(isolation):.3f} s, of {len(results)} drills"
        )
    return lines


def in_seconds(value: float | None) -> str:
    """Word a duration."""
    return "never" if value is None else f"{value:.3f}"


def common_length(text: str, other: str) -> int:
    """Return how many characters two texts share from their beginning."""
    pairs = zip(text, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(text), len(other)))
