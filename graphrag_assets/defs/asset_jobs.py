"""The asset jobs: each materializes assets of one index and runs their checks."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from graphrag_assets.defs.batch_state import batches_check_key
from graphrag_assets.defs.checks import check_keys
from graphrag_assets.defs.index_names import (
    BATCH_ASSETS,
    GLOBAL_ASSETS,
    INDEX_BATCHES,
    REFRESH_GRAPH,
    UPDATE_INDEX,
    WRITE,
    IndexNames,
)


def asset_jobs(names: IndexNames, more_checks: Sequence[dg.AssetCheckKey] = ()) -> dict[str, Any]:
    """The jobs by name, as `dg.Definitions` resolves them; `more_checks` of extras run with the others."""

    def job(name: str, selection: dg.AssetSelection, description: str) -> Any:
        # A process per step costs three seconds. Parallelism comes from many runs and from calls within a step.
        executor = dg.in_process_executor
        return dg.define_asset_job(
            names.name(name), selection, description=description, tags=WRITE, executor_def=executor
        )

    batch_assets = dg.AssetSelection.assets(*names.keys(BATCH_ASSETS)).without_checks()
    global_assets = dg.AssetSelection.assets(*names.keys(GLOBAL_ASSETS)).without_checks()
    refresh = global_assets | dg.AssetSelection.checks(*check_keys(names), batches_check_key(names), *more_checks)
    return {
        UPDATE_INDEX: job(
            UPDATE_INDEX,
            refresh,
            "Start here: index what changed in the input folder, refresh the graph, publish. which: FAILED or ALL, or "
            "batches by name, to index these instead.",
        ),
        INDEX_BATCHES: job(
            INDEX_BATCHES,
            batch_assets,
            "Index one batch, a range of batches, or a backfill of many: documents, text units, mentions and claims.",
        ),
        REFRESH_GRAPH: job(
            REFRESH_GRAPH,
            refresh,
            "From the batches as they are indexed to the publication: graph, communities, reports, embeddings. "
            "from_scratch: true of detect_communities clusters from scratch.",
        ),
    }
