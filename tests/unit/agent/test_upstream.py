"""The agent's side towards the engines, as far as no network is needed."""

import io

from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.upstream import LARGE_BODY_BYTES, Patience, patience_of, sendable


def test_a_large_body_goes_out_piece_by_piece() -> None:
    """Others get their turn; small ones and streams go as they are."""
    large = b"x" * (LARGE_BODY_BYTES + 1)
    sent = sendable(large)
    assert isinstance(sent, io.BytesIO)
    assert sent.getvalue() == large
    assert sendable(large[1:]) == large[1:]
    assert sendable(None) is None


def test_waits_come_from_the_settings() -> None:
    """Each in seconds."""
    settings = AgentSettings.model_validate({"first_byte_s": 1, "idle_s": 2, "total_s": 3})
    assert patience_of(settings) == Patience(1, 2, 3)
