"""`GraphRagComponent`: an index as a component of a Dagster project, one YAML file for each; `GraphRagResource`: its
publication, for assets of the project."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

import dagster as dg
from pydantic import Field, PrivateAttr

from graphrag_assets.assets.index_definitions import index_definitions
from graphrag_assets.assets.index_names import IndexNames
from graphrag_assets.contracts.indexing_models import Keys
from graphrag_assets.errors import SettingsError
from graphrag_assets.settings import Settings

if TYPE_CHECKING:
    from graphrag_assets.query import GraphRAG

_OF_THE_FILE_ALONE = (
    *("chat_model", "chat_base_url", "extraction_model", "method", "claims", "model_parameters"),
    *("embedding_model", "embedding_base_url", "chunking", "chunk_size"),
)
"""Settings for which the environment does not count, which may be that of another index."""
_FIELDS = {"data", "input", "automation"}
"""Settings that are fields of the component."""


class Documents(dg.Model, dg.Resolvable):
    """Documents that an asset makes: rows of a table, or files in a folder."""

    asset: str | list[str] | None = Field(default=None, description="Key of the asset, for its lineage: raw/tickets.")
    folder: str = Field(default="", description="Folder or URL that the asset writes files to.")
    database: str = Field(default="", description="DuckDB file; unset: Parquet.")
    table: str = Field(default="", description="Table or view, such as raw.tickets, or Parquet files: out/*.parquet.")
    columns: Mapping[Literal["id", "text", "title", "date"], str] = Field(
        default_factory=dict, description="Columns with these meanings; unset: those called so. Others are metadata."
    )
    partition_by: str | int = Field(default=16, description="Column whose values are batches, or number of batches.")

    def location(self, root: Path) -> str:
        """Return the setting `input`.

        Raises:
            SettingsError: there is neither a folder nor a table, or the database is no file.
        """
        if "://" in self.database:
            raise SettingsError("input: database must be a DuckDB file. Load rows of a server into it with an asset.")
        if not self.table:
            if not self.folder:
                raise SettingsError("input: give the folder or the table with the documents.")
            return _location(root, self.folder)
        table = self.table if self.database else str(root / self.table)
        query = urlencode({"table": table, "partition_by": self.partition_by})
        return f"duckdb:///{root / self.database if self.database else ''}?{query}"

    @property
    def settings(self) -> dict[str, str]:
        """The settings that name columns."""
        return {f"{meaning}_column": column for meaning, column in self.columns.items()}


def _location(root: Path, name: str) -> str:
    return name if not name or "://" in name else str(root / name)


class _Scaffolder(dg.Scaffolder):
    """Writes a defs.yaml that works as it is."""

    def scaffold(self, request: dg.ScaffoldRequest) -> None:
        dg.scaffold_component(request, {"data": f"data/{request.target_path.name}"})


@dg.scaffold_with(_Scaffolder)
class GraphRagComponent(dg.Component, dg.Model, dg.Resolvable):
    """A GraphRAG index of a folder of documents: every table an asset in DuckDB, searched by graphrag_assets.query.

    A project may have several. Each has a data folder, asset keys, jobs, sensors and partitions of its own.
    """

    data: str = Field(description="Folder of the index, relative to the project. Each index needs one of its own.")
    input: str | Documents = Field(
        default="",
        description="Input folder or URL (s3://…); default: input/ in the data folder. Or the documents of an asset.",
    )
    settings: Mapping[str, Any] = Field(
        default_factory=dict,
        description="Settings by name, as in docs/models.md without GRAPHRAG_: chat_model: openai/gpt-4.1-mini.",
    )
    chat_api_key: str | None = Field(
        default=None,
        description='A variable of the environment: "{{ env.OPENAI_API_KEY }}"; unset: GRAPHRAG_CHAT_API_KEY.',
    )
    embedding_api_key: str | None = Field(
        default=None,
        description="A variable of the environment, as for chat_api_key; unset: GRAPHRAG_EMBEDDING_API_KEY.",
    )
    key_prefix: str | list[str] | None = Field(
        default=None,
        description="Begins all asset keys, jobs and sensors; default: the name of the component's folder.",
    )
    automation: bool = Field(
        default=False, description="true: the sensors run from the start; false: once switched on in the UI."
    )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the index.

        Raises:
            SettingsError: a value does not fit.
        """
        prefix = self._prefix(context.path)
        names = IndexNames(prefix)
        keys = Keys(self.chat_api_key, self.embedding_api_key)
        asset = self.input.asset if isinstance(self.input, Documents) else None
        upstream = dg.AssetKey(asset.split("/") if isinstance(asset, str) else asset) if asset else None
        return index_definitions(names, self._overrides(context.project_root), keys, upstream)

    def _prefix(self, path: Path) -> tuple[str, ...]:
        if self.key_prefix is None:
            folder = path if path.is_dir() else path.parent
            return (re.sub(r"\W", "_", folder.name, flags=re.ASCII),)
        prefix = (self.key_prefix,) if isinstance(self.key_prefix, str) else tuple(self.key_prefix)
        for part in prefix:
            if not re.fullmatch(r"\w+", part, flags=re.ASCII):
                raise SettingsError(f"key_prefix: {part!r} may have letters, digits and underscores only.")
        return prefix

    def _overrides(self, root: Path) -> dict[str, Any]:
        """Return the settings of the index: what is given here, and the environment's for the others."""
        for name in self.settings:
            if name not in Settings.model_fields:
                raise SettingsError(f"settings: unknown setting {name!r}. See docs/models.md for the names.")
            if name in _FIELDS:
                raise SettingsError(f"settings: {name!r} is a field of the component.")
        documents = self.input
        if isinstance(documents, Documents):
            of_input = {"input": documents.location(root), **documents.settings}
        else:
            of_input = {"input": _location(root, documents)}
        return {
            "data": root / self.data,
            **of_input,
            **{name: Settings.model_fields[name].get_default() for name in _OF_THE_FILE_ALONE},
            "automation": "on" if self.automation else "off",
            **self.settings,
        }


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
