"""What assets work with: the working database, and the settings that come with it."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import dagster as dg
import duckdb
from dagster_duckdb import DuckDBResource
from pydantic import Field, PrivateAttr

from graphrag_assets.defs.options import RunOptions
from graphrag_assets.errors import SettingsError
from graphrag_assets.indexing.models import models_for
from graphrag_assets.indexing_models import IndexingModels, Keys
from graphrag_assets.settings import Settings, variable
from graphrag_assets.store.batches import stored_options
from graphrag_assets.store.input_folder import InputFolder
from graphrag_assets.store.working import WorkingDatabase

P = ParamSpec("P")
R = TypeVar("R")


_FROM_ENVIRONMENT = (
    "chat_model",
    "chat_base_url",
    "chat_api_key",
    "embedding_model",
    "embedding_base_url",
    "embedding_api_key",
)


def _variable_of(field: str) -> str:
    return f"GRAPHRAG_{field.upper()}"


def _as_set(field: str, shown: bool = True) -> Any:
    """A field that only its variable sets."""
    text = f"Set the variable {_variable_of(field)}. A value typed here is stored with the run and refused, for the "
    return Field(default=None, description=f"{text}next run would undo it.", repr=shown)


class GraphIndex(DuckDBResource):
    """The working database as a `DuckDBResource`, made safe for many processes.

    The stock `get_connection` leaves the file locked after an exception and retries on lock errors until some
    writers starve. This one queues behind a file lock, opens for one transaction, and always closes.
    """

    database: str = Field(description="Path of the working database: index/working.duckdb in GRAPHRAG_DATA.")
    chat_model: str | None = _as_set("chat_model")
    chat_base_url: str | None = _as_set("chat_base_url")
    chat_api_key: str | None = _as_set("chat_api_key", shown=False)
    embedding_model: str | None = _as_set("embedding_model")
    embedding_base_url: str | None = _as_set("embedding_base_url")
    embedding_api_key: str | None = _as_set("embedding_api_key", shown=False)
    _options: dict[str, Any] = PrivateAttr(default_factory=dict)
    _settings: Settings | None = PrivateAttr(None)

    @classmethod
    def of_settings(cls) -> "GraphIndex":
        """The index of the settings as they are now."""
        return cls(database=str(Settings.load().index_folder / "working.duckdb"))

    @classmethod
    def with_sources_shown(cls) -> "GraphIndex":
        """The same for the UI: what is set in the environment shows as its variable, and is looked up in each run."""
        variables = {field: _variable_of(field) for field in _FROM_ENVIRONMENT}
        shown: dict[str, Any] = {field: dg.EnvVar(name) for field, name in variables.items() if os.environ.get(name)}
        return cls(database=cls.of_settings().database, **shown)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Raises SettingsError for models, servers and keys typed into a run's config: only the environment's count."""
        given = {field: value for field in _FROM_ENVIRONMENT if (value := getattr(self, field)) is not None}
        typed = [field for field, value in given.items() if value != variable(_variable_of(field))]
        if typed:
            variables = ", ".join(map(_variable_of, typed))
            raise SettingsError(
                f"Given in the run's config under resources: {', '.join(typed)}. That is stored with the run, and the "
                f"next run would undo it. Set {variables} in the environment or in .env instead. A key that was typed "
                "is in Dagster's storage now: revoke it. Nothing was done."
            )

    @contextlib.contextmanager
    def get_connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection inside one transaction. Compute first: nobody else can open the database meanwhile."""
        with self.working.transaction() as connection:
            yield connection

    @property
    def working(self) -> WorkingDatabase:
        return WorkingDatabase(Path(self.database))

    @property
    def options(self) -> Mapping[str, Any]:
        """The settings that go before those of the environment."""
        return self._options

    @property
    def settings(self) -> Settings:
        """The settings: as the environment has them now, or, of an index with options, as it had them then."""
        if self._settings is not None:
            return self._settings
        models = ("chat_model", "chat_base_url", "embedding_model", "embedding_base_url")
        own = {name: value for name in models if (value := getattr(self, name)) is not None}
        return Settings.load(**own, **self._options)

    def with_options(self, options: Mapping[str, Any]) -> "GraphIndex":
        """This index with `options` before the environment's settings."""
        index = self.model_copy()
        index._options, index._settings = dict(options), None
        index._settings = index.settings
        return index

    def at(self, path: Path) -> "GraphIndex":
        """The same with a copy of the working database."""
        return self.model_copy(update={"database": str(path)})

    def of(self, batch: str | None, given: RunOptions | None = None) -> "GraphIndex":
        """This index with the settings that count for a batch, or, for None, for communities and reports.

        These are, each before the next: what this run is `given`, what earlier runs were given, the environment's.
        """
        kept = stored_options(self.working).get(batch, {})
        if given and given.forget_earlier:  # those of this step; another step's stay
            kept = {name: value for name, value in kept.items() if name not in given.settings_of}
        return self.with_options({**kept, **(given.given if given else {})})

    def backend(
        self, batch: str | None = None, run_id: str | None = None, cache_not_before: str | None = None
    ) -> IndexingModels:
        """The models of the settings, see `models_for`."""
        keys = Keys(self.chat_api_key, self.embedding_api_key)
        return models_for(self.settings, batch, run_id, keys, cache_not_before)

    @property
    def input_folder(self) -> InputFolder:
        return InputFolder(self.settings.input_folder)


def alone(stage: str) -> Callable[[Callable[Concatenate[GraphIndex, P], R]], Callable[Concatenate[GraphIndex, P], R]]:
    """A function of a `GraphIndex` that never runs twice at once for one index: see `WorkingDatabase.alone`."""

    def decorate(work: Callable[Concatenate[GraphIndex, P], R]) -> Callable[Concatenate[GraphIndex, P], R]:
        @functools.wraps(work)
        def locked(index: GraphIndex, *args: P.args, **kwargs: P.kwargs) -> R:
            with index.working.alone(stage):
                return work(index, *args, **kwargs)

        return locked

    return decorate


@dg.definitions
def resources() -> dg.Definitions:
    return dg.Definitions(resources={"index": GraphIndex.with_sources_shown()})
