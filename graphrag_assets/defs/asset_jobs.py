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
    PROMPT_PROFILE,
    RECLUSTER,
    REFRESH_GRAPH,
    STAGED_BATCHES,
    TUNE_PROMPTS,
    UPDATE_INDEX,
    IndexNames,
)


def asset_jobs(names: IndexNames, extract_tags: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The jobs by name, as `dg.Definitions` resolves them.

    With `extract_tags` there is one that only extracts; its runs have these tags, too.
    """
    batch_assets = dg.AssetSelection.assets(*names.keys(BATCH_ASSETS)).without_checks()
    global_assets = dg.AssetSelection.assets(*names.keys(GLOBAL_ASSETS)).without_checks()
    from_communities = global_assets - dg.AssetSelection.assets(
        *names.keys(["entity_aliases", "entities", "relationships"])
    )
    checks = dg.AssetSelection.checks(*check_keys(names))

    from_scratch = {"ops": {names.name("detect_communities"): {"config": {"from_scratch": True}}}}
    jobs: dict[str, tuple[dg.AssetSelection, str, dict[str, Any] | None]] = {
        INDEX_BATCHES: (
            batch_assets,
            "Index one batch, or a backfill of many: documents, text units, mentions and claims.",
            None,
        ),
        REFRESH_GRAPH: (
            global_assets | checks,
            "From the mentions of all batches to the publication: graph, communities, reports, embeddings.",
            None,
        ),
        UPDATE_INDEX: (
            batch_assets | global_assets | checks,
            "Index one batch, or a range of batches, and refresh everything up to the publication, in one run.",
            None,
        ),
        RECLUSTER: (
            from_communities | checks,
            "Communities from scratch instead of from the previous ones; their reports; publish.",
            from_scratch,
        ),
        TUNE_PROMPTS: (
            dg.AssetSelection.assets(names.key(PROMPT_PROFILE)).without_checks(),
            "Make a prompt profile from a sample of the text units, and try it; adopt it if the run says so.",
            None,
        ),
        CHECK_INDEX: (checks, "Run all checks on the present working database; recompute nothing.", None),
    }
    made = {
        name: dg.define_asset_job(
            names.name(name),
            selection=selection,
            description=description,
            config=config,
            tags=COMMIT,
            # A process per step costs three seconds. Parallelism comes from many runs and from calls within a step.
            executor_def=dg.in_process_executor,
        )
        for name, (selection, description, config) in jobs.items()
    }
    if extract_tags is not None:
        made[EXTRACT_BATCHES] = dg.define_asset_job(
            names.name(EXTRACT_BATCHES),
            selection=dg.AssetSelection.assets(names.key(STAGED_BATCHES)).without_checks(),
            description="Extract one batch on any machine, into the staging area. index_batches commits it.",
            tags={**EXTRACT, **extract_tags},
            executor_def=dg.in_process_executor,
        )
    return made
