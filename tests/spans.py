"""Spans kept in memory, to see what services tell."""

from dataclasses import dataclass

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gatemesh_common.otel import OtelSpans, sampler_of

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@dataclass(frozen=True)
class Told:
    """A span as it was told."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str | None


class Recorder:
    """Keeps the spans of any number of services."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()

    def spans(self, service: str, share: float | None = None) -> OtelSpans:
        """Return where a service tells its spans."""
        return OtelSpans(service, SimpleSpanProcessor(self.exporter), sampler_of(share))

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        """Every span that is over, as the library has it."""
        return tuple(self.exporter.get_finished_spans())

    @property
    def told(self) -> list[Told]:
        """Every span that is over, in the order of their ends."""
        return [told_of(span) for span in self.ended]

    def named(self, name: str) -> Told:
        """Return the one span of a name."""
        [found] = [one for one in self.told if one.name == name]
        return found


def told_of(span: ReadableSpan) -> Told:
    """Return what tells a span from others."""
    context, parent = span.get_span_context(), span.parent
    assert context is not None
    return Told(
        span.name,
        f"{context.trace_id:032x}",
        f"{context.span_id:016x}",
        f"{parent.span_id:016x}" if parent else None,
    )
