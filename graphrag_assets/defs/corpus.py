"""The partitioned assets: what one batch contributes, from its files to its mentions and claims.

They are one step that commits once, so that a batch is in the database either as it was or as it is.
"""

import time
from collections.abc import Iterator

import dagster as dg
import polars as pl

from graphrag_assets.defs.index_names import BATCH_ASSETS, SOURCE_FILES, IndexNames
from graphrag_assets.defs.masked import masked
from graphrag_assets.defs.options import BatchOptions, cache_not_before
from graphrag_assets.defs.reporting import (
    Metadata,
    asset_spec,
    errors_metadata,
    selected,
    selected_results,
    table_metadata,
    usage_metadata,
)
from graphrag_assets.defs.resources import MODELS, needs, open_index
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.embedded.caseless import without_names
from graphrag_assets.indexing import index_batch as stage
from graphrag_assets.pipeline.unit_contexts import STAGE
from graphrag_assets.records import LOSS_STAGES, UNLISTED_TYPES
from graphrag_assets.store import schema

_DEPENDENCIES = {
    "documents": [SOURCE_FILES],
    "text_units": ["documents"],
    "entity_mentions": ["text_units"],
    "relationship_mentions": ["text_units"],
    "covariates": ["text_units"],
}


def source_files(names: IndexNames) -> dg.AssetSpec:
    """The input folder as an asset that something else makes."""
    return dg.AssetSpec(
        names.key(SOURCE_FILES),
        group_name=names.group_name("corpus"),
        description="The input folder. Each entry directly under it, a folder or a file, is a batch.",
        kinds={"file"},
        partitions_def=names.batches,
    )


def index_batch(names: IndexNames) -> dg.AssetsDefinition:
    """The assets of `schema.BATCH_TABLES`."""

    @dg.multi_asset(
        name=names.name("index_batch"),
        specs=[
            asset_spec(names, table, "corpus", _DEPENDENCIES[table.name], stage.CODE_VERSION)
            for table in schema.BATCH_TABLES
        ],
        partitions_def=names.batches,
        can_subset=True,
        backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=20),
        required_resource_keys=needs(names, MODELS),
    )
    @masked
    def index_batch(context: dg.AssetExecutionContext, config: BatchOptions) -> Iterator[dg.MaterializeResult]:
        """Read, chunk and extract each batch of the run; commit it; report it."""
        index, asked_for = open_index(names, context.resources), selected(context)
        extract = bool(asked_for.keys() - {"documents", "text_units"})
        for batch in context.partition_keys:
            started = time.monotonic()
            own = config.apply_to(index, batch)
            models = own.models(batch, context.run.run_id, cache_not_before(context.instance, context.run, config))
            indexed = stage.index_batch(own, batch, models, context.run.run_id, extract, config.rerun)
            seconds = time.monotonic() - started
            context.log.info(
                "batch %s: %d documents, %d text units, %d skipped, %.1f s",
                batch,
                indexed.frames["documents"].height,
                indexed.frames["text_units"].height,
                indexed.errors.height,
                seconds,
            )
            for name, metadata in batch_metadata(names, batch, indexed, seconds).items():
                if name in asked_for:
                    context.add_asset_metadata(metadata, asset_key=asked_for[name], partition_key=batch)
        if context.has_partition_key:
            yield from selected_results(context, index, dict.fromkeys(BATCH_ASSETS), context.partition_key)
        else:  # Dagster has one data version for all partitions of a range, so it computes that of their inputs
            yield from (dg.MaterializeResult(asked_for[name]) for name in BATCH_ASSETS if name in asked_for)

    return index_batch


def batch_metadata(names: IndexNames, batch: str, indexed: stage.IndexedBatch, seconds: float) -> Metadata:
    """Metadata of the tables that were written for a batch."""
    failed, without_context, undated = (pl.col("stage") == stage for stage in ("extract", STAGE, "date"))
    skipped = ~(failed | without_context | undated | pl.col("stage").is_in(LOSS_STAGES))
    done = indexed.frames["text_units"].filter(pl.col("extractor").str.starts_with(EXTRACTOR))["document_id"]
    documents = indexed.frames["documents"]
    note = without_names(documents.filter(pl.col("id").is_in(done.implode()))["language"])
    more = {
        "documents": {
            **errors_metadata(names, "skipped", indexed.errors.filter(skipped), batch),
            **errors_metadata(names, "unreadable_dates", indexed.errors.filter(undated), batch),
        },
        "text_units": errors_metadata(names, "failed_contexts", indexed.errors.filter(without_context), batch),
        "entity_mentions": {
            **errors_metadata(names, "failed_text_units", indexed.errors.filter(failed), batch),
            **errors_metadata(names, UNLISTED_TYPES, indexed.errors.filter(stage=UNLISTED_TYPES), batch),
            **usage_metadata(indexed.usage),
            **({"without_names": note} if note else {}),
        },
    }
    return {
        name: table_metadata(names, name, indexed.changes[name], seconds, frame, **more.get(name, {}))
        for name, frame in indexed.frames.items()
    }
