"""Spans of traces: what services tell of their work, or nothing at all when that is off."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from gatemesh_common.messages import Message, Verdict

Attributes = Mapping[str, str | int | float | bool]


class Span(Protocol):
    """Something that goes on."""

    @property
    def traceparent(self) -> str | None:
        """The trace context of what it causes."""

    def end(self, **attributes: str | int | float | bool) -> None:
        """Say that it is over."""


class Spans(Protocol):
    """Where spans are told."""

    @property
    def on(self) -> bool:
        """False where they go nowhere, so that nobody need prepare them."""

    def begin(self, name: str, parent: str | None, attributes: Attributes) -> Span:
        """Begin a span under a trace context; under none it begins a trace."""

    def past(
        self,
        name: str,
        parent: str | None,
        begun: datetime,
        ended: datetime,
        attributes: Attributes,
    ) -> str | None:
        """Tell a span that is over; return the trace context of what it caused."""


class NoSpan:
    """Nothing; what it causes belongs to what caused it."""

    def __init__(self, parent: str | None) -> None:
        self.traceparent = parent

    def end(self, **attributes: str | int | float | bool) -> None:
        """Do nothing."""


class NoSpans:
    """Tells nothing."""

    on = False

    def begin(self, name: str, parent: str | None, attributes: Attributes) -> Span:
        """Return a span that hands on its parent."""
        return NoSpan(parent)

    def past(
        self,
        name: str,
        parent: str | None,
        begun: datetime,
        ended: datetime,
        attributes: Attributes,
    ) -> str | None:
        """Return the parent."""
        return parent


NO_SPANS = NoSpans()


def told(spans: Spans, message: Message) -> Message:
    """Return a message as it is published: what a verdict causes lies under a span of its own."""
    if not spans.on or not isinstance(message, Verdict):
        return message
    attributes: dict[str, str | int | float | bool] = {
        "gatemesh.instance_id": message.instance_id,
        "gatemesh.request_id": message.request_id,
        "gatemesh.check_level": message.check_level.value,
        "gatemesh.outcome": message.outcome.value,
        "gatemesh.reason": str(message.reason),
        "gatemesh.hard": message.hard,
    }
    name = f"verdict {message.check_level.value} {message.outcome.value}"
    at = message.timestamp
    under = spans.past(name, message.traceparent, at, at, attributes)
    return message.model_copy(update={"traceparent": under})
