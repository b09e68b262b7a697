"""Jobs to launch by hand: register batches, index batches, refresh the graph, run the checks."""

import dagster as dg

from graphrag_assets.defs.partitions import document_batches
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.indexing.index_batch import batch_digest
from graphrag_assets.indexing.scan import claim_input_folder, record_unusable_names, scan
from graphrag_assets.store import schema

BATCH_ASSETS = [table.name for table in schema.BATCH_TABLES]
GLOBAL_ASSETS = [*(table.name for table in schema.GLOBAL_TABLES), "published_index"]


@dg.op(description="Register every entry of the input folder as a partition, and say which differ from the index.")
def register_batches(context: dg.OpExecutionContext, index: GraphIndex) -> None:
    own = index.open()
    claim_input_folder(own)
    found = scan(own)
    record_unusable_names(own)
    context.instance.add_dynamic_partitions(str(document_batches.name), found.known)
    for batch in found.due:
        tags = {"dagster/data_version": batch_digest(own.with_run_options(batch), batch)}
        context.log_event(dg.AssetMaterialization("source_files", partition=batch, tags=tags))
    context.log.info(
        "%d batches to index (%s), %d unchanged, %d deleted from the folder (%s): materialize the deleted ones too to "
        "remove their rows",
        len(found.changed),
        ", ".join(found.changed) or "-",
        len(found.unchanged),
        len(found.deleted),
        ", ".join(found.deleted) or "-",
    )


@dg.job(description="Register the batches of the input folder as partitions of document_batches.")
def scan_input() -> None:
    register_batches()


index_batch_job = dg.define_asset_job(
    "index_batches",
    selection=dg.AssetSelection.assets(*BATCH_ASSETS).without_checks(),
    description="Index one batch, or a backfill of many: documents, text units, mentions and claims.",
)

refresh_graph_job = dg.define_asset_job(
    "refresh_graph",
    selection=dg.AssetSelection.assets(*GLOBAL_ASSETS) | dg.AssetSelection.all_asset_checks(),
    description="From the mentions of all batches to the publication: graph, communities, reports, embeddings.",
)


check_index_job = dg.define_asset_job(
    "check_index",
    selection=dg.AssetSelection.all_asset_checks(),
    description="Run all checks on the present working database; recompute nothing.",
)
