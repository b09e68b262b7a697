"""The partitioned assets: what one batch contributes, from its files to its mentions and claims.

They are one step that commits once, so that a batch is in the database either as it was or as it is.
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field

import dagster as dg
import polars as pl
from sqlalchemy.exc import IntegrityError

from graphrag_assets.assets import index_batch as stage
from graphrag_assets.assets.asset_checks import report_up_to_date
from graphrag_assets.assets.batch_pool import Reading, batches_at_once, work_on
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_names import (
    BATCH_ASSETS,
    BATCHES_PER_RUN,
    DOCUMENT_BATCHES,
    SOURCE_FILES,
    UPDATE_INDEX,
    IndexNames,
)
from graphrag_assets.assets.reporting import Metadata, errors_metadata, table_metadata, usage_metadata
from graphrag_assets.assets.resources import masked, needs, open_index
from graphrag_assets.assets.scan import scan, scan_input
from graphrag_assets.assets.stages import asset_spec
from graphrag_assets.contracts.records import LOSS_STAGES, OF_READ_TEXT
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.errors import GraphRAGError, chain_of, masked_errors
from graphrag_assets.llm.model_errors import BudgetExceeded, CircuitOpen
from graphrag_assets.runtime.outgoing import listed, shown
from graphrag_assets.text.languages import without_names

FAILED, STOPPED = "failed", "not_published"
"""Metadata: the batches that failed, and why; what to say if nothing was published for that."""
_ONLY_THE_REST = "only the rest is paid for. To publish what there is, launch the job update_index with which: NOTHING."
NOT_PUBLISHED = f"Nothing was published. Run again when the cause is removed: {_ONLY_THE_REST}"
OUT_OF_BUDGET = (
    f"The budget is used up, so nothing was published. Raise GRAPHRAG_BUDGET_USD and run again: {_ONLY_THE_REST}"
)
_ERRORS_LOGGED = 3
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

    @dg.multi_observable_source_asset(name=names.name(SOURCE_FILES), specs=[spec], required_resource_keys=needs(names))
    @masked
    def source_files(context: dg.AssetExecutionContext) -> Iterator[dg.ObserveResult]:
        """Scan the input; register its batches; report their versions, and whether the publication is up to date."""
        index = open_index(names, context.resources)
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


def index_batch(names: IndexNames) -> dg.AssetsDefinition:
    """Return the assets of `schema.BATCH_TABLES`."""

    @dg.multi_asset(
        name=names.name("index_batch"),
        specs=[asset_spec(names, asset, "corpus", _DEPENDENCIES[asset], stage.CODE_VERSION) for asset in BATCH_ASSETS],
        partitions_def=names.batches,
        pool=names.pool,
        backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=BATCHES_PER_RUN),
        required_resource_keys=needs(names),
    )
    @masked
    def index_batch(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
        """Read, chunk and extract each batch of the run; commit it; report it."""
        index, batches = open_index(names, context.resources), context.partition_keys
        run = BatchRun(names, context, index)
        run.index_all(batches)
        if run.failures.last:
            raise run.failures.last if len(batches) == 1 else run.failures.as_failure()
        report_up_to_date(names, context.instance, index, scan(index))
        yield from ()  # each batch was reported when it was committed

    return index_batch


@dataclass
class BatchFailures:
    """Why batches failed; `stopped`: what to say if an error meets all others, too; `last`: the last error."""

    reasons: dict[str, str] = field(default_factory=dict)
    stopped: str | None = None
    last: Exception | None = None

    def add(self, batch: str, error: Exception) -> None:
        """Add a batch that failed."""
        said = str(error) if isinstance(error, GraphRAGError) else f"{type(error).__name__}: {error}"
        self.reasons[batch] = said.strip().partition("\n")[0]
        self.stopped, self.last = self.stopped or not_published(error), error

    def __str__(self) -> str:
        batches = defaultdict[str, list[str]](list)
        for batch, reason in self.reasons.items():
            batches[reason.partition(" Done: ")[0].rstrip(".")].append(batch)  # how far it came is in the run's log
        reasons = "; ".join(f"{listed(names)}: {reason}" for reason, names in batches.items())
        return f"Batches failed: {reasons}" if reasons else ""

    def as_failure(self) -> dg.Failure:
        """Return the failure of a step, caused by the last of the errors."""
        failure = dg.Failure(
            ". ".join(filter(None, (str(self), self.stopped))),
            metadata={FAILED: dg.MetadataValue.json(self.reasons), STOPPED: self.stopped or ""},
            allow_retries=not self.stopped,
        )
        failure.__cause__ = self.last
        return failure


def not_published(error: Exception) -> str | None:
    """Return what to say if an error will meet all batches, so that nothing is to be published."""
    chain = tuple(chain_of(error))
    if any(isinstance(one, BudgetExceeded) for one in chain):
        return OUT_OF_BUDGET
    return NOT_PUBLISHED if any(isinstance(one, CircuitOpen) for one in chain) else None


@dataclass
class BatchRun:
    """Indexes batches in a run of Dagster; `failures` of them accumulate."""

    names: IndexNames
    context: dg.AssetExecutionContext
    index: Index
    failures: BatchFailures = field(default_factory=BatchFailures)

    def index_all(self, batches: Sequence[str]) -> None:
        """Index batches at once, and report each as soon as it is committed: the run may be killed.

        If the budget ends in one, or a model cannot be used, no other begins.
        """
        run, index, log = self.context.run, self.index, self.context.log

        def index_one(batch: str, reading: Reading) -> tuple[stage.IndexedBatch, float]:
            started = time.monotonic()
            with masked_errors():
                models = index.models(batch, run.run_id)
                return stage.index_batch(index, batch, models, run.run_id, reading), started

        def meets_all(outcome: object) -> bool:
            return isinstance(outcome, Exception) and not_published(outcome) is not None

        outcomes = work_on(batches, index_one, batches_at_once(index.settings), meets_all)
        with index.working.writing("index_batch", run.run_id), closing(outcomes):
            for place, (batch, outcome) in enumerate(outcomes, start=1):
                which = f"batch {batch} ({place} of {len(batches)})" if len(batches) > 1 else f"batch {batch}"
                if isinstance(outcome, Exception):
                    self.failures.add(batch, outcome)
                    log.error("%s failed: %s", which, outcome)
                    continue
                indexed, seconds = outcome[0], time.monotonic() - outcome[1]
                skipped = indexed.errors.filter(~pl.col("stage").is_in(OF_READ_TEXT))
                counts = (indexed.frames["documents"].height, indexed.frames["text_units"].height, skipped.height)
                log.info("%s: %d documents, %d text units, %d skipped, %.1f s", which, *counts, seconds)
                if skipped.height:
                    errors = [f"{source}: {error}" for source, error in skipped.select("source", "error").iter_rows()]
                    log.warning("Skipped in %s: %s", which, shown(listed(errors, _ERRORS_LOGGED, "; ")))
                self.report(batch, batch_metadata(self.names, batch, indexed, seconds))

    def report(self, batch: str, metadata: Metadata) -> None:
        """Report that tables of a batch are materialized."""
        for name, values in metadata.items():
            self.context.log_event(dg.AssetMaterialization(self.names.key(name), partition=batch, metadata=values))


def batch_metadata(names: IndexNames, batch: str, indexed: stage.IndexedBatch, seconds: float) -> Metadata:
    """Metadata of the tables that were written for a batch."""
    failed, lossy = pl.col("stage") == "extract", pl.col("stage").is_in(LOSS_STAGES)
    done = indexed.frames["text_units"].filter(pl.col("extractor").str.starts_with(EXTRACTOR))["document_id"]
    documents = indexed.frames["documents"]
    note = without_names(documents.filter(pl.col("id").is_in(done.implode()))["language"])
    more = {
        "documents": {
            **errors_metadata(names, "problems", indexed.errors.filter(~failed & ~lossy), batch),
            **_left_out_metadata(documents),
        },
        "entity_mentions": {
            **errors_metadata(names, "failed_text_units", indexed.errors.filter(failed), batch),
            **usage_metadata(indexed.usage),
            **({"without_names": note} if note else {}),
        },
    }
    return {
        name: table_metadata(name, indexed.changes[name], seconds, frame, **more.get(name, {}))
        for name, frame in indexed.frames.items()
    }


def _left_out_metadata(documents: pl.DataFrame) -> dict[str, dg.MetadataValue]:
    """How much of the files was left out by intent, such as comments, hidden sheets and base64."""
    counts = Counter[str]()
    for raw_data in documents["raw_data"].drop_nulls():
        if '"left_out": {' in raw_data:
            values = json.loads(raw_data)["left_out"]
            counts.update({name: n for name, n in values.items() if isinstance(n, int)})
    return {"left_out": dg.MetadataValue.json(dict(counts))} if counts else {}
