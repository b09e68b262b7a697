"""The Dagster code location: all definitions of `defs/`."""

import warnings

import dagster as dg

from graphrag_assets.defs.alerts import failed_runs_alert
from graphrag_assets.defs.automation import (
    dead_runs_sensor,
    document_batches_sensor,
    nightly_refresh,
    register_batches_sensor,
)
from graphrag_assets.defs.checks import ASSET_CHECKS
from graphrag_assets.defs.communities import detect_communities, write_community_reports
from graphrag_assets.defs.corpus import index_batch, source_files
from graphrag_assets.defs.embeddings import embed_texts
from graphrag_assets.defs.graph import knowledge_graph
from graphrag_assets.defs.jobs import check_index_job, index_batch_job, refresh_graph_job, scan_input
from graphrag_assets.defs.operations import (
    index_everything,
    recluster,
    refresh_changed,
    retry_failed_units,
    rollback,
)
from graphrag_assets.defs.preview_cost import preview_cost
from graphrag_assets.defs.publication import published_index
from graphrag_assets.defs.resources import GraphIndex

ASSETS: list[dg.AssetsDefinition | dg.AssetSpec] = [
    source_files,
    index_batch,
    knowledge_graph,
    detect_communities,
    write_community_reports,
    embed_texts,
    published_index,
]


@dg.definitions
def defs() -> dg.Definitions:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        assets = dg.with_source_code_references(ASSETS)
    return dg.Definitions(
        assets=assets,
        asset_checks=ASSET_CHECKS,
        jobs=[
            scan_input,
            index_batch_job,
            refresh_graph_job,
            check_index_job,
            refresh_changed,
            index_everything,
            retry_failed_units,
            recluster,
            rollback,
            preview_cost,
        ],
        schedules=[nightly_refresh],
        sensors=[register_batches_sensor, document_batches_sensor, dead_runs_sensor, failed_runs_alert],
        resources={"index": GraphIndex.with_sources_shown()},
        # A process per step costs three seconds. Parallelism comes from many runs and from calls within a step.
        executor=dg.in_process_executor,
    )
