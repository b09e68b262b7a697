"""What assets work with: the working database, and the settings that come with it."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import dagster as dg
import duckdb
from dagster_duckdb import DuckDBResource
from pydantic import Field

from graphrag_assets.models.backend import Backend, backend_for
from graphrag_assets.settings import Settings
from graphrag_assets.store.input_folder import InputFolder
from graphrag_assets.store.working import WorkingDatabase

P = ParamSpec("P")
R = TypeVar("R")


class GraphIndex(DuckDBResource):
    """The working database as a `DuckDBResource`, made safe for many processes.

    The stock `get_connection` leaves the file locked after an exception and retries on lock errors until some
    writers starve. This one queues behind a file lock, opens for one transaction, and always closes.
    """

    database: str = Field(description="Path of the working database.")

    @classmethod
    def of_settings(cls) -> "GraphIndex":
        """The index of the settings as they are now."""
        return cls(database=str(Settings.load().index_folder / "working.duckdb"))

    @contextlib.contextmanager
    def get_connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection inside one transaction. Compute first: nobody else can open the database meanwhile."""
        with self.working.transaction() as connection:
            yield connection

    @property
    def working(self) -> WorkingDatabase:
        return WorkingDatabase(Path(self.database))

    @property
    def settings(self) -> Settings:
        return Settings.load()

    def backend(self, batch: str | None = None, run_id: str | None = None) -> Backend:
        """The models of the settings; batch and run are for the ledger's books."""
        return backend_for(self.settings, batch, run_id)

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
    return dg.Definitions(resources={"index": GraphIndex.of_settings()})
