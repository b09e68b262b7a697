"""What is indexed of each batch, and the step that indexes the batches that are due.

Which batches these are is not known before the step looks, so its run has no partition. It reports the partitions that
it has materialized.
"""

from collections.abc import Iterator

import dagster as dg
from pydantic import Field

from graphrag_assets.defs.corpus import BatchFailures, batch_metadata, indexed_batches, report_batch
from graphrag_assets.defs.index_names import BATCH_ASSETS, BATCH_STATE, UPDATE_INDEX, IndexNames
from graphrag_assets.defs.masked import masked
from graphrag_assets.defs.options import BatchOptions
from graphrag_assets.defs.registration import register_batches
from graphrag_assets.defs.resources import MODELS, begin_step, needs
from graphrag_assets.indexing.given_up import retry_given_up
from graphrag_assets.indexing.index_batch import CODE_VERSION
from graphrag_assets.indexing.scan import Which, present_inputs, scan_input
from graphrag_assets.store import schema

_FAILED, _CHECK = "failed", "every_batch_is_indexed"
_STATEMENT = "No batch failed when the due batches were last indexed."


class DueBatches(BatchOptions):
    """Which batches are indexed before the graph is refreshed, and how."""

    which: Which | None = Field(
        default=None,
        description="CHANGED: batches that differ from the input folder or have failed text units. FAILED: the latter "
        "alone. ALL. Empty: CHANGED in the job update_index, otherwise none. Settings given here stay with the batches "
        "that are indexed; others keep theirs.",
    )
    batches: list[str] = Field(default=[], description="Only these batches, whether or not they have changed.")
    read_every_file: bool = Field(
        default=False,
        description="true: compare the content of every file, also of those with the same size and time as before.",
    )


def batch_state(names: IndexNames) -> dg.AssetsDefinition:
    """The asset of the batches from which everything after them is made."""

    table = schema.BATCH_STATE
    columns = [dg.TableColumn(column.name, column.type, description=column.comment) for column in table.columns]

    @dg.multi_asset(
        name=names.name(BATCH_STATE),
        specs=[
            dg.AssetSpec(
                names.key(BATCH_STATE),
                deps=names.keys(BATCH_ASSETS),
                group_name=names.group_name("corpus"),
                code_version=CODE_VERSION,
                description=f"{table.comment}\n\nIts step in the job update_index first indexes the batches that are "
                "due; otherwise it computes nothing.",
                kinds={"duckdb"},
                metadata={"dagster/column_schema": dg.TableSchema(columns), "dagster/table_name": table.name},
            )
        ],
        required_resource_keys=needs(names, MODELS),
    )
    @masked
    def batch_state(context: dg.AssetExecutionContext, config: DueBatches) -> dg.MaterializeResult:
        """Index the batches that are due. One that fails does not stop the others."""
        index, failures, which = begin_step(names, context), BatchFailures(), config.which
        if context.run.job_name == names.name(UPDATE_INDEX):
            which = which or Which.CHANGED
        if which or config.batches:
            scan = scan_input(index, read_every_file=config.read_every_file)
            register_batches(names, context.instance, scan)
            if which is Which.FAILED:
                retry_given_up(index)
            due = scan.chosen(which or Which.CHANGED, config.batches)
            _log_due(context, due, config)
            for batch, indexed, seconds in indexed_batches(context, index, config, due, failures):
                report_batch(names, context, index, batch, batch_metadata(names, batch, indexed, seconds))
            if failures.stopped:
                raise failures.as_failure()
        n_batches = index.working.read("SELECT count(*) FROM batch_state WHERE n_documents > 0").item()
        return dg.MaterializeResult(
            metadata={"dagster/row_count": n_batches, _FAILED: str(failures)},
            data_version=dg.DataVersion(present_inputs(index)),
        )

    return batch_state


def _log_due(context: dg.AssetExecutionContext, due: list[str], config: DueBatches) -> None:
    context.log.info("%d batches to index: %s", len(due), ", ".join(due) or "-")
    if not due and config.which is not Which.ALL and config.asks_for_something:
        what = "has failed text units" if config.which is Which.FAILED else "has changed"
        context.log.warning("No batch %s, so the settings given have no effect. which: ALL takes every batch.", what)


def batches_check(names: IndexNames) -> dg.AssetChecksDefinition:
    """The check that fails the run in which a batch has failed, while the others are published."""

    @dg.multi_asset_check(
        name=names.name(f"check_{BATCH_STATE}"),
        specs=[dg.AssetCheckSpec(_CHECK, asset=names.key(BATCH_STATE), description=_STATEMENT)],
        can_subset=True,
    )
    def check_batch_state(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        event = context.instance.get_latest_materialization_event(names.key(BATCH_STATE))
        state = event.asset_materialization if event else None
        failed = str(state.metadata[_FAILED].value) if state and _FAILED in state.metadata else ""
        yield dg.AssetCheckResult(check_name=_CHECK, asset_key=names.key(BATCH_STATE), passed=not failed)
        if failed:
            raise dg.Failure(f"{failed}. The other batches are indexed.", allow_retries=False)

    return check_batch_state


def batches_check_key(names: IndexNames) -> dg.AssetCheckKey:
    """The key of that check."""
    return dg.AssetCheckKey(names.key(BATCH_STATE), _CHECK)
