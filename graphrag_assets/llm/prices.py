"""Prices of tokens: litellm's table, or those of the settings."""

import logging
from dataclasses import dataclass

from graphrag_assets.llm import provider
from graphrag_assets.llm.model_options import PriceOptions

LISTED_PRICES = PriceOptions()
_log = logging.getLogger(__name__)
_reported: set[str] = set()


@dataclass(frozen=True)
class Prices:
    """US dollars per token of a model; `source` is "options", "litellm" or "unknown", which counts as free.

    `cached_usd`: of prompt tokens from the provider's prompt cache; with an input price of the options, that price.
    `query_usd`: of a query to a reranking model.
    """

    input_usd: float
    output_usd: float
    source: str
    cached_usd: float
    query_usd: float = 0.0

    def cost(self, prompt_tokens: int, completion_tokens: int = 0, cached_tokens: int = 0, queries: int = 0) -> float:
        """Cost of a call in US dollars. `cached_tokens`: of the prompt tokens, those from the provider's cache."""
        uncached = (prompt_tokens - cached_tokens) * self.input_usd
        return (
            uncached + cached_tokens * self.cached_usd + completion_tokens * self.output_usd + queries * self.query_usd
        )

    @classmethod
    def of(cls, model: str, options: PriceOptions = LISTED_PRICES) -> "Prices":
        """Prices of a model: those of the options, where unset litellm's. Warns once where there are none."""
        own_input, own_output = options.input_usd_per_million, options.output_usd_per_million
        if own_input is not None and own_output is not None:
            return cls(own_input / 1e6, own_output / 1e6, "options", own_input / 1e6)
        entry = provider.known(model) or {}
        source = "litellm" if "input_cost_per_token" in entry else "unknown"
        if own_input is not None or own_output is not None:
            source = "options"
        if source == "unknown" and model not in _reported:
            _reported.add(model)
            _log.warning(
                "No price is known for %s: its calls count as free and are not limited by a budget. "
                "Set its prices per million tokens.",
                model,
            )

        def listed(name: str) -> float:
            return float(entry.get(name) or 0)

        input_usd = own_input / 1e6 if own_input is not None else listed("input_cost_per_token")
        cached = entry.get("cache_read_input_token_cost") if own_input is None else None
        return cls(
            input_usd,
            own_output / 1e6 if own_output is not None else listed("output_cost_per_token"),
            source,
            input_usd if cached is None else float(cached),
            listed("input_cost_per_query"),
        )
