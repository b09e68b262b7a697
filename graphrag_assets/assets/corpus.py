"""The partitioned assets: what one batch contributes, from its files to its mentions and claims.

They are one step that commits once, so that a batch is in the database either as it was or as it is. The step
batch_state indexes the batches that are due. Which these are is not known before it looks, so its run has no partition;
it reports the partitions that it has materialized.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
import polars as pl
from pydantic import Field
from sqlalchemy.exc import IntegrityError

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import (
    CODE_VERSION,
    IndexedBatch,
    Reading,
    batches_at_once,
    index_batch,
    work_on,
)
from graphrag_assets.assets.index_names import (
    BATCH_ASSETS,
    BATCH_STATE,
    BATCHES_PER_RUN,
    DOCUMENT_BATCHES,
    SOURCE_FILES,
    UPDATE_INDEX,
    IndexNames,
)
from graphrag_assets.assets.scan import BatchSelection, retry_given_up, scan, scan_input
from graphrag_assets.assets.stage import Run, StageResult, stage
from graphrag_assets.assets.stages import (
    Metadata,
    asset_spec,
    masked,
    report_up_to_date,
    table_metadata,
    usage_metadata,
)
from graphrag_assets.contracts.records import LOSS_STAGES, OF_READ_TEXT
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.errors import GraphRAGError, chain_of, masked_errors
from graphrag_assets.llm.model_errors import stops_the_run
from graphrag_assets.runtime.outgoing import listed, shown
from graphrag_assets.text.languages import without_names

FAILED, STOPPED = "failed", "not_published"
"""Metadata: the batches that failed, and why; whether nothing was published for that."""
NOT_PUBLISHED = (
    "Nothing was published. Run again when the cause is removed (GRAPHRAG_BUDGET_USD, a key, a server): only the rest "
    "is paid for. To publish what there is, launch the job update_index with which: NOTHING."
)
_ERRORS_LOGGED = 3
_CHECK = "every_batch_is_indexed"
_STATEMENT = "No batch failed when the due batches were last indexed."
_DEPENDENCIES = {
    "documents": (SOURCE_FILES,),
    "text_units": ("documents",),
    "entity_mentions": ("text_units",),
    "relationship_mentions": ("text_units",),
    "covariates": ("text_units",),
}


def source_files(names: IndexNames, upstream: dg.AssetKey | None = None) -> dg.AssetsDefinition:
    """Return the input as an asset that something else makes, `upstream` where that is an asset. *Observe* scans it."""
    spec = dg.AssetSpec(
        names.key(SOURCE_FILES),
        deps=[upstream] if upstream else [],
        group_name=names.group_name("corpus"),
        description="The documents as they are now: the batches of the input folder or table. Start here: the job "
        f"{names.name(UPDATE_INDEX)} indexes them and publishes; *Observe* only scans them.",
        kinds={"file"},
        partitions_def=names.batches,
        skippable=True,
    )

    @dg.multi_observable_source_asset(
        name=names.name(SOURCE_FILES), specs=[spec], required_resource_keys={names.resource}
    )
    def source_files(context: dg.AssetExecutionContext) -> Iterator[dg.ObserveResult]:
        """Scan the input; register its batches; report their versions, and whether the publication is up to date."""
        index = names.index(context.resources)
        with masked():
            scanned = scan_input(index)
            register_batches(names, context.instance, scanned.batches)
            for batch, digest in scanned.digests.items():
                version = {"dagster/data_version": digest}
                context.log_event(dg.AssetObservation(names.key(SOURCE_FILES), partition=batch, tags=version))
            report_up_to_date(names, context.instance, index, scanned)
        context.log.info("batches: %d, to be indexed: %d", len(scanned.digests), len(scanned.due))
        yield from ()  # observations of partitions are events, not results

    return source_files


def register_batches(names: IndexNames, instance: dg.DagsterInstance, batches: Iterable[str]) -> None:
    """Make the batches the partitions: new ones are registered, others removed.

    Dagster looks for partitions, then inserts those it has not found: where another process was first, it has to look
    again.
    """
    name, keys = names.name(DOCUMENT_BATCHES), list(batches)
    for batch in set(instance.get_dynamic_partitions(name)).difference(keys):
        instance.delete_dynamic_partition(name, batch)
    for _ in keys:  # each collision means that another one is registered
        with suppress(IntegrityError):
            instance.add_dynamic_partitions(name, keys)
            return


def batch_assets(names: IndexNames) -> dg.AssetsDefinition:
    """Return the assets of `schema.BATCH_TABLES`."""

    @dg.multi_asset(
        name=names.name("index_batch"),
        specs=[asset_spec(names, asset, "corpus", _DEPENDENCIES[asset], CODE_VERSION) for asset in BATCH_ASSETS],
        partitions_def=names.batches,
        pool=names.pool,
        backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=BATCHES_PER_RUN),
        required_resource_keys={names.resource},
    )
    def index(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
        """Read, chunk and extract each batch of the run; commit it; report it."""
        opened, batches = names.index(context.resources), context.partition_keys
        with masked():
            with opened.exclusive("index_batch", context.run.run_id):
                failures = index_batches(names, context, opened, batches)
            if failures.last:
                raise failures.last if len(batches) == 1 else failures.as_failure()
            report_up_to_date(names, context.instance, opened, scan(opened))
        yield from ()  # each batch was reported when it was committed

    return index


@dataclass
class BatchFailures:
    """Why batches failed; `stopped`: whether an error meets all others, too; `last`: the last error."""

    reasons: dict[str, str] = field(default_factory=dict)
    stopped: bool = False
    last: Exception | None = None

    def add(self, batch: str, error: Exception) -> None:
        """Add a batch that failed."""
        said = str(error) if isinstance(error, GraphRAGError) else f"{type(error).__name__}: {error}"
        self.reasons[batch] = said.strip().partition("\n")[0]
        self.stopped, self.last = self.stopped or meets_all(error), error

    def __str__(self) -> str:
        reasons = [f"{batch}: {reason.rstrip('.')}" for batch, reason in self.reasons.items()]
        return f"Batches failed: {listed(reasons, _ERRORS_LOGGED, '; ')}" if reasons else ""

    def as_failure(self) -> dg.Failure:
        """Return the failure of a step, caused by the last of the errors."""
        failure = dg.Failure(
            f"{self}. {NOT_PUBLISHED}" if self.stopped else str(self),
            metadata={FAILED: dg.MetadataValue.json(self.reasons), STOPPED: self.stopped},
            allow_retries=not self.stopped,
        )
        failure.__cause__ = self.last
        return failure


def meets_all(outcome: object) -> bool:
    """Whether an outcome is an error that will meet all batches, so that nothing is to be published."""
    return isinstance(outcome, Exception) and any(map(stops_the_run, chain_of(outcome)))


def index_batches(
    names: IndexNames, context: dg.AssetExecutionContext, index: Index, batches: Sequence[str]
) -> BatchFailures:
    """Index batches at once, and report each as soon as it is committed: the run may be killed.

    If the budget ends in one, or a model cannot be used, no other begins. The caller holds the writer lock.
    """
    failures, run_id, log = BatchFailures(), context.run.run_id, context.log

    def index_one(batch: str, reading: Reading) -> tuple[IndexedBatch, float]:
        started = time.monotonic()
        with masked_errors():
            return index_batch(index, batch, index.models(batch, run_id), run_id, reading), started

    with closing(work_on(batches, index_one, batches_at_once(index.settings), meets_all)) as outcomes:
        for place, (batch, outcome) in enumerate(outcomes, start=1):
            which = f"batch {batch} ({place} of {len(batches)})" if len(batches) > 1 else f"batch {batch}"
            if isinstance(outcome, Exception):
                failures.add(batch, outcome)
                log.error("%s failed: %s", which, outcome)
                continue
            indexed, seconds = outcome[0], time.monotonic() - outcome[1]
            skipped = indexed.errors.filter(~pl.col("stage").is_in(OF_READ_TEXT))
            counts = (indexed.frames["documents"].height, indexed.frames["text_units"].height, skipped.height)
            log.info("%s: %d documents, %d text units, %d skipped, %.1f s", which, *counts, seconds)
            if skipped.height:
                errors = [f"{source}: {error}" for source, error in skipped.select("source", "error").iter_rows()]
                log.warning("Skipped in %s: %s", which, shown(listed(errors, _ERRORS_LOGGED, "; ")))
            for name, values in batch_metadata(indexed, seconds).items():
                context.log_event(dg.AssetMaterialization(names.key(name), partition=batch, metadata=values))
    return failures


def batch_metadata(indexed: IndexedBatch, seconds: float) -> Metadata:
    """Metadata of the tables that were written for a batch. The errors themselves are shown by checks."""
    failed, lossy = pl.col("stage") == "extract", pl.col("stage").is_in(LOSS_STAGES)
    done = indexed.frames["text_units"].filter(pl.col("extractor").str.starts_with(EXTRACTOR))["document_id"]
    note = without_names(indexed.frames["documents"].filter(pl.col("id").is_in(done.implode()))["language"])
    more: Metadata = {
        "documents": {"problems": indexed.errors.filter(~failed & ~lossy).height},
        "entity_mentions": {
            "failed_text_units": indexed.errors.filter(failed).height,
            **usage_metadata(indexed.usage),
            **({"without_names": note} if note else {}),
        },
    }
    return {
        name: table_metadata(name, indexed.changes[name], seconds, frame, **more.get(name, {}))
        for name, frame in indexed.frames.items()
    }


class DueBatches(dg.Config):
    """Which batches are indexed before the graph is refreshed."""

    which: BatchSelection = Field(
        default=BatchSelection.CHANGED,
        description="CHANGED: batches that differ from the input folder or have failed text units. FAILED: the latter "
        "alone, and what two runs got no valid answer to. ALL. NOTHING: refresh and publish what is indexed.",
    )
    batches: list[str] = Field(default=[], description="Only these batches, whether or not they have changed.")
    read_every_file: bool = Field(
        default=False,
        description="true: compare the content of every file, also of those with the same size and time as before.",
    )


@stage("corpus", {BATCH_STATE: BATCH_ASSETS}, CODE_VERSION)
def batch_state(run: Run) -> StageResult:
    """Index the batches that are due. One that fails does not stop the others."""
    names, context, index, config = run.names, run.context, run.index, run.config
    scan = scan_input(index, read_every_file=config.read_every_file)
    register_batches(names, context.instance, scan.batches)
    if config.which is BatchSelection.FAILED:
        retry_given_up(index)
    due = scan.chosen(config.which, config.batches)
    _report_unreported(names, context, [batch for batch in scan.unchanged if batch not in due])
    context.log.info("batches to index: %d (%s)", len(due), ", ".join(due) or "-")
    failures = index_batches(names, context, index, due)
    deleted = set(scan.deleted).intersection(due) - failures.reasons.keys()
    register_batches(names, context.instance, [batch for batch in scan.batches if batch not in deleted])
    if failures.stopped:
        raise failures.as_failure()
    n_batches = index.working.read("SELECT count(*) FROM batch_state WHERE n_documents > 0").item()
    return StageResult(
        metadata={"dagster/row_count": n_batches, **({FAILED: failures.reasons} if failures.reasons else {})}
    )


def _report_unreported(names: IndexNames, context: dg.AssetExecutionContext, unchanged: Sequence[str]) -> None:
    """Report the unchanged batches that Dagster does not know as materialized.

    A process was killed between the commit of a batch and its report, or the Dagster home is a new one.
    """
    for key in names.keys(BATCH_ASSETS):
        statuses = context.instance.get_status_by_partition(key, unchanged, names.batches) or {}
        for batch in unchanged:
            if statuses.get(batch) in (None, dg.AssetPartitionStatus.FAILED):
                context.log_event(dg.AssetMaterialization(key, partition=batch))


def batches_check(names: IndexNames) -> dg.AssetChecksDefinition:
    """Return the check that fails the run in which a batch has failed, while the others are published."""

    @dg.multi_asset_check(
        name=names.name(f"check_{BATCH_STATE}"),
        specs=[dg.AssetCheckSpec(_CHECK, asset=names.key(BATCH_STATE), description=_STATEMENT)],
        can_subset=True,
    )
    def check_batch_state(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        event = context.instance.get_latest_materialization_event(names.key(BATCH_STATE))
        state = event.asset_materialization if event else None
        reasons: Any = state.metadata[FAILED].value if state and FAILED in state.metadata else {}
        failures = BatchFailures(dict(reasons))
        yield dg.AssetCheckResult(check_name=_CHECK, asset_key=names.key(BATCH_STATE), passed=not failures.reasons)
        if failures.reasons:
            raise dg.Failure(f"{failures}. The other batches are indexed.", allow_retries=False)

    return check_batch_state
