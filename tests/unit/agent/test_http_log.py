"""What the HTTP server logs."""

import logging

import pytest
from aiohttp.http_exceptions import BadHttpMethod

from gatemesh_agent.http_log import server_logger

PROMPT = '{"messages": "a secret"}'


def test_a_request_that_cannot_be_read_is_named_and_not_quoted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A length that is too short makes the HTTP server read a prompt as a method."""
    with caplog.at_level(logging.INFO):
        server_logger().exception("Error from %s", "1.1.1.1", exc_info=BadHttpMethod(PROMPT))
    (record,) = caplog.records
    assert (record.msg, record.levelname) == ("request_unreadable", "INFO")
    assert record.__dict__["error"] == "BadHttpMethod"
    assert "secret" not in caplog.text


def test_what_led_to_an_error_is_not_quoted_either(caplog: pytest.LogCaptureFixture) -> None:
    """The fault in a chunk lies behind the error of the body."""
    error = ValueError("body")
    error.__cause__ = BadHttpMethod(PROMPT)
    server_logger().exception("Unhandled exception", exc_info=error)
    assert "secret" not in caplog.text


def test_other_errors_keep_their_trace(caplog: pytest.LogCaptureFixture) -> None:
    """They are our own faults."""
    server_logger().exception("Unhandled exception", exc_info=ValueError("ours"))
    server_logger().info("plain")
    assert "ours" in caplog.text
    assert [record.levelname for record in caplog.records] == ["ERROR"]
