"""What the doctor says of admin ports and engines."""

from datetime import UTC, datetime, timedelta

import pytest

from gatemesh_ctl.doctor_pages import look_at_engines, look_at_services
from gatemesh_ctl.findings import Finding, Level
from gatemesh_ctl.store import Row
from gatemesh_ctl.web import Page

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def services(page: Page) -> list[Finding]:
    """Return what is said of a service that answers so."""
    return look_at_services({"agent": "http://agent:9101/"}, lambda: NOW, lambda url: page)


def test_a_service_says_what_it_lacks() -> None:
    """Ready, not ready, not there."""
    [ready] = services(Page(200, "ready"))
    assert ready.level is Level.OK
    [lacking] = services(Page(503, "broker, routing"))
    assert lacking.level is Level.FAULT
    assert "broker, routing" in lacking.what
    [gone] = services(Page(0, "refused"))
    assert gone.level is Level.FAULT
    assert "up -d agent" in gone.cure


@pytest.mark.parametrize(("behind_s", "level"), [(0, Level.OK), (5, Level.WARNING)])
def test_a_service_on_another_clock_is_told(behind_s: int, level: Level) -> None:
    """By the date of its page."""
    date = NOW - timedelta(seconds=behind_s)
    assert services(Page(200, "ready", date))[1].level is level


def test_without_admin_ports_the_way_to_name_them_is_told() -> None:
    """It is no fault."""
    [found] = look_at_services({}, lambda: NOW)
    assert found.level is Level.UNKNOWN
    assert "--admin" in found.cure


class Engine:
    """Engines that answer from a list of pages, by path."""

    def __init__(self, health: Page, *metrics: tuple[float, float]) -> None:
        self._health = health
        self._metrics = list(metrics)

    def __call__(self, url: str) -> Page:
        """Answer."""
        if url.endswith("/health"):
            return self._health
        running, tokens = self._metrics.pop(0) if self._metrics else (0.0, 0.0)
        text = (
            f'vllm:num_requests_running{{model="m"}} {running}\n'
            f'vllm:generation_tokens_total{{model="m"}} {tokens}\n'
        )
        return Page(200, text)


ROW: Row = {
    "instance_id": "engine-0",
    "base_url": "http://engine",
    "running": True,
    "in_rotation": True,
    "state": "healthy",
}
FINE = Page(200, "")


def engines(engine: Engine, row: Row = ROW) -> list[Finding]:
    """Return what is said of one engine."""
    return look_at_engines([row], engine, lambda seconds: None)


def test_an_engine_that_is_sent_requests_must_answer() -> None:
    """One that is out may be down."""
    [found] = engines(Engine(Page(0, "refused")))
    assert found.level is Level.FAULT
    [out] = engines(Engine(Page(503, "")), {**ROW, "in_rotation": False, "state": "quarantined"})
    assert out.level is Level.WARNING
    [none] = engines(Engine(FINE), {**ROW, "running": False})
    assert none.level is Level.UNKNOWN


@pytest.mark.parametrize(
    ("metrics", "level"),
    [
        ([(0, 5)], None),
        ([(1, 5), (1, 6)], Level.OK),
        ([(1, 5), (1, 5), (1, 9)], Level.OK),
        ([(1, 5), (1, 5), (0, 5)], Level.OK),
        ([(1, 5), (1, 5), (1, 5)], Level.WARNING),
    ],
)
def test_an_engine_that_makes_no_token_is_looked_at_longer(
    metrics: list[tuple[float, float]], level: Level | None
) -> None:
    """Only then it is told; an idle one makes none, and may."""
    found = engines(Engine(FINE, *metrics))
    assert found[0].level is Level.OK
    assert [one.level for one in found[1:]] == ([level] if level else [])


def test_an_engine_without_metrics_is_not_accused() -> None:
    """Other engines count otherwise."""
    found = look_at_engines([ROW], lambda url: Page(200, "other 1"), lambda seconds: None)
    assert [one.level for one in found] == [Level.OK]
