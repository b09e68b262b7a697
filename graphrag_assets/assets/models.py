"""Selects the models used for indexing. Unset settings mean the embedded default."""

from typing import TYPE_CHECKING

import polars as pl

from graphrag_assets.contracts.indexing_models import NO_KEYS, IndexingModels, Keys
from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.embedded import embedded_models
from graphrag_assets.settings import Settings

if TYPE_CHECKING:
    from graphrag_assets.llm.ledger import Ledger


def models_for(
    settings: Settings,
    batch: str | None = None,
    run_id: str | None = None,
    keys: Keys = NO_KEYS,
    profile: PromptProfile | None = None,
) -> IndexingModels:
    """The models that the settings select; `batch` and `run_id` are recorded in the ledger.

    `profile` is added to the built-in prompts.

    Raises:
        SettingsError: a file in the folder of prompts is no prompt, also while no model uses it.
    """
    if settings.prompts_dir or (settings.data / "prompts").exists():
        from graphrag_assets.llm.prompts import prompts_of  # imports Jinja

        prompts_of(settings)
    models = embedded_models(settings)
    if settings.calls_models:
        from graphrag_assets.assets.model_tasks import with_models  # imports the clients of models

        return with_models(models, settings, batch, run_id, keys, profile)
    return models


def existing_ledger(settings: Settings) -> "Ledger | None":
    """The ledger of these settings; None while nothing was paid for."""
    if not settings.ledger_url and not settings.ledger_file.exists():
        return None
    from graphrag_assets.llm.backend import ledger_of

    return ledger_of(settings)


def ledger_entries(settings: Settings) -> pl.DataFrame | None:
    """The ledger, one row per paid call; None if there is no ledger."""
    ledger = existing_ledger(settings)
    return ledger.frame() if ledger else None
