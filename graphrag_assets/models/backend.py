"""Which models the index is made with: the one place where the choice falls.

Unset settings mean the embedded default. Assets ask for a `Backend` and never for a model by name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from graphrag_assets.models.offline import EXTRACTOR, REPORTER
from graphrag_assets.models.offline.centrality import summarise
from graphrag_assets.models.offline.embeddings import MODEL, embed
from graphrag_assets.models.offline.reports import write_reports
from graphrag_assets.models.progress import Progress
from graphrag_assets.models.records import PlacedUnit, ReportMaterial, ReportRecord, TextUnit, UnitExtraction
from graphrag_assets.settings import Settings

if TYPE_CHECKING:
    from graphrag_assets.models.llm import Usage, UsageMeter

LEDGER_NAME = "ledger.sqlite"
Extracted = tuple[str, UnitExtraction | Exception]
"""A text unit's id with what was found in it, or with why it failed."""


@dataclass(frozen=True)
class Keys:
    """API keys; without one it is looked up in the environment. They are shown nowhere."""

    chat: str | None = field(default=None, repr=False)
    embedding: str | None = field(default=None, repr=False)


NO_KEYS = Keys()


@dataclass(frozen=True)
class Backend:
    """What extracts, summarises, reports and embeds, each with the fingerprint that rows made by it carry.

    Attributes:
        extract: from text units to what was found in each, in any order, as it comes.
        summarise: from descriptions (key, title, description, n) to one description per key.
        write_reports: a report per material, in order.
        embed: unit vectors, float32 (n, dimensions), of n texts.
        write_contexts: from text units to the place of each in its document in words, or why it failed, as it comes;
            nothing of the embedded default, for which the headings are the context.
        meters: what count the calls, tokens and cost of models; none of the embedded default.
    """

    extractor: str
    extract: Callable[[Iterable[TextUnit]], Iterator[Extracted]]
    summarise: Callable[[pl.DataFrame], pl.DataFrame]
    reporter: str
    write_reports: Callable[[Sequence[ReportMaterial]], list[ReportRecord]]
    embedding_model: str
    embed: Callable[[Sequence[str]], np.ndarray]
    context_writer: str = ""
    write_contexts: Callable[[Sequence[PlacedUnit]], Iterator[tuple[str, str | Exception]]] = lambda _: iter(())
    meters: "tuple[UsageMeter, ...]" = ()

    @property
    def usage(self) -> "Mapping[str, Usage]":
        """What its calls have used so far, by task."""
        return reduce(lambda all_meters, meter: all_meters + meter, self.meters).by_task if self.meters else {}


def backend_for(
    settings: Settings,
    batch: str | None = None,
    run_id: str | None = None,
    keys: Keys = NO_KEYS,
    anew_since: str | None = None,
) -> Backend:
    """The backend that the settings choose; `batch` and `run_id` are for the ledger's books.

    `anew_since`: the chat model is asked again where its answer in the ledger is older than this time (ISO, UTC).
    """
    backend = with_local_embeddings(offline_backend(), settings)
    if settings.calls_models:
        from graphrag_assets.models import language  # what talks to providers loads only when asked for

        if settings.chat_model:
            backend = language.with_chat(backend, settings, batch, run_id, keys, anew_since)
        if settings.embedding_model and not settings.embeds_locally:
            backend = language.with_embeddings(backend, settings, run_id, keys)
    return backend


def with_local_embeddings(backend: Backend, settings: Settings, dry_run: bool = False) -> Backend:
    """`backend` with vectors by the ONNX model of the settings, if they name one; in a dry run vectors are zeros.

    Raises:
        SettingsError: a file of the model is missing or damaged.
    """
    if not settings.embeds_locally:
        return backend
    from graphrag_assets.models import semantic

    def embed(texts: Sequence[str]) -> np.ndarray:
        if dry_run or not texts:
            return np.zeros((len(texts), 1), np.float32)
        return semantic.encoder_of(settings.embedding_model).embed_passages(texts)

    return replace(backend, embedding_model=semantic.read_export(settings.embedding_model).name, embed=embed)


def books_of(settings: Settings) -> pl.DataFrame | None:
    """The ledger's books, a row per call that was paid for; None when there is no ledger."""
    if not settings.ledger_url and not (settings.index_folder / LEDGER_NAME).exists():
        return None
    from graphrag_assets.models.language import ledger_of

    return ledger_of(settings).frame()


def offline_backend() -> Backend:
    """The embedded default: no key, no network."""
    return Backend(EXTRACTOR, _extract_offline, summarise, REPORTER, write_reports, MODEL, embed)


def _extract_offline(units: Iterable[TextUnit]) -> Iterator[Extracted]:
    from graphrag_assets.models.offline.extraction import extract_unit  # its patterns are compiled only when used

    listed = list(units)
    progress = Progress("text units", len(listed))
    for unit in listed:
        try:
            yield unit.id, extract_unit(unit.text, unit.title, unit.language)
        except Exception as error:  # one unit must not stop its batch: it becomes a row of index_errors
            yield unit.id, error
        progress.advance()
