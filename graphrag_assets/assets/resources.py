"""What steps of Dagster have in common: the index as a resource, its publication as others, and errors of steps."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import dagster as dg
from dagster_duckdb import DuckDBResource
from pydantic import Field, PrivateAttr

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_names import IndexNames
from graphrag_assets.errors import GraphRAGError, masked_errors
from graphrag_assets.store.index_files import STABLE_NAME

if TYPE_CHECKING:
    from graphrag_assets.query import GraphRAG

P = ParamSpec("P")
R = TypeVar("R")
_INDEX, _DATABASE = "index", "database"


def index_resources(names: IndexNames, open_now: Callable[[], Index]) -> dict[str, object]:
    """Return the resources of an index by name: the index with the settings of a run's environment, and its database.

    The index has no fields in the launchpad: the next run would undo a setting of one run, and pay for it again.
    The database is for other assets of the project: it opens the present publication, and cannot write it.
    """
    description = "The index, with the settings of the environment."
    index = dg.ResourceDefinition(lambda _: open_now(), config_schema={}, description=description)
    published = str(open_now().settings.index_folder / STABLE_NAME)
    database = DuckDBResource(database=published, connection_config={"access_mode": "READ_ONLY"})
    return {names.name(_INDEX): index, names.name(_DATABASE): database}


def needs(names: IndexNames) -> set[str]:
    """`required_resource_keys` of what calls `open_index`."""
    return {names.name(_INDEX)}


def open_index(names: IndexNames, resources: object) -> Index:
    """Return the index among a context's `resources`, with the settings in force now."""
    index: Index = getattr(resources, names.name(_INDEX))
    return index


def masked(compute: Callable[P, R]) -> Callable[P, R]:
    """`compute`, a step's function or generator function, that fails with the message of our errors alone.

    Secrets in errors are masked. Nothing is retried: each message names a remedy that a person applies.
    """
    guard: Any = _generating if inspect.isgeneratorfunction(compute) else _failures()
    return cast(Callable[P, R], guard(compute))


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    try:
        with masked_errors():
            yield
    except GraphRAGError as error:
        raise dg.Failure(str(error), allow_retries=False) from error  # the UI shows the description first


def _generating(compute: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(compute)
    def generate(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
        with _failures():
            yield from cast(Iterator[Any], compute(*args, **kwargs))

    return cast(Callable[P, R], generate)


class GraphRagResource(dg.ConfigurableResource):
    """The newest publication of an index, for assets that ask questions or read tables.

    >>> @dg.asset(deps=["publication"])
    ... def briefing(graphrag: GraphRagResource) -> dg.MaterializeResult:
    ...     answer = graphrag.rag.global_("What changed this week?")
    ...     return dg.MaterializeResult(metadata={"briefing": dg.MarkdownMetadataValue(answer.answer)})
    """

    index: str = Field(
        default="",
        description="Index folder, published .duckdb file, or URL of one; default: index/ in GRAPHRAG_DATA or data/.",
    )
    _rag: Any = PrivateAttr(default=None)

    @property
    def rag(self) -> "GraphRAG":
        """The query object, opened at its first use in a run.

        Raises:
            StoreError: nothing is published yet.
        """
        if self._rag is None:
            from graphrag_assets.query import GraphRAG

            self._rag = GraphRAG(self.index or None)
        rag: GraphRAG = self._rag
        return rag

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Close the index file at the end of the run."""
        if self._rag is not None:
            self._rag.close()
