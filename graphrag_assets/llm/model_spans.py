"""The span of a call to a model, by OpenTelemetry's conventions for generative AI: tokens, dollars and retries."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from graphrag_assets.llm import provider
from graphrag_assets.llm.model_options import ModelOptions
from graphrag_assets.llm.single_flight import Trace
from graphrag_assets.runtime.tracing import span

_PROVIDERS = {
    "": "openai",
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""What the conventions call a provider, where it is not litellm's name."""


@contextmanager
def model_span(options: ModelOptions, operation: str, task: str, trace: Trace) -> Iterator[None]:
    """A span of the calls that `trace` counts. It is not current: an answer in pieces leaves the block in between."""
    vendor, model = provider.provider_of(options.model)
    attributes: dict[str, str | int | float | bool] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": _PROVIDERS.get(vendor, vendor),
        "gen_ai.request.model": model,
        "graphrag.task": task,
    }
    if host := urlsplit(options.base_url or "").hostname:
        attributes["server.address"] = host
    with span(f"{operation} {model}", attributes, current=False, client=True) as annotate:
        try:
            yield
        finally:
            used = trace.usage
            annotate(
                {
                    "gen_ai.usage.input_tokens": used.prompt_tokens,
                    "gen_ai.usage.cache_read.input_tokens": used.cached_tokens,
                    "gen_ai.usage.output_tokens": used.completion_tokens,
                    "graphrag.cost_usd": used.cost_usd,
                    "graphrag.requests": trace.requests,
                    "graphrag.seconds_waiting": used.seconds_waiting,
                }
            )
