"""JSON logs: one event per line, with the identifiers that join services."""

import logging
import sys

from pythonjsonlogger.json import JsonFormatter


def configure_logging(service: str, level: str = "INFO") -> None:
    """Send every log record of this process to stdout as one JSON object per line."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        JsonFormatter(
            "%(asctime)s %(levelname)s %(name)s %(message)s",
            rename_fields={"asctime": "timestamp", "levelname": "level", "message": "event"},
            static_fields={"service": service},
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # Connection libraries log a stack trace per reconnect; our own events say it once.
    for noisy in ("aiormq", "aio_pika", "faststream", "alembic"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))
