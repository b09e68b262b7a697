"""The partitioned assets: what one batch contributes, from its files to its mentions and claims.

They are one step that commits once, so that a batch is in the database either as it was or as it is.
"""

import time
from collections.abc import Iterator

import dagster as dg
import polars as pl

from graphrag_assets.defs.options import BatchOptions, cache_not_before
from graphrag_assets.defs.partitions import document_batches
from graphrag_assets.defs.reporting import (
    Metadata,
    asset_spec,
    errors_metadata,
    selected,
    table_metadata,
    usage_metadata,
)
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.embedded.caseless import without_names
from graphrag_assets.indexing.index_batch import IndexedBatch
from graphrag_assets.indexing.index_batch import index_batch as index_one_batch
from graphrag_assets.pipeline.unit_contexts import STAGE
from graphrag_assets.store import schema

source_files = dg.AssetSpec(
    "source_files",
    group_name="corpus",
    description="The input folder. Each entry directly under it, a folder or a file, is a batch.",
    kinds={"file"},
    partitions_def=document_batches,
)

_DEPENDENCIES = {
    "documents": ["source_files"],
    "text_units": ["documents"],
    "entity_mentions": ["text_units"],
    "relationship_mentions": ["text_units"],
    "covariates": ["text_units"],
}


@dg.multi_asset(
    name="index_batch",
    specs=[asset_spec(table, "corpus", _DEPENDENCIES[table.name]) for table in schema.BATCH_TABLES],
    partitions_def=document_batches,
    can_subset=True,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=20),
)
def index_batch(
    context: dg.AssetExecutionContext, config: BatchOptions, index: GraphIndex
) -> Iterator[dg.MaterializeResult]:
    """Read, chunk and extract each batch of the run; commit it; report it."""
    asked_for = selected(context)
    extract = bool(asked_for - {"documents", "text_units"})
    for batch in context.partition_keys:
        started = time.monotonic()
        own = config.apply_to(index.open(), batch)
        models = own.models(batch, context.run.run_id, cache_not_before(context.instance, context.run, config))
        indexed = index_one_batch(own, batch, models, context.run.run_id, extract, config.rerun)
        seconds = time.monotonic() - started
        context.log.info(
            "batch %s: %d documents, %d text units, %d skipped, %.1f s",
            batch,
            indexed.frames["documents"].height,
            indexed.frames["text_units"].height,
            indexed.errors.height,
            seconds,
        )
        for name, metadata in batch_metadata(batch, indexed, seconds).items():
            if name in asked_for:
                context.add_asset_metadata(metadata, asset_key=name, partition_key=batch)
    for table in schema.BATCH_TABLES:
        if table.name in asked_for:
            yield dg.MaterializeResult(asset_key=table.name)


def batch_metadata(batch: str, indexed: IndexedBatch, seconds: float) -> Metadata:
    """Metadata of the tables that were written for a batch."""
    failed, without_context = pl.col("stage") == "extract", pl.col("stage") == STAGE
    done = indexed.frames["text_units"].filter(pl.col("extractor") == EXTRACTOR)["document_id"]
    documents = indexed.frames["documents"]
    note = without_names(documents.filter(pl.col("id").is_in(done.implode()))["language"])
    more = {
        "documents": errors_metadata("skipped", indexed.errors.filter(~failed & ~without_context), batch),
        "text_units": errors_metadata("failed_contexts", indexed.errors.filter(without_context), batch),
        "entity_mentions": {
            **errors_metadata("failed_text_units", indexed.errors.filter(failed), batch),
            **usage_metadata(indexed.usage),
            **({"without_names": note} if note else {}),
        },
    }
    return {
        name: table_metadata(name, indexed.changes[name], seconds, frame, **more.get(name, {}))
        for name, frame in indexed.frames.items()
    }
