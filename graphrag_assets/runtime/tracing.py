"""Spans for OpenTelemetry: commands, stages, questions with their steps, and calls to models.

Without a tracer provider, of an application or by `start_tracing`, they do nothing. Their parent is the current
span, such as that of an application. No text of a prompt, an answer or an error is in them.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping

from opentelemetry import trace

from graphrag_assets.errors import SettingsError

Attributes = Mapping[str, str | int | float | bool]
Annotate = Callable[[Attributes], None]
"""Adds attributes to a span."""
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NAME = "graphrag_assets"
_tracer = trace.get_tracer(_NAME)


def start_tracing() -> None:
    """Send the spans of this process to the endpoint, if one is set and the process has no tracer provider yet.

    Raises:
        SettingsError: an endpoint is set, and OpenTelemetry's SDK is not installed.
    """
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError:
        variable = next(name for name in ENDPOINTS if os.environ.get(name))
        raise SettingsError(f"{variable} is set, but not the extra trace: pip install -e '.[trace]'.") from None
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return
    service = OTELResourceDetector().detect().attributes.get("service.name") or _NAME
    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


@contextlib.contextmanager
def span(
    name: str, attributes: Attributes | None = None, *, current: bool = True, client: bool = False
) -> Iterator[Annotate]:
    """Yield a span of the block; yields the function that adds attributes. An error is named by its class alone.

    Args:
        current: spans inside the block are its children. Not for the block of a generator, which shares its context
            with its caller.
        client: the block is a request to a server.
    """
    kind = trace.SpanKind.CLIENT if client else trace.SpanKind.INTERNAL
    started = _tracer.start_span(name, attributes=attributes, kind=kind)
    inside = trace.use_span(started, record_exception=False, set_status_on_exception=False)
    try:
        with inside if current else contextlib.nullcontext():
            yield started.set_attributes
    except Exception as error:
        started.set_attribute("error.type", type(error).__name__)
        started.set_status(trace.StatusCode.ERROR)
        raise
    finally:
        started.end()


def annotate(attributes: Attributes) -> None:
    """Add attributes to the current span."""
    trace.get_current_span().set_attributes(attributes)
