"""`asset_of` makes the assets of a stage from its description. The stages are in the modules of their steps."""

import inspect
import time
from collections.abc import Iterator
from typing import Any

import dagster as dg

from graphrag_assets.assets.asset_checks import check_results, check_specs
from graphrag_assets.assets.index_names import ASSETS, IndexNames
from graphrag_assets.assets.reporting import stage_metadata
from graphrag_assets.assets.resources import masked, needs, open_index
from graphrag_assets.assets.stage import Run, Stage
from graphrag_assets.store import schema

_TABLES = {table.name: table for table in (*schema.BATCH_TABLES, schema.BATCH_STATE, *schema.GLOBAL_TABLES)}
_COSTS = {"graphrag/cost": "model-calls"}
"""The tag of assets that may cost money: the UI filters by it."""
_MADE_BY_MODELS = {"text_units", "entity_mentions", "relationship_mentions", "covariates", "entities", "relationships"}
_MADE_BY_MODELS |= {"community_reports", "embeddings"}
_DESCRIPTIONS = {
    "documents": "An unreadable file or row stops no other: the metadata list it, with its remedy.",
    "text_units": "Every citation leads to one, and by its span to characters of the document.",
    "entity_mentions": "They change only with the text, the prompt or the model. Most of a model's cost is here.",
    "relationship_mentions": "Extracted in the same step as entity_mentions.",
    "covariates": "Claims with subject, object and dates, extracted in the same step as the mentions.",
    "entities": "Several descriptions are summarized. The table entity_aliases has their other names.",
    "relationships": "The weight grows with the number and the strength of the mentions.",
    "communities": "They change only where the graph has changed. The table community_members has the members.",
    "community_reports": "A report is rewritten only when its inputs have changed. With a language model, each costs "
    "a call. The table citations has their references, each resolved and checked.",
    "embeddings": "A text is embedded again when it, or the model, has changed. The table entity_candidates has pairs "
    "of entities that may be one thing, see `graphrag-assets resolve`.",
    "batch_state": "Its step first indexes the batches that are due.",
    "publication": "graphrag.duckdb: a new compact file shaped for reading, numbered, and switched in atomically. Open "
    "it with any DuckDB tool; it never blocks indexing and is never blocked by it.\n\n"
    "While a blocking check fails, nothing is published. The check publication_is_up_to_date compares it with the "
    "input folder.",
}
"""Shown after the description of one row."""


def asset_of(names: IndexNames, stage: Stage, config_type: type[dg.Config] = dg.Config) -> dg.AssetsDefinition:
    """Return the assets of a stage and their checks, made by one step.

    It writes all tables of the stage, reports the selected assets, and runs the selected checks.
    """

    @dg.multi_asset(
        name=names.name(stage.name),
        specs=[asset_spec(names, asset, stage.group, deps, stage.version) for asset, deps in stage.assets.items()],
        check_specs=check_specs(names, stage.assets),
        description=inspect.getdoc(stage.code),
        can_subset=True,
        pool=names.pool,
        required_resource_keys=needs(names),
    )
    @masked
    def step(
        context: dg.AssetExecutionContext,
        config: config_type,  # type: ignore[valid-type]  # each stage has its own
    ) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
        index = open_index(names, context.resources)
        if assets := selected(context):
            started = time.monotonic()
            result = stage.compute(Run(index, context.run.run_id, config, context, names))
            metadata = stage_metadata(stage, result, time.monotonic() - started)
            versions = index.working.content_versions(assets)
            for name, key in assets.items():
                yield dg.MaterializeResult(key, metadata=metadata[name], data_version=dg.DataVersion(versions[name]))
        yield from check_results(names, {key.name for key in context.selected_asset_check_keys}, index)

    return step


def selected(context: dg.AssetExecutionContext) -> dict[str, dg.AssetKey]:
    """Keys of the assets selected for this step, by name, in the order in which data flows."""
    keys = {key.path[-1]: key for key in context.selected_asset_keys}
    return {name: keys[name] for name in ASSETS if name in keys}


def asset_spec(names: IndexNames, name: str, group: str, deps: tuple[str, ...], version: str) -> dg.AssetSpec:
    """Return the spec of an asset; that of a table has its comment and columns."""
    metadata, description = dict[str, Any](), _DESCRIPTIONS[name]
    if table := _TABLES.get(name):
        columns = [dg.TableColumn(c.name, c.type, description=c.comment) for c in table.columns]
        metadata = {"dagster/column_schema": dg.TableSchema(columns), "dagster/table_name": name}
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
