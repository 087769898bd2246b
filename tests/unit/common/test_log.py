"""Logs are JSON, one event per line."""

import json
import logging
from collections.abc import Iterator

import pytest

from gatemesh_common.log import configure_logging


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Give the test runner its handlers back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_an_event_is_one_line_with_its_identifiers(capsys: pytest.CaptureFixture[str]) -> None:
    """So that services can be joined by them."""
    configure_logging("executor", "INFO")
    logging.getLogger("x").info("instance_drained", extra={"instance_id": "engine-0"})
    [line] = capsys.readouterr().out.splitlines()
    event = json.loads(line)
    assert (event["event"], event["service"], event["level"]) == (
        "instance_drained",
        "executor",
        "INFO",
    )
    assert event["instance_id"] == "engine-0"
    assert "timestamp" in event


def test_the_level_holds_and_libraries_are_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    """A reconnect is our event, not theirs."""
    configure_logging("executor", "INFO")
    logging.getLogger("x").debug("hidden")
    logging.getLogger("aio_pika.robust_connection").info("hidden")
    logging.getLogger("aio_pika.robust_connection").warning("shown")
    assert [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()] == ["shown"]
