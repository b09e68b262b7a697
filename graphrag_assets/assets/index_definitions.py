"""All definitions of one index: those of the core, and of the extras, which the core does not know."""

import warnings
from typing import Any

import dagster as dg

from graphrag_assets.assets.automation import document_batches_sensor, nightly_refresh
from graphrag_assets.assets.batch_state import BATCHES, batches_check
from graphrag_assets.assets.communities import DETECT_COMMUNITIES
from graphrag_assets.assets.corpus import index_batch, source_files
from graphrag_assets.assets.dead_runs import dead_runs_sensor
from graphrag_assets.assets.embeddings import EMBED_TEXTS
from graphrag_assets.assets.extract_batch import extract_batch_job
from graphrag_assets.assets.index_names import GLOBAL_ASSETS, UPDATE_INDEX, WRITE, IndexNames
from graphrag_assets.assets.jobs import rollback_job
from graphrag_assets.assets.knowledge_graph import KNOWLEDGE_GRAPH
from graphrag_assets.assets.publication import PUBLISH
from graphrag_assets.assets.reports import WRITE_COMMUNITY_REPORTS
from graphrag_assets.assets.resources import IndexSettings, index_resources
from graphrag_assets.assets.stages import asset_of
from graphrag_assets.extras.cost_preview.job import preview_cost_job
from graphrag_assets.extras.evaluation.job import evaluate_job, quality_check
from graphrag_assets.runtime.tracing import start_tracing

STAGES = (
    *(BATCHES, KNOWLEDGE_GRAPH, DETECT_COMMUNITIES, WRITE_COMMUNITY_REPORTS),
    *(EMBED_TEXTS, PUBLISH),
)
"""The steps over the whole index, in the order in which data flows."""


def index_definitions(
    names: IndexNames, settings: IndexSettings, upstream: dg.AssetKey | None = None
) -> dg.Definitions:
    """The assets, checks, jobs, sensors, schedule and resources of one index. `upstream` makes its documents.

    Raises:
        SettingsError: a setting has a bad value.
    """
    start_tracing()
    now = settings.load()
    automated, update = now.automation == "on", update_index_job(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # of links to code, and of source_files
        assets = [source_files(names, upstream), index_batch(names), *(asset_of(names, stage) for stage in STAGES)]
        return dg.Definitions(
            assets=assets,
            asset_checks=[batches_check(names), quality_check(names)],
            jobs=[
                update,
                *(make(names) for make in (preview_cost_job, evaluate_job, rollback_job)),
                *([extract_batch_job(names, settings)] if now.ledger_url else []),
            ],
            schedules=[nightly_refresh(names, update, automated)],
            sensors=[document_batches_sensor(names, update, automated), dead_runs_sensor(names)],
            resources=index_resources(names, settings),
        )


def update_index_job(names: IndexNames) -> Any:
    """The job update_index, as `dg.Definitions` resolves it: all global assets, and their checks."""
    return dg.define_asset_job(
        names.name(UPDATE_INDEX),
        dg.AssetSelection.assets(*names.keys(GLOBAL_ASSETS)),
        description="Start here: index what changed in the input folder, refresh the graph, publish. which: FAILED, "
        "ALL or NOTHING, or batches by name, to index these instead.",
        tags=WRITE,
        # A process per step costs three seconds. Parallelism comes from calls within a step.
        executor_def=dg.in_process_executor,
    )
