"""What indexing asks of models: one interface for the embedded default and for language models."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import polars as pl

from graphrag_assets.contracts.records import ReportMaterial, ReportRecord, TextUnit, UnitExtraction
from graphrag_assets.contracts.usage import Usage, UsageMeter

Extracted = tuple[str, UnitExtraction | Exception]
"""A text unit's id with its extraction, or with the error."""


@dataclass(frozen=True)
class Keys:
    """API keys; a missing one is looked up in the environment. They are never shown."""

    chat: str | None = field(default=None, repr=False)
    embedding: str | None = field(default=None, repr=False)


NO_KEYS = Keys()


@dataclass(frozen=True)
class IndexingModels:
    """Extracts, summarizes, reports and embeds; each with the fingerprint that its rows carry.

    Attributes:
        extract: extractions of text units, in any order, as they complete.
        summarize: one description per key, from descriptions (key, title, description, n).
        write_reports: a report per material, in order.
        embedding_model: name of the model of `embed`; empty: there is none, and rows have no vectors.
        embed: unit vectors, float32 (n, dimensions), of n texts; NaN for those in `embedding_errors`.
        embedding_errors: the texts that the embedding model does not take, with the reasons; `embed` adds them.
        meters: usage meters of language models; none with the embedded default.
    """

    extractor: str
    extract: Callable[[Iterable[TextUnit]], Iterator[Extracted]]
    summarize: Callable[[pl.DataFrame], pl.DataFrame]
    reporter: str
    write_reports: Callable[[Sequence[ReportMaterial]], list[ReportRecord]]
    embedding_model: str = ""
    embed: Callable[[Sequence[str]], np.ndarray] = lambda texts: np.zeros((len(texts), 0), np.float32)
    summarizer: str = ""
    embedding_errors: dict[str, str] = field(default_factory=dict)
    meters: tuple[UsageMeter, ...] = ()

    @property
    def usage(self) -> Mapping[str, Usage]:
        """Usage so far, by task."""
        return reduce(lambda all_meters, meter: all_meters + meter, self.meters).by_task if self.meters else {}
