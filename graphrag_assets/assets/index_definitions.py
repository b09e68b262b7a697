"""All definitions of one index: those of the core, and of the extras, which the core does not know."""

import warnings
from collections.abc import Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from graphrag_assets.assets.automation import dead_runs_sensor, document_batches_sensor, nightly_refresh
from graphrag_assets.assets.communities import DETECT_COMMUNITIES
from graphrag_assets.assets.corpus import BATCHES, DueBatches, batches_check, index_batch, source_files
from graphrag_assets.assets.embeddings import EMBED_TEXTS
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_names import IndexNames
from graphrag_assets.assets.jobs import extract_batch_job, rollback_job, update_index_job
from graphrag_assets.assets.knowledge_graph import KNOWLEDGE_GRAPH
from graphrag_assets.assets.publication import PUBLISH
from graphrag_assets.assets.reports import WRITE_COMMUNITY_REPORTS
from graphrag_assets.assets.resources import index_resources
from graphrag_assets.assets.stage import Stage
from graphrag_assets.assets.stages import asset_of
from graphrag_assets.contracts.indexing_models import NO_KEYS, Keys
from graphrag_assets.extras.cost_preview.job import preview_cost_job
from graphrag_assets.extras.evaluation.job import evaluate_job, quality_check
from graphrag_assets.runtime.tracing import start_tracing


class ClusteringConfig(dg.Config):
    """How this run detects communities."""

    from_scratch: bool = Field(
        default=False,
        description="true: cluster from scratch, not from the previous communities; about half of the reports change.",
    )


STAGES: tuple[tuple[Stage, type[dg.Config]], ...] = (
    (BATCHES, DueBatches),
    (KNOWLEDGE_GRAPH, dg.Config),
    (DETECT_COMMUNITIES, ClusteringConfig),
    (WRITE_COMMUNITY_REPORTS, dg.Config),
    (EMBED_TEXTS, dg.Config),
    (PUBLISH, dg.Config),
)
"""The steps over the whole index, in the order in which data flows, and what a run of each can be given."""


def index_definitions(
    names: IndexNames,
    overrides: Mapping[str, Any] | None = None,
    keys: Keys = NO_KEYS,
    upstream: dg.AssetKey | None = None,
) -> dg.Definitions:
    """Return the assets, checks, jobs, sensors, schedule and resources of one index.

    Args:
        overrides: settings that replace the environment's, by name.
        keys: API keys; missing ones are looked up in the environment.
        upstream: the asset that makes its documents.

    Raises:
        SettingsError: a setting has a bad value.
    """
    start_tracing()

    def open_now() -> Index:
        return Index.from_environment(overrides, keys)

    now = open_now().settings
    automated, update = now.automation == "on", update_index_job(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # of source_files
        assets = [source_files(names, upstream), index_batch(names), *(asset_of(names, *step) for step in STAGES)]
        return dg.Definitions(
            assets=assets,
            asset_checks=[batches_check(names), quality_check(names)],
            jobs=[
                update,
                *(make(names) for make in (preview_cost_job, evaluate_job, rollback_job)),
                *([extract_batch_job(names, open_now)] if now.ledger_url else []),
            ],
            schedules=[nightly_refresh(names, update, automated)],
            sensors=[document_batches_sensor(names, update, automated), dead_runs_sensor(names)],
            resources=index_resources(names, open_now),
        )
