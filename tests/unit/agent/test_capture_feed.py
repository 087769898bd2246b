"""The feed of terms, as far as no broker is needed."""

import logging

import pytest

from gatemesh_agent.capture_feed import CaptureFeed
from gatemesh_common.captures import CaptureTerms

from .test_judging import NOON


async def test_terms_of_the_own_pool_are_taken_over() -> None:
    """Those of another are another's."""
    used: list[CaptureTerms] = []
    feed = CaptureFeed("p", used.append)
    for pool in ("p", "q"):
        terms = CaptureTerms(timestamp=NOON, pool=pool, text="window")
        await feed.receive(terms.model_dump_json().encode())
    assert [(terms.pool, terms.text) for terms in used] == [("p", "window")]


async def test_terms_that_cannot_be_read_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A newer word must not be taken for a laxer one."""
    used: list[CaptureTerms] = []
    with caplog.at_level(logging.ERROR):
        await CaptureFeed("p", used.append).receive(b'{"pool": "p", "text": "everything"}')
    assert not used
    assert caplog.messages == ["capture_terms_refused"]
