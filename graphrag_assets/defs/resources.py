"""The resource of all assets: an index."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
from dagster_duckdb import DuckDBResource
from pydantic import Field

from graphrag_assets.errors import SettingsError
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing_models import Keys
from graphrag_assets.settings import Settings, variable

FROM_ENVIRONMENT = (
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
    text = (
        f"Set the variable {_variable_of(field)}. A value typed here is refused: it would be stored with the run, and "
        "the next run would undo it."
    )
    return Field(default=None, description=text, repr=shown)


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

    @classmethod
    def of_settings(cls) -> "GraphIndex":
        """The index of the settings as they are now."""
        return cls(database=str(Settings.load().index_folder / "working.duckdb"))

    @classmethod
    def with_sources_shown(cls) -> "GraphIndex":
        """The same for the UI: what is set in the environment shows as its variable, and is looked up in each run."""
        variables = {field: _variable_of(field) for field in FROM_ENVIRONMENT}
        shown: dict[str, Any] = {field: dg.EnvVar(name) for field, name in variables.items() if os.environ.get(name)}
        return cls(database=cls.of_settings().database, **shown)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Raises SettingsError for models, servers and keys typed into a run's config: only the environment's count."""
        given = {field: value for field in FROM_ENVIRONMENT if (value := getattr(self, field)) is not None}
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
        with self.open().working.transaction() as connection:
            yield connection

    def open(self) -> Index:
        """The index with the settings in force now."""
        names = ("chat_model", "chat_base_url", "embedding_model", "embedding_base_url")
        overrides = {name: value for name in names if (value := getattr(self, name)) is not None}
        keys = Keys(self.chat_api_key, self.embedding_api_key)
        return Index(Path(self.database), overrides, keys=keys)
