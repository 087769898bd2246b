"""What the demo's clients ask and how they count what they got."""

from datetime import UTC, datetime

import pytest

from gatemesh_mesh.traffic import Exchange, request_body, text_of_event

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_streamed_request_asks_for_the_usage_event() -> None:
    """Streams and whole answers are both ordinary requests."""
    streamed = request_body("sim", "hello", streamed=True, max_tokens=8)
    whole = request_body("sim", "hello", streamed=False, max_tokens=8)
    assert streamed["stream"] is True
    assert "stream" not in whole
    assert {key: streamed[key] for key in whole} == whole


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(b'data: {"choices":[{"delta":{"content":"hi"}}]}', ("hi", ""), id="text"),
        pytest.param(b'data: {"choices":[{"delta":{}}]}', ("", ""), id="empty-delta"),
        pytest.param(b'data: {"choices":[],"usage":{}}', ("", ""), id="usage"),
        pytest.param(b'data: {"error":{"message":"dead"}}', ("", "dead"), id="error"),
        pytest.param(b"data: [DONE]", ("", ""), id="done"),
        pytest.param(b": keep-alive", ("", ""), id="comment"),
        pytest.param(b"", ("", ""), id="blank"),
    ],
)
def test_an_event_gives_its_text_or_its_error(line: bytes, expected: tuple[str, str]) -> None:
    """An error inside a stream with status 200 is an error."""
    assert text_of_event(line) == expected


@pytest.mark.parametrize(
    ("status", "error", "failed"),
    [(200, "", False), (200, "cut", True), (503, "", True), (499, "", False)],
)
def test_a_client_saw_an_error(status: int, error: str, failed: bool) -> None:  # noqa: FBT001
    """A status of 200 with an error event is a failure too."""
    exchange = Exchange("r", "p", streamed=True, started_at=NOON, status=status, error=error)
    assert exchange.failed is failed
