"""`asset_of` makes the assets of a stage from its description. The stages are in the modules of their steps."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_names import ASSETS, IndexNames
from graphrag_assets.assets.lineage import DESCRIPTIONS
from graphrag_assets.assets.masked import masked
from graphrag_assets.assets.options import RerunOptions, cache_not_before
from graphrag_assets.assets.reporting import Metadata
from graphrag_assets.assets.resources import MODELS, begin_step, needs
from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.store import schema

_TABLES = {table.name: table for table in (*schema.BATCH_TABLES, schema.BATCH_STATE, *schema.GLOBAL_TABLES)}
_COSTS = {"graphrag/cost": "model-calls"}
"""The tag of assets that may cost money: the UI filters by it."""
_MADE_BY_MODELS = {"text_units", "entity_mentions", "relationship_mentions", "covariates", "entities", "relationships"}
_MADE_BY_MODELS |= {"community_reports", "embeddings"}


class NoOptions(dg.Config):
    """A stage without options."""


@dataclass(frozen=True)
class Step:
    """What a stage is computed with."""

    names: IndexNames
    context: dg.AssetExecutionContext
    index: Index
    options: Any

    @property
    def run_id(self) -> str:
        return self.context.run.run_id

    def models(self, index: Index) -> IndexingModels:
        """The models of this run; with `bypass_cache` they ignore answers from before it."""
        bypassing = isinstance(self.options, RerunOptions)
        before = cache_not_before(self.context.instance, self.context.run, self.options) if bypassing else None
        return index.models(run_id=self.run_id, cache_not_before=before)


@dataclass(frozen=True)
class Stage:
    """A step over the whole index.

    Attributes:
        name: of the step.
        group: of its assets.
        assets: the assets that it makes, each with those it is made from.
        version: of the code.
        compute: writes the tables of the stage; returns the metadata of each asset. Its docstring describes the step.
        options: what a run may say about it.
        data_version: the version of its only asset, where that is not the version of a table's rows.
    """

    name: str
    group: str
    assets: Mapping[str, tuple[str, ...]]
    version: str
    compute: Callable[[Step], Metadata]
    options: type[dg.Config] = NoOptions
    data_version: Callable[[Index], str] | None = None


def asset_of(names: IndexNames, stage: Stage) -> dg.AssetsDefinition:
    """The assets of a stage, made by one step. It writes all tables of the stage, and reports the selected assets."""

    @dg.multi_asset(
        name=names.name(stage.name),
        specs=[
            asset_spec(names, asset, stage.group, deps, stage.version, stage.compute)
            for asset, deps in stage.assets.items()
        ],
        description=inspect.getdoc(stage.compute),
        can_subset=len(stage.assets) > 1,
        pool=names.pool,
        required_resource_keys=needs(names, MODELS),
    )
    @masked
    def step(
        context: dg.AssetExecutionContext,
        config: stage.options,  # type: ignore[name-defined]  # each stage has its own
    ) -> Iterator[dg.MaterializeResult]:
        index = begin_step(names, context)
        metadata = stage.compute(Step(names, context, index, config))
        asked_for = selected(context)
        if stage.data_version:
            versions = dict.fromkeys(asked_for, stage.data_version(index))
        else:
            versions = index.working.content_versions(asked_for)
        for name, key in asked_for.items():
            yield dg.MaterializeResult(key, metadata=metadata[name], data_version=dg.DataVersion(versions[name]))

    return step


def selected(context: dg.AssetExecutionContext) -> dict[str, dg.AssetKey]:
    """Keys of the assets selected for this step, by name, in the order in which data flows."""
    keys = {key.path[-1]: key for key in context.selected_asset_keys}
    return {name: keys[name] for name in ASSETS if name in keys}


def asset_spec(
    names: IndexNames, name: str, group: str, deps: tuple[str, ...], version: str, code: Callable[..., Any]
) -> dg.AssetSpec:
    """The spec of an asset; that of a table has its comment and columns, and a link to the code that makes it."""
    code = inspect.unwrap(code)
    source = dg.LocalFileCodeReference(
        file_path=str(inspect.getsourcefile(code)), line_number=inspect.getsourcelines(code)[1]
    )
    metadata: dict[str, Any] = {"dagster/code_references": dg.CodeReferencesMetadataValue(code_references=[source])}
    description = DESCRIPTIONS[name]
    if table := _TABLES.get(name):
        columns = [dg.TableColumn(c.name, c.type, description=c.comment) for c in table.columns]
        metadata |= {"dagster/column_schema": dg.TableSchema(columns), "dagster/table_name": name}
        description = f"{table.comment}\n\n{description}"
    return dg.AssetSpec(
        names.key(name),
        deps=names.keys(deps),
        group_name=names.group_name(group),
        code_version=version,
        description=description,
        tags=_COSTS if name in _MADE_BY_MODELS else {},
        kinds={"duckdb"},
        skippable=True,
        metadata=metadata,
    )
