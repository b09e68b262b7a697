"""An index as its stages see it: the working database, the settings in force, and the models they select.

Unset settings mean the embedded default.
"""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_assets.contracts.indexing_models import NO_KEYS, IndexingModels, Keys
from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.embedded import embedded_models
from graphrag_assets.errors import full_disk_in
from graphrag_assets.runtime.processes import restart_peak
from graphrag_assets.runtime.tracing import span
from graphrag_assets.settings import Settings
from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.input_files import Input, InputFolder
from graphrag_assets.store.input_table import SCHEME, InputTable
from graphrag_assets.store.prompt_profiles import profile_in_force

if TYPE_CHECKING:
    from graphrag_assets.llm.ledger import Ledger

MAX_FILE_BYTES = 1_000_000_000
"""A larger file of the input folder is a video or a dump, and is not read."""


@dataclass(frozen=True)
class Index:
    """One index.

    Attributes:
        database: path of the working database.
        overrides: settings that replace the environment's, by name.
        keys: API keys; missing ones are looked up in the environment.
    """

    database: Path
    overrides: Mapping[str, Any] = field(default_factory=dict)
    keys: Keys = NO_KEYS

    @classmethod
    def from_environment(cls, overrides: Mapping[str, Any] | None = None, keys: Keys = NO_KEYS) -> "Index":
        """Return the index in the data folder of the settings, which are read from the environment now.

        Raises:
            SettingsError: a value does not fit.
        """
        values = overrides or {}
        return cls(Settings.load(**values).index_folder / "working.duckdb", values, keys)

    @functools.cached_property
    def settings(self) -> Settings:
        """The settings in force, read once."""
        return Settings.load(**self.overrides)

    @functools.cached_property
    def profile(self) -> PromptProfile | None:
        """The prompt profile in force, read once; None for the built-in prompts."""
        if not self.settings.asks_chat_model:
            return None
        return profile_in_force(self.working.read)

    @property
    def working(self) -> IndexDatabase:
        return IndexDatabase(self.database, self.settings.memory_limit)

    @property
    def input(self) -> Input:
        """The folder or table of documents."""
        settings = self.settings
        if settings.input.startswith(SCHEME):
            return InputTable(settings.input, settings.id_column, MAX_FILE_BYTES)
        return InputFolder(settings.input_folder, MAX_FILE_BYTES, settings.file_pattern, settings.batch_by)

    def models(self, batch: str | None = None, run_id: str | None = None) -> IndexingModels:
        """Return the models that the settings select, see `models_for`."""
        return models_for(self.settings, batch, run_id, self.keys, self.profile)

    @contextlib.contextmanager
    def exclusive(self, step: str, run_id: str = "") -> Iterator[None]:
        """Hold the writer lock for a step, which is a span of the trace; the log of who waits names it and the run.

        Raises:
            DiskFullError: the step could not write for lack of space.
        """
        with full_disk_in(step), self.working.writing(step, run_id), span(step):
            restart_peak()
            yield


def models_for(
    settings: Settings,
    batch: str | None = None,
    run_id: str | None = None,
    keys: Keys = NO_KEYS,
    profile: PromptProfile | None = None,
) -> IndexingModels:
    """Return the models that the settings select; `batch` and `run_id` are recorded in the ledger.

    Raises:
        SettingsError: a file in the folder of prompts is no prompt.
    """
    models = embedded_models(settings)
    if settings.calls_models:
        from graphrag_assets.assets.model_tasks import with_models  # imports the clients of models

        return with_models(models, settings, batch, run_id, keys, profile)
    return models


def existing_ledger(settings: Settings) -> "Ledger | None":
    """Return the ledger of these settings; None while nothing was paid for."""
    if not settings.ledger_url and not settings.ledger_file.exists():
        return None
    from graphrag_assets.llm.backend import ledger_of

    return ledger_of(settings)


def ledger_entries(settings: Settings) -> pl.DataFrame | None:
    """Return the ledger, one row per paid call; None if there is no ledger."""
    ledger = existing_ledger(settings)
    return ledger.frame() if ledger else None
