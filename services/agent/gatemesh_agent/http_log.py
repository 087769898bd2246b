"""What is logged of requests that are no HTTP: what was wrong with them, never a piece of them."""

import logging
from collections.abc import Iterator

from aiohttp.http_exceptions import HttpProcessingError

log = logging.getLogger(__name__)


class WithoutContent(logging.Filter):
    """Names the fault where the HTTP server would quote the client: headers, or a whole prompt."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, and take out of it what a client wrote."""
        for error in chain_of(record):
            if isinstance(error, HttpProcessingError):
                record.msg, record.args, record.exc_info = "request_unreadable", (), None
                record.levelno, record.levelname = logging.INFO, "INFO"
                record.error = type(error).__name__
        return True


def chain_of(record: logging.LogRecord) -> Iterator[BaseException]:
    """Return the exception that a record tells of, and those that led to it."""
    error = record.exc_info[1] if record.exc_info else None
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def server_logger() -> logging.Logger:
    """Return the logger for an HTTP server."""
    if not log.filters:
        log.addFilter(WithoutContent())
    return log
