"""Switches traces on where an endpoint is set; without one nothing of OpenTelemetry is loaded."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from gatemesh_common.errors import SettingsError
from gatemesh_common.settings import ServiceSettings
from gatemesh_common.spans import NO_SPANS, Spans


@contextmanager
def traced(service: str, settings: ServiceSettings, share: float | None = None) -> Iterator[Spans]:
    """Hand out where a service tells its spans; `share` of the traces that begin in it.

    Raises:
        SettingsError: an endpoint is set, and OpenTelemetry is not installed.
    """
    if not settings.traces_endpoint:
        yield NO_SPANS
        return
    try:
        otel = import_module("gatemesh_common.otel")
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"GATEMESH_TRACES_ENDPOINT is set, but {error.name} is not installed; install "
            "gatemesh[traces], or unset it"
        ) from error
    with otel.exporting(service, settings.traces_endpoint, share) as spans:
        yield spans
