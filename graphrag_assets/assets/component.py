"""`GraphRagComponent`: an index as a component of a Dagster project, one YAML file for each."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import dagster as dg
from pydantic import Field

from graphrag_assets.assets.index_definitions import index_definitions
from graphrag_assets.assets.index_names import IndexNames
from graphrag_assets.contracts.indexing_models import Keys
from graphrag_assets.errors import SettingsError
from graphrag_assets.settings import Settings


class Models(dg.Model, dg.Resolvable):
    """The models of an index; empty: the embedded default."""

    chat_model: str = Field(default="", description="Chat model as litellm names it; unset: the embedded default.")
    chat_base_url: str = Field(default="", description="OpenAI-compatible server of the chat model.")
    chat_api_key: str | None = Field(
        default=None,
        description='A variable of the environment: "{{ env.OPENAI_API_KEY }}"; unset: GRAPHRAG_CHAT_API_KEY.',
    )
    method: Literal["", "standard", "fast", "embedded"] = Field(
        default="", description="What performs the tasks; unset: standard with a chat model, embedded without."
    )
    claims: Literal["", "model", "embedded", "off"] = Field(default="", description="off: none; unset: by method.")
    extraction_model: str = Field(default="", description="Chat model of indexing; unset: chat_model.")
    embedding_model: str = Field(default="", description="Embedding model; unset: no vectors.")
    model_parameters: Mapping[str, Any] = Field(
        default_factory=dict,
        description="Parameters of models, by litellm's names: temperature, seed, … of chat models; under extraction "
        "those of indexing, where null removes one; under embedding those of the embedding model: dimensions, …",
    )
    embedding_base_url: str = Field(default="", description="OpenAI-compatible server of the embedding model.")
    embedding_api_key: str | None = Field(
        default=None,
        description="A variable of the environment, as for chat_api_key; unset: GRAPHRAG_EMBEDDING_API_KEY.",
    )


_MODELS = [name for name in Models.model_fields if not name.endswith("_api_key")]
"""Fields of `Models` that are settings of the same name."""
_FIELDS_OF_SETTINGS = {
    **{name: name for name in ("data", "input", "automation")},
    **dict.fromkeys(_MODELS, "models"),
    **dict.fromkeys(("chunking", "chunk_size", "text_unit_context"), "chunking"),
}


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
        """The setting `input`.

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


class Chunking(dg.Model, dg.Resolvable):
    """How documents are split into text units."""

    method: Literal["anchored", "tokens", "sentences"] = "anchored"
    size: int | None = Field(
        default=None,
        description="Maximum tokens per text unit, from 50; unset: as GRAPHRAG_CHUNK_SIZE in docs/settings.md.",
    )
    context: Literal["headings", "none", "model"] = Field(
        default="headings", description="Context that is searched and shown with a text unit."
    )


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
    models: Models = Field(default=Models(), description="Chat and embedding model.")
    chunking: Chunking = Field(default=Chunking(), description="How documents are split.")
    settings: Mapping[str, Any] = Field(
        default_factory=dict, description="Other settings by name, as in docs/settings.md without GRAPHRAG_."
    )
    key_prefix: str | list[str] | None = Field(
        default=None,
        description="Begins all asset keys, jobs and sensors; default: the name of the component's folder.",
    )
    group: str | None = Field(default=None, description="Group of all assets; default: the key prefix.")
    owners: list[str] = Field(default=[], description="Owners of all assets: e-mail addresses, or team:name.")
    tags: Mapping[str, str] = Field(default_factory=dict, description="Tags of all assets.")
    automation: bool = Field(
        default=False, description="true: the sensors run from the start; false: once switched on in the UI."
    )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The definitions of the index.

        Raises:
            SettingsError: a value does not fit.
        """
        prefix = self._prefix(context.path)
        names = IndexNames(prefix, self.group or "_".join(prefix))
        keys = Keys(self.models.chat_api_key, self.models.embedding_api_key)
        asset = self.input.asset if isinstance(self.input, Documents) else None
        upstream = dg.AssetKey(asset.split("/") if isinstance(asset, str) else asset) if asset else None
        definitions = index_definitions(names, self._overrides(context.project_root), keys, upstream)
        if not self.owners and not self.tags:
            return definitions
        return definitions.map_resolved_asset_specs(
            func=lambda spec: spec.merge_attributes(owners=self.owners, tags=dict(self.tags))
        )

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
        """The settings of the index: what is given here, and the environment's for the others."""
        for name in self.settings:
            if name not in Settings.model_fields:
                raise SettingsError(f"settings: unknown setting {name!r}. See docs/settings.md for the names.")
            if name in _FIELDS_OF_SETTINGS:
                raise SettingsError(f"settings: {name!r} is set by {_FIELDS_OF_SETTINGS[name]} of the component.")
        models, chunking, documents = self.models, self.chunking, self.input
        if isinstance(documents, Documents):
            given = {"input": documents.location(root), **documents.settings}
        else:
            given = {"input": _location(root, documents)}
        return {
            "data": root / self.data,
            **given,
            **{name: getattr(models, name) for name in _MODELS},
            "chunking": chunking.method,
            "chunk_size": chunking.size,
            "text_unit_context": chunking.context,
            "automation": "on" if self.automation else "off",
            **self.settings,
        }
