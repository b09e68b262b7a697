"""All definitions of one index: those of the core, and of the extras, which the core does not know."""

import inspect
from collections.abc import Callable

import dagster as dg

from graphrag_assets.defs.asset_jobs import asset_jobs
from graphrag_assets.defs.automation import document_batches_sensor, nightly_refresh, register_batches_sensor
from graphrag_assets.defs.batch_state import batch_state, batches_check
from graphrag_assets.defs.candidates import find_candidates
from graphrag_assets.defs.checks import asset_checks
from graphrag_assets.defs.communities import detect_communities, write_community_reports
from graphrag_assets.defs.corpus import index_batch, source_files
from graphrag_assets.defs.dead_runs import dead_runs_sensor
from graphrag_assets.defs.embeddings import embed_texts
from graphrag_assets.defs.extract_batch import extract_batch_job
from graphrag_assets.defs.graph import knowledge_graph
from graphrag_assets.defs.index_names import UPDATE_INDEX, IndexNames
from graphrag_assets.defs.jobs import rollback_job
from graphrag_assets.defs.publication import publication
from graphrag_assets.defs.resources import IndexSettings, index_resources
from graphrag_assets.extras.cost_preview.job import preview_cost_job
from graphrag_assets.extras.evaluation.job import evaluate_job, quality_check, quality_check_key
from graphrag_assets.runtime.tracing import start_tracing


def index_definitions(
    names: IndexNames, settings: IndexSettings, upstream: dg.AssetKey | None = None
) -> dg.Definitions:
    """The assets, checks, jobs, sensors, schedule and resources of one index. `upstream` makes its documents.

    Raises:
        SettingsError: a setting has a bad value.
    """
    start_tracing()
    now = settings.load()
    automated = now.automation == "on"
    assets: list[dg.AssetsDefinition | dg.AssetSpec] = [
        _linked(source_files(names, upstream), source_files),
        _linked(index_batch(names), index_batch),
        _linked(batch_state(names), batch_state),
        *(_linked(make(names), make) for make in (knowledge_graph, detect_communities, write_community_reports)),
        *(_linked(make(names), make) for make in (embed_texts, find_candidates)),
        _linked(publication(names), publication),
    ]
    jobs = asset_jobs(names, [quality_check_key(names)])
    return dg.Definitions(
        assets=assets,
        asset_checks=[batches_check(names), *asset_checks(names), quality_check(names)],
        jobs=[
            *jobs.values(),
            *(make(names) for make in (preview_cost_job, evaluate_job, rollback_job)),
            *([extract_batch_job(names, settings)] if now.ledger_url else []),
        ],
        schedules=[nightly_refresh(names, jobs[UPDATE_INDEX], automated)],
        sensors=[
            register_batches_sensor(names),
            document_batches_sensor(names, jobs, automated),
            dead_runs_sensor(names),
        ],
        resources=index_resources(names, settings),
    )


def _linked(assets: dg.AssetsDefinition, make: Callable[..., dg.AssetsDefinition]) -> dg.AssetsDefinition:
    """The assets with a link to the function that defines them."""
    code = dg.LocalFileCodeReference(
        file_path=str(inspect.getsourcefile(make)), line_number=inspect.getsourcelines(make)[1]
    )
    metadata = {"dagster/code_references": dg.CodeReferencesMetadataValue(code_references=[code])}
    return assets.map_asset_specs(lambda spec: spec.merge_attributes(metadata=metadata))
