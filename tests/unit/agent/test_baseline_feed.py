"""The feed of baselines, as far as no broker is needed."""

import logging
from datetime import UTC, datetime, timedelta

import pytest

from gatemesh_agent.baseline_feed import BaselineFeed
from gatemesh_agent.baselines import Baselines

from .test_baselines import baseline, median_of


async def test_what_arrives_is_measured_by() -> None:
    """As soon as it is there."""
    known = Baselines("p")
    feed = BaselineFeed("p", known)
    await feed.receive(baseline(3, 0.7).model_dump_json().encode())
    assert median_of(known.baseline("m-1")) == 0.7


async def test_what_cannot_be_read_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged without its content."""
    known = Baselines("p")
    feed = BaselineFeed("p", known)
    await feed.receive(baseline(3, 0.7).model_dump_json().encode())
    with caplog.at_level(logging.ERROR):
        await feed.receive(b'{"pool": "p", "version": "secret"}')
    assert caplog.messages == ["baseline_refused"]
    assert "secret" not in str(caplog.records[0].__dict__)
    assert median_of(known.baseline("m-1")) == 0.7


async def test_a_baseline_from_the_future_can_be_replaced() -> None:
    """Its own time is that of its arrival."""
    known = Baselines("p")
    feed = BaselineFeed("p", known)
    ahead = {"timestamp": datetime(9999, 1, 1, tzinfo=UTC)}
    await feed.receive(baseline(2**62, 0.6).model_copy(update=ahead).model_dump_json().encode())
    later = {"timestamp": datetime.now(UTC) + timedelta(seconds=11)}
    assert known.take(baseline(7, 0.7).model_copy(update=later))
