"""An index as its stages see it: the working database, the settings in force, and the models they select."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from graphrag_assets.assets.models import models_for
from graphrag_assets.contracts.indexing_models import NO_KEYS, IndexingModels, Keys
from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.errors import full_disk_in
from graphrag_assets.runtime.peak_memory import restart_peak
from graphrag_assets.runtime.tracing import span
from graphrag_assets.settings import Settings
from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.input_files import Input, InputFolder
from graphrag_assets.store.input_table import SCHEME, InputTable
from graphrag_assets.store.prompt_profiles import profile_in_force

P = ParamSpec("P")
R = TypeVar("R")
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
        """The index in the data folder of the settings, which are read from the environment now.

        Raises:
            SettingsError: a value does not fit.
        """
        given = overrides or {}
        return cls(Settings.load(**given).index_folder / "working.duckdb", given, keys)

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
        """The models that the settings select, see `models_for`."""
        return models_for(self.settings, batch, run_id, self.keys, self.profile)


def exclusive(stage: str) -> Callable[[Callable[Concatenate[Index, P], R]], Callable[Concatenate[Index, P], R]]:
    """A function of an `Index` that holds the writer lock; the log of who waits for it names the stage and `run_id`.

    It is a span of the trace. Of a full disk it raises a DiskFullError that names the stage.
    """

    def decorate(work: Callable[Concatenate[Index, P], R]) -> Callable[Concatenate[Index, P], R]:
        signature = inspect.signature(work)

        @functools.wraps(work)
        def locked(index: Index, *args: P.args, **kwargs: P.kwargs) -> R:
            run_id = signature.bind(index, *args, **kwargs).arguments.get("run_id", "")
            with full_disk_in(stage), index.working.writing(stage, run_id), span(stage):
                restart_peak()
                return work(index, *args, **kwargs)

        return locked

    return decorate
