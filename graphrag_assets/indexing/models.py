"""Selects the models used for indexing. Unset settings mean the embedded default."""

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import replace
from typing import TypeVar

import polars as pl

from graphrag_assets.embedded.indexing import embedded_models, with_local_embeddings
from graphrag_assets.indexing_models import NO_KEYS, Extracted, IndexingModels, Keys
from graphrag_assets.pipeline.embedding_texts import in_context
from graphrag_assets.records import TextUnit
from graphrag_assets.settings import Settings
from graphrag_assets.store.working import WorkingDatabase

Wanted = TypeVar("Wanted", bound=Sized)
Answers = TypeVar("Answers")


def models_for(
    settings: Settings,
    batch: str | None = None,
    run_id: str | None = None,
    keys: Keys = NO_KEYS,
    cache_not_before: str | None = None,
) -> IndexingModels:
    """The models that the settings select; `batch` and `run_id` are recorded in the ledger.

    `cache_not_before`: answers in the ledger older than this time (ISO, UTC) are requested again.

    Raises:
        SettingsError: a file in the folder of prompts is no prompt, also while no model uses it.
    """
    if settings.prompts_dir or (settings.data / "prompts").exists():
        from graphrag_assets.llm.prompts import prompts_of  # imports Jinja

        prompts_of(settings)
    models = with_local_embeddings(embedded_models(settings.choices.claims != "off"), settings)
    if settings.calls_models:
        from graphrag_assets.llm import backend  # imports litellm

        if settings.asks_chat_model:
            models = backend.with_chat(models, settings, batch, run_id, keys, cache_not_before)
        if settings.embedding_model and not settings.embeds_locally:
            models = replace(
                backend.with_embeddings(models, settings, batch, run_id, keys), pays_for_both=settings.asks_chat_model
            )
    return models


def embeddings_first(models: IndexingModels, text_of: Callable[[str | None], str]) -> IndexingModels:
    """`models` that embed one text before they send chat requests: a misnamed or unreachable embedding model then ends
    the run before anything is paid for.

    Args:
        text_of: the text, of the text unit that is to be extracted, or, for None, of any that is embedded anyway. The
            ledger has it the next time, so nothing is paid for twice.
    """
    if not models.pays_for_both:
        return models

    def extract(units: Iterable[TextUnit]) -> Iterator[Extracted]:
        units = list(units)
        if units:
            models.embed([text_of(units[0].id)])
        return models.extract(units)

    def after_one(request: Callable[[Wanted], Answers]) -> Callable[[Wanted], Answers]:
        def request_after_one(wanted: Wanted) -> Answers:
            if len(wanted):
                models.embed([text_of(None)])
            return request(wanted)

        return request_after_one

    return replace(
        models,
        extract=extract,
        summarize=after_one(models.summarize),
        write_reports=after_one(models.write_reports),
        write_contexts=after_one(models.write_contexts),
    )


def embedded_text(working: WorkingDatabase) -> str:
    """A text that is embedded anyway: of the first text unit; without any, a word."""
    first = working.read("SELECT context, text FROM text_units ORDER BY id LIMIT 1")
    return first.select(in_context()).item() if first.height else "text"


def ledger_entries(settings: Settings) -> pl.DataFrame | None:
    """The ledger, one row per paid call; None if there is no ledger."""
    if not settings.ledger_url and not settings.ledger_file.exists():
        return None
    from graphrag_assets.llm.backend import ledger_of

    return ledger_of(settings).frame()
