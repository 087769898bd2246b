"""The feed of yardsticks, as far as no broker is needed."""

import logging

import pytest

from gatemesh_agent.baseline_feed import BaselineFeed
from gatemesh_agent.baselines import Baselines

from .test_baselines import baseline, median_of


async def test_what_arrives_is_measured_by() -> None:
    """As soon as it is there."""
    known = Baselines("p")
    feed = BaselineFeed("p", known)
    await feed.receive(baseline(3, 0.7).model_dump_json().encode())
    assert median_of(known.yardstick("m-1")) == 0.7


async def test_what_cannot_be_read_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged without its content."""
    known = Baselines("p")
    feed = BaselineFeed("p", known)
    await feed.receive(baseline(3, 0.7).model_dump_json().encode())
    with caplog.at_level(logging.ERROR):
        await feed.receive(b'{"pool": "p", "version": "secret"}')
    assert caplog.messages == ["baseline_refused"]
    assert "secret" not in str(caplog.records[0].__dict__)
    assert median_of(known.yardstick("m-1")) == 0.7
