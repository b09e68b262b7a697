"""Jobs for people: each does one thing from beginning to end, batches and global assets alike.

Dagster does not mix partitioned and other assets in a job, so these are ops that do the assets' work and report
the same materialisations.
"""

import time
from enum import Enum

import dagster as dg
from pydantic import Field

from graphrag_assets.defs.batch_index import index_batch_of
from graphrag_assets.defs.communities import community_metadata, report_metadata, update_communities, update_reports
from graphrag_assets.defs.corpus import batch_metadata
from graphrag_assets.defs.graph import graph_metadata, update_graph
from graphrag_assets.defs.options import BatchOptions, Redo, RefreshOptions, ReportOptions, asked_since
from graphrag_assets.defs.partitions import document_batches
from graphrag_assets.defs.publication import publication_metadata, update_publication
from graphrag_assets.defs.reporting import Metadata
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.defs.retrieval import embedding_metadata, update_embeddings
from graphrag_assets.defs.scanning import claim_input_folder, record_unusable_names, scan
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
    claim_input_folder(index)
    record_unusable_names(index)
    found = scan(index)
    todo = {Which.CHANGED: found.due, Which.FAILED: found.undone, Which.ALL: found.known}[config.which]
    context.instance.add_dynamic_partitions(str(document_batches.name), found.known)
    if not todo and config.which is not Which.ALL and config.asks_for_something:
        what = "has changed" if config.which is Which.CHANGED else "has failed text units"
        context.log.warning("No batch %s, so the settings given have no effect. which: ALL takes every batch.", what)
    failed = []
    for place, batch in enumerate(todo, start=1):
        started = time.monotonic()
        try:
            own = index.of(batch, config)
            backend = own.backend(batch, context.run_id, asked_since(context.instance, context.run, config))
            indexed = index_batch_of(own, batch, backend, context.run_id, redo=config.redo)
        except Exception as error:  # whatever it is, the other batches are not to blame
            context.log.error("batch %s (%d of %d) failed: %s", batch, place, len(todo), error)
            failed.append(batch)
            continue
        seconds = time.monotonic() - started
        context.log.info("batch %s (%d of %d): %.1f s", batch, place, len(todo), seconds)
        _report(context, batch_metadata(batch, indexed, seconds), batch)
    return failed


@dg.op(description="Graph, communities, reports, embeddings and publication, from the mentions of all batches.")
def refresh_all(context: dg.OpExecutionContext, config: RefreshOptions, index: GraphIndex, failed: list[str]) -> None:
    """Fails at the end if batches had failed: what could be done is done and published."""
    with index.working.alone("refresh"):
        backend = _backend(context, index, config if config.redo is Redo.EVERYTHING else ReportOptions())
        _report(context, graph_metadata(update_graph(index, backend, context.run_id)))
        own = index.of(None, config)
        _report(context, community_metadata(*update_communities(own, context.run_id, config.afresh)))
        _finish(context, own, config)
    if failed:
        raise dg.Failure(f"Batches failed: {', '.join(failed)}. The log says why; the others are published.")


@dg.op(description="Communities from scratch, then what depends on them.")
def recluster_all(context: dg.OpExecutionContext, index: GraphIndex) -> None:
    with index.working.alone("refresh"):
        own = index.of(None)
        _report(context, community_metadata(*update_communities(own, context.run_id, fresh=True)))
        _finish(context, own, ReportOptions())


def _backend(context: dg.OpExecutionContext, index: GraphIndex, options: ReportOptions) -> IndexingModels:
    return index.backend(run_id=context.run_id, cache_not_before=asked_since(context.instance, context.run, options))


def _finish(context: dg.OpExecutionContext, index: GraphIndex, options: ReportOptions) -> None:
    """Reports, embeddings and publication."""
    backend = _backend(context, index, options)
    redo = options.redo is not Redo.NOTHING
    _report(context, report_metadata(*update_reports(index, backend, context.run_id, redo)))
    embedded = update_embeddings(index, index.backend(run_id=context.run_id), context.run_id)
    _report(context, embedding_metadata(*embedded))
    started = time.monotonic()
    publication = update_publication(index, context.run_id)
    metadata = publication_metadata(publication, index, time.monotonic() - started)
    _report(context, {"published_index": metadata})


def _report(context: dg.OpExecutionContext, metadata: Metadata, partition: str | None = None) -> None:
    """The materialisations that the assets themselves would have reported."""
    for name, of_asset in metadata.items():
        context.log_event(dg.AssetMaterialization(name, metadata=of_asset, partition=partition))


class Rollback(dg.Config):
    """The publication to go back to."""

    publication: int = Field(description="Number of a publication that is still kept.")


@dg.op(description="Let readers see an earlier publication. The next publication of something new goes forward again.")
def roll_back_publication(context: dg.OpExecutionContext, config: Rollback, index: GraphIndex) -> None:
    roll_back(index.settings.index_folder, config.publication)
    context.log.info("readers see publication %d", config.publication)


@dg.graph
def index_and_refresh() -> None:
    refresh_all(index_selected())


def _job(name: str, which: Which, description: str) -> dg.JobDefinition:
    config = dg.RunConfig(ops={"index_selected": BatchSelection(which=which), "refresh_all": RefreshOptions()})
    return index_and_refresh.to_job(name, description=description, config=config)


refresh_changed = _job("refresh_changed", Which.CHANGED, "Index what changed in the input folder, refresh, publish.")
index_everything = _job(
    "index_everything", Which.ALL, "Index every batch again, refresh, publish. Paid calls stay paid."
)
retry_failed_units = _job("retry_failed_units", Which.FAILED, "Try failed text units again, refresh, publish.")


@dg.job(description="Communities from scratch instead of from the previous ones; their reports; publish.")
def recluster() -> None:
    recluster_all()


@dg.job(description="Let readers see an earlier publication.")
def rollback() -> None:
    roll_back_publication()


@dg.definitions
def operations() -> dg.Definitions:
    return dg.Definitions(jobs=[refresh_changed, index_everything, retry_failed_units, recluster, rollback])
