"""What a drill reports is counted, not guessed."""

import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rich.console import Console

from gatemesh_mesh.drill_report import DrillResult, show_summary, show_timeline
from gatemesh_mesh.history import Moment
from gatemesh_mesh.traffic import Exchange

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """Return a moment some seconds after the drill began."""
    return NOON + timedelta(seconds=seconds)


def exchange(
    instance: str, second: float, *, text: str = "", error: str = "", prompt: str = "p"
) -> Exchange:
    """Return a request that ended a second after it began."""
    return Exchange(
        request_id="r",
        prompt=prompt,
        streamed=False,
        started_at=at(second),
        finished_at=at(second + 1),
        status=200,
        instance=instance,
        error=error,
        text=text,
    )


def result(exchanges: Sequence[Exchange] = (), *, confirmed_s: float | None = 0.4) -> DrillResult:
    """Return a drill whose first bad token came after 0.1 s and whose repair took 20 s."""
    return DrillResult(
        instance="engine-1",
        fault="nan",
        began_at=NOON,
        first_bad_token_at=at(0.1),
        ejected_at=at(0.2),
        confirmed_at=None if confirmed_s is None else at(confirmed_s),
        readmitted_at=at(20.1),
        timeline=[Moment(at(0.2), "engine-1", "state", "healthy -> ejected", "proven")],
        exchanges=exchanges,
        clean_answers={"p": "Paris is big."},
    )


def test_times_run_from_the_first_bad_token() -> None:
    """The drill file was there a little earlier."""
    one = result()
    assert one.isolation_s == 0.3
    assert one.repair_s == 20.0
    assert one.complete


def test_a_loop_that_did_not_close_is_incomplete() -> None:
    """A missing moment is no success."""
    assert not result(confirmed_s=None).complete


def test_garbage_is_what_the_bad_instance_sent_while_it_was_bad() -> None:
    """Healthy instances, clean text and the time after the repair do not count."""
    one = result(
        [
            exchange("engine-1", 0, text="Paris is!!!!"),
            exchange("engine-1", 0, text="Paris is big."),
            exchange("engine-0", 0, text="fine"),
            exchange("engine-1", 30, text="fine again"),
            exchange("engine-1", 0.2),
        ]
    )
    assert one.garbage_chars == 4
    assert one.empty_answers == 1


def test_errors_elsewhere_are_told_apart() -> None:
    """A request of another instance that fails is a different failure."""
    one = result([exchange("engine-1", 0, error="cut"), exchange("engine-0", 0, error="cut")])
    assert len(one.client_errors) == 2
    assert [other.instance for other in one.other_errors] == ["engine-0"]


def test_the_report_shows_times_and_the_median() -> None:
    """A reader sees the timeline and the figure that the demo is judged by."""
    output = io.StringIO()
    console = Console(file=output, width=160)
    show_timeline(console, result())
    show_summary(console, [result()])
    shown = output.getvalue()
    assert "healthy -> ejected" in shown
    assert "median 0.300 s" in shown
