"""Spans through OpenTelemetry; imported only where an endpoint is set (extra `traces`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gatemesh_common.spans import Attributes, Span

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PROPAGATOR = TraceContextTextMapPropagator()
LONGEST_SENDING_S = 3.0
"""For one batch, all tries together; a service that ends waits for its last one."""


class OtelSpan:
    """A span that goes on."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self.traceparent = context_of(span)

    def end(self, **attributes: str | int | float | bool) -> None:
        """Hand it over; attributes are named without our prefix."""
        for name, value in attributes.items():
            self._span.set_attribute(f"gatemesh.{name}", value)
        self._span.end()


class OtelSpans:
    """Hands spans to a processor, which sends them from a thread of its own."""

    on = True

    def __init__(self, service: str, processor: SpanProcessor, sampler: Sampler) -> None:
        resource = Resource.create({"service.name": service, "service.namespace": "gatemesh"})
        self._provider = TracerProvider(sampler, resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("gatemesh")

    def begin(self, name: str, parent: str | None, attributes: Attributes) -> Span:
        """Begin a span."""
        span = self._tracer.start_span(name, extracted(parent), attributes=attributes)
        return OtelSpan(span)

    def past(
        self,
        name: str,
        parent: str | None,
        begun: datetime,
        ended: datetime,
        attributes: Attributes,
    ) -> str | None:
        """Tell a span by its moments."""
        start = nanoseconds(begun)
        span = self._tracer.start_span(
            name, extracted(parent), attributes=attributes, start_time=start
        )
        # Nothing can lie under a span that is not told.
        under = context_of(span) if span.is_recording() else parent
        span.end(max(nanoseconds(ended), start))
        return under

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        self._provider.shutdown()


def extracted(parent: str | None) -> Context:
    """Return a trace context as the library wants it."""
    return PROPAGATOR.extract({"traceparent": parent} if parent else {}, Context())


def context_of(span: trace.Span) -> str:
    """Return the trace context of what a span causes."""
    carrier: dict[str, str] = {}
    PROPAGATOR.inject(carrier, trace.set_span_in_context(span, Context()))
    return carrier["traceparent"]


def nanoseconds(moment: datetime) -> int:
    """Return a moment as the library counts it."""
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000


def sampler_of(share: float | None) -> Sampler:
    """Return what keeps a share of the traces that begin here; None keeps every span."""
    return ALWAYS_ON if share is None else ParentBased(TraceIdRatioBased(share))


@contextmanager
def exporting(service: str, endpoint: str, share: float | None) -> Iterator[OtelSpans]:
    """Send spans to an OTLP endpoint while the block runs; a collector that is away loses them."""
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=LONGEST_SENDING_S)
    spans = OtelSpans(service, BatchSpanProcessor(exporter), sampler_of(share))
    try:
        yield spans
    finally:
        spans.close()
