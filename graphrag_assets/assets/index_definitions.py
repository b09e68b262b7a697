"""All definitions of one index: those of the core, and of the extras, which the core does not know."""

import warnings
from collections.abc import Mapping
from typing import Any

import dagster as dg
from dagster_duckdb import DuckDBResource
from pydantic import Field

from graphrag_assets.assets.automation import (
    dead_runs_sensor,
    document_batches_sensor,
    extract_batch_job,
    nightly_refresh,
    rollback_job,
    update_index_job,
)
from graphrag_assets.assets.communities import detect_communities
from graphrag_assets.assets.corpus import DueBatches, batch_assets, batch_state, batches_check, source_files
from graphrag_assets.assets.embeddings import embed_texts
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_names import IndexNames
from graphrag_assets.assets.knowledge_graph import knowledge_graph
from graphrag_assets.assets.publication import publication
from graphrag_assets.assets.reports import write_community_reports
from graphrag_assets.assets.stage import Stage
from graphrag_assets.assets.stages import asset_of
from graphrag_assets.contracts.indexing_models import NO_KEYS, Keys
from graphrag_assets.extras.cost_preview.job import preview_cost_job
from graphrag_assets.extras.evaluation.job import evaluate_job, quality_check
from graphrag_assets.runtime.tracing import start_tracing
from graphrag_assets.store.index_files import STABLE_NAME


class ClusteringConfig(dg.Config):
    """How this run detects communities."""

    from_scratch: bool = Field(
        default=False,
        description="true: cluster from scratch, not from the previous communities; about half of the reports change.",
    )


STAGES: tuple[tuple[Stage, type[dg.Config]], ...] = (
    (batch_state, DueBatches),
    (knowledge_graph, dg.Config),
    (detect_communities, ClusteringConfig),
    (write_community_reports, dg.Config),
    (embed_texts, dg.Config),
    (publication, dg.Config),
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
    # The index has no fields in the launchpad: the next run would undo a setting of one run, and pay for it again.
    index = dg.ResourceDefinition(
        lambda _: open_now(), config_schema={}, description="The index, with the settings of the environment."
    )
    # For other assets of the project: it opens the present publication, and cannot write it.
    database = DuckDBResource(
        database=str(now.index_folder / STABLE_NAME), connection_config={"access_mode": "READ_ONLY"}
    )
    automated, update = now.automation == "on", update_index_job(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # of source_files
        assets = [source_files(names, upstream), batch_assets(names), *(asset_of(names, *step) for step in STAGES)]
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
            resources={names.resource: index, names.name("database"): database},
        )
