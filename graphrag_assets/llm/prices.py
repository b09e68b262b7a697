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
    """US dollars per token of a model; `source` is "options", "litellm" or "unknown", which counts as free."""

    input_usd: float
    output_usd: float
    source: str

    def cost(self, prompt_tokens: int, completion_tokens: int = 0) -> float:
        """Cost of a call in US dollars."""
        return prompt_tokens * self.input_usd + completion_tokens * self.output_usd

    @classmethod
    def of(cls, model: str, options: PriceOptions = LISTED_PRICES) -> "Prices":
        """Prices of a model: those of the options, where unset litellm's. Warns once where there are none."""
        own_input, own_output = options.input_usd_per_million, options.output_usd_per_million
        if own_input is not None and own_output is not None:
            return cls(own_input / 1e6, own_output / 1e6, "options")
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
        table_input, table_output = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
        return cls(
            own_input / 1e6 if own_input is not None else float(table_input or 0),
            own_output / 1e6 if own_output is not None else float(table_output or 0),
            source,
        )
