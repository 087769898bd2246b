"""The spool keeps what the broker has not confirmed."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import orjson
import pytest

from gatemesh_agent.spool import Spool, urgency_of
from gatemesh_common.messages import (
    CheckLevel,
    Message,
    RequestRejected,
    TelemetryWindow,
    Verdict,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def verdict(name: str) -> Verdict:
    """Return a failure with this id."""
    return Verdict(
        message_id=name, timestamp=NOON, instance_id="e", request_id="r", check_level=CheckLevel.L1
    )


def window(name: str) -> TelemetryWindow:
    """Return a telemetry window with this id."""
    return TelemetryWindow(
        message_id=name,
        timestamp=NOON,
        instance_id="e",
        agent_id="a",
        incarnation=1,
        window_start=NOON,
        window_end=NOON,
    )


def rejection(name: str) -> RequestRejected:
    """Return a rejected request with this id."""
    return RequestRejected(
        message_id=name,
        timestamp=NOON,
        instance_id="e",
        agent_id="a",
        request_id="r",
        cause="broken",
    )


def ids(spool: Spool, now: float = 0.0) -> list[str | None]:
    """Return the ids of what is due."""
    return [each.message.message_id for each in spool.due(now, 1000)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the file of a spool."""
    return tmp_path / "deep" / "spool.sqlite3"


def test_verdicts_go_first_and_telemetry_last(path: Path) -> None:
    """A backlog of windows never delays a verdict."""
    spool = Spool(path, "agent", 100)
    for message in (window("t"), rejection("r"), verdict("v1"), verdict("v2")):
        assert spool.put(message)
    assert ids(spool) == ["v1", "v2", "r", "t"]
    spool.close()


def test_what_was_put_survives_without_a_close(path: Path) -> None:
    """A killed agent finds everything again."""
    killed = Spool(path, "agent", 100)
    killed.put(verdict("v"))
    again = Spool(path, "agent", 100)
    assert ids(again) == ["v"]
    assert again.depth == 1
    again.close()
    killed.close()


def test_the_message_comes_back_as_it_was_put(path: Path) -> None:
    """Address, headers and body are those of a direct publish."""
    spool = Spool(path, "agent", 100)
    message = verdict("v")
    spool.put(message)
    [spooled] = spool.due(0.0, 1)
    assert (spooled.exchange, spooled.routing_key) == (message.exchange, message.key())
    assert spooled.mandatory
    assert Verdict.model_validate(orjson.loads(spooled.message.body)) == message
    assert spooled.message.headers["cloudEvents:id"] == "v"
    assert spooled.message.type == "Verdict"
    assert spooled.message.timestamp == NOON
    spool.close()


def test_confirmed_messages_are_forgotten(path: Path) -> None:
    """Only they are."""
    spool = Spool(path, "agent", 100)
    spool.put(verdict("v1"))
    spool.put(verdict("v2"))
    spool.delete([spool.due(0.0, 1)[0].row_id])
    assert ids(spool) == ["v2"]
    assert spool.depth == 1
    spool.close()


def test_refused_messages_wait(path: Path) -> None:
    """They are kept, and tried again later."""
    spool = Spool(path, "agent", 100)
    spool.put(verdict("v"))
    spool.postpone([spool.due(0.0, 1)[0].row_id], 30.0)
    assert ids(spool, 29.9) == []
    assert ids(spool, 30.0) == ["v"]
    spool.close()


@pytest.mark.parametrize(
    ("held", "left"),
    [
        pytest.param(
            [verdict("v1"), window("t1"), window("t2")], ["v1", "new", "t2"], id="telemetry"
        ),
        pytest.param(
            [verdict("v1"), rejection("r1"), verdict("v2")], ["v2", "new", "r1"], id="oldest"
        ),
    ],
)
def test_a_full_spool_drops_the_oldest_telemetry_then_the_oldest(
    path: Path, held: list[Message], left: list[str]
) -> None:
    """A limit is a limit."""
    spool = Spool(path, "agent", 3)
    for message in held:
        spool.put(message)
    assert spool.put(verdict("new"))
    assert ids(spool) == left
    assert spool.depth == 3
    spool.close()


def test_a_damaged_file_is_put_aside(path: Path) -> None:
    """The agent starts, and the file is kept for whoever wants to look."""
    path.parent.mkdir()
    path.write_bytes(b"no database at all" * 100)
    spool = Spool(path, "agent", 100)
    spool.put(verdict("v"))
    assert ids(spool) == ["v"]
    assert len(list(path.parent.glob("*damaged*"))) == 1
    spool.close()


@pytest.mark.parametrize("fault", ["folder is a file", "locked"])
def test_a_disk_that_takes_no_file_stops_no_agent(path: Path, fault: str) -> None:
    """Messages are kept in memory, and a file in use is not taken for a damaged one."""
    if fault == "locked":
        path.parent.mkdir()
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
    else:
        path.parent.write_bytes(b"")
        holder = sqlite3.connect(":memory:")
    with patch("gatemesh_agent.spool.LOCK_S", 0.01):
        spool = Spool(path, "agent", 100)
    assert spool.put(verdict("v"))
    assert ids(spool) == ["v"]
    assert not list(path.parent.glob("*damaged*"))
    spool.close()
    holder.close()


def test_a_disk_that_refuses_is_reported(path: Path) -> None:
    """Traffic goes on; the loss is counted."""
    spool = Spool(path, "agent", 100)
    spool.close()
    assert not spool.put(verdict("v"))


@pytest.mark.parametrize(
    ("message", "urgency"), [(verdict("v"), 0), (rejection("r"), 1), (window("t"), 2)]
)
def test_urgency(message: Message, urgency: int) -> None:
    """Lower is sooner."""
    assert urgency_of(message) == urgency
