"""Jobs that do one thing from beginning to end, for batches and global assets alike.

Their ops call the same stages as the assets and report the same materializations.
"""

import time
from enum import Enum

import dagster as dg
from pydantic import Field

from graphrag_assets.defs.communities import community_metadata, report_metadata
from graphrag_assets.defs.corpus import batch_metadata
from graphrag_assets.defs.embeddings import embedding_metadata
from graphrag_assets.defs.graph import graph_metadata
from graphrag_assets.defs.options import BatchOptions, RefreshOptions, ReportOptions, cache_not_before
from graphrag_assets.defs.partitions import document_batches
from graphrag_assets.defs.publication import published
from graphrag_assets.defs.reporting import Metadata
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.indexing.communities import update_communities
from graphrag_assets.indexing.embeddings import update_embeddings
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.index_batch import index_batch
from graphrag_assets.indexing.merge_graph import merge_graph
from graphrag_assets.indexing.reports import update_reports
from graphrag_assets.indexing.rerun import Rerun
from graphrag_assets.indexing.scan import claim_input_folder, record_unusable_names, scan
from graphrag_assets.indexing_models import IndexingModels
from graphrag_assets.store.publications import roll_back


class Which(Enum):
    """Which batches are indexed."""

    CHANGED = "changed"
    FAILED = "failed"
    ALL = "all"


class BatchSelection(BatchOptions):
    """Which batches, and how they are indexed."""

    which: Which = Field(
        default=Which.CHANGED,
        description="CHANGED: batches that differ from the input folder or have failed text units. FAILED: the latter "
        "alone. ALL. Settings given here stay with the batches that are indexed; others keep theirs.",
    )


@dg.op(description="Index batches one by one; one that fails does not stop the others.")
def index_selected(context: dg.OpExecutionContext, config: BatchSelection, index: GraphIndex) -> list[str]:
    """Returns the batches that failed."""
    opened = index.open()
    claim_input_folder(opened)
    record_unusable_names(opened)
    found = scan(opened)
    todo = {Which.CHANGED: found.due, Which.FAILED: found.pending, Which.ALL: found.known}[config.which]
    context.instance.add_dynamic_partitions(str(document_batches.name), found.known)
    if not todo and config.which is not Which.ALL and config.asks_for_something:
        what = "has changed" if config.which is Which.CHANGED else "has failed text units"
        context.log.warning("No batch %s, so the settings given have no effect. which: ALL takes every batch.", what)
    failed = []
    for place, batch in enumerate(todo, start=1):
        started = time.monotonic()
        try:
            own = config.apply_to(opened, batch)
            models = own.models(batch, context.run_id, cache_not_before(context.instance, context.run, config))
            indexed = index_batch(own, batch, models, context.run_id, rerun=config.rerun)
        except Exception as error:  # the other batches are indexed all the same
            context.log.error("batch %s (%d of %d) failed: %s", batch, place, len(todo), error)
            failed.append(batch)
            continue
        seconds = time.monotonic() - started
        context.log.info("batch %s (%d of %d): %.1f s", batch, place, len(todo), seconds)
        _report(context, batch_metadata(batch, indexed, seconds), batch)
    return failed


@dg.op(description="Graph, communities, reports, embeddings and publication, from the mentions of all batches.")
def refresh_all(context: dg.OpExecutionContext, config: RefreshOptions, index: GraphIndex, failed: list[str]) -> None:
    """Fails at the end if batches have failed; the others are published."""
    opened = index.open()
    with opened.working.exclusive("refresh"):
        models = _models(context, opened, config if config.rerun is Rerun.EVERYTHING else ReportOptions())
        _report(context, graph_metadata(merge_graph(opened, models, context.run_id)))
        own = config.apply_to(opened, None)
        _report(context, community_metadata(*update_communities(own, context.run_id, config.from_scratch)))
        _finish(context, own, config)
    if failed:
        raise dg.Failure(f"Batches failed: {', '.join(failed)}. The log says why; the others are published.")


@dg.op(description="Communities from scratch, then what depends on them.")
def recluster_all(context: dg.OpExecutionContext, index: GraphIndex) -> None:
    own = index.open().with_run_options(None)
    with own.working.exclusive("refresh"):
        _report(context, community_metadata(*update_communities(own, context.run_id, from_scratch=True)))
        _finish(context, own, ReportOptions())


def _models(context: dg.OpExecutionContext, index: Index, options: ReportOptions) -> IndexingModels:
    not_before = cache_not_before(context.instance, context.run, options)
    return index.models(run_id=context.run_id, cache_not_before=not_before)


def _finish(context: dg.OpExecutionContext, index: Index, options: ReportOptions) -> None:
    """Reports, embeddings and publication."""
    models = _models(context, index, options)
    rewrite = options.rerun is not Rerun.NOTHING
    _report(context, report_metadata(*update_reports(index, models, context.run_id, rewrite)))
    embedded = update_embeddings(index, index.models(run_id=context.run_id), context.run_id)
    _report(context, embedding_metadata(*embedded))
    _report(context, {"published_index": published(index, context.run_id, context.log)})


def _report(context: dg.OpExecutionContext, metadata: Metadata, partition: str | None = None) -> None:
    """Report the materializations that the assets would have reported."""
    for name, of_asset in metadata.items():
        context.log_event(dg.AssetMaterialization(name, metadata=of_asset, partition=partition))


class Rollback(dg.Config):
    """The publication to go back to."""

    publication: int = Field(description="Number of a publication that is still kept.")


@dg.op(description="Point readers to an earlier publication. The next publication with new content replaces it.")
def roll_back_publication(context: dg.OpExecutionContext, config: Rollback, index: GraphIndex) -> None:
    roll_back(index.open().settings.index_folder, config.publication)
    context.log.info("readers see publication %d", config.publication)


@dg.graph
def index_and_refresh() -> None:
    refresh_all(index_selected())


def _job(name: str, which: Which, description: str) -> dg.JobDefinition:
    config = dg.RunConfig(ops={"index_selected": BatchSelection(which=which), "refresh_all": RefreshOptions()})
    return index_and_refresh.to_job(name, description=description, config=config)


refresh_changed = _job("refresh_changed", Which.CHANGED, "Index what changed in the input folder, refresh, publish.")
index_everything = _job(
    "index_everything", Which.ALL, "Index every batch again, refresh, publish. Paid calls come from the ledger."
)
retry_failed_units = _job("retry_failed_units", Which.FAILED, "Extract failed text units again, refresh, publish.")


@dg.job(description="Communities from scratch instead of from the previous ones; their reports; publish.")
def recluster() -> None:
    recluster_all()


@dg.job(description="Point readers to an earlier publication.")
def rollback() -> None:
    roll_back_publication()
