"""The asset jobs: each materializes assets of one index and runs their checks."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from graphrag_assets.defs.checks import check_keys
from graphrag_assets.defs.index_names import (
    BATCH_ASSETS,
    CHECK_INDEX,
    COMMIT,
    EXTRACT,
    EXTRACT_BATCHES,
    GLOBAL_ASSETS,
    INDEX_BATCHES,
    RECLUSTER,
    REFRESH_GRAPH,
    STAGED_BATCHES,
    UPDATE_INDEX,
    IndexNames,
)


def asset_jobs(names: IndexNames, extract_tags: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The jobs by name, as `dg.Definitions` resolves them.

    With `extract_tags` there is one that only extracts; its runs have these tags, too.
    """

    def job(
        name: str, selection: dg.AssetSelection, description: str, config: Any = None, tags: Mapping[str, Any] = COMMIT
    ) -> Any:
        # A process per step costs three seconds. Parallelism comes from many runs and from calls within a step.
        executor = dg.in_process_executor
        return dg.define_asset_job(names.name(name), selection, config, description, tags, executor_def=executor)

    batch_assets = dg.AssetSelection.assets(*names.keys(BATCH_ASSETS)).without_checks()
    global_assets = dg.AssetSelection.assets(*names.keys(GLOBAL_ASSETS)).without_checks()
    graph = dg.AssetSelection.assets(*names.keys(["entity_aliases", "entities", "relationships"]))
    checks = dg.AssetSelection.checks(*check_keys(names))
    from_scratch = {"ops": {names.name("detect_communities"): {"config": {"from_scratch": True}}}}
    jobs = {
        INDEX_BATCHES: job(
            INDEX_BATCHES,
            batch_assets,
            "Index one batch, or a backfill of many: documents, text units, mentions and claims.",
        ),
        REFRESH_GRAPH: job(
            REFRESH_GRAPH,
            global_assets | checks,
            "From the mentions of all batches to the publication: graph, communities, reports, embeddings.",
        ),
        UPDATE_INDEX: job(
            UPDATE_INDEX,
            batch_assets | global_assets | checks,
            "Index one batch, or a range of batches, and refresh everything up to the publication, in one run.",
        ),
        RECLUSTER: job(
            RECLUSTER,
            (global_assets - graph) | checks,
            "Communities from scratch instead of from the previous ones; their reports; publish.",
            config=from_scratch,
        ),
        CHECK_INDEX: job(CHECK_INDEX, checks, "Run all checks on the present working database; recompute nothing."),
    }
    if extract_tags is not None:
        jobs[EXTRACT_BATCHES] = job(
            EXTRACT_BATCHES,
            dg.AssetSelection.assets(names.key(STAGED_BATCHES)).without_checks(),
            "Extract one batch on any machine, into the staging area. index_batches commits it.",
            tags={**EXTRACT, **extract_tags},
        )
    return jobs
