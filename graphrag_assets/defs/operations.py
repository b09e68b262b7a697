"""Jobs whose work is not known before they look: they compare the input folder with the index, and launch runs.

The runs are those of the asset jobs, one per batch and one refresh, in the process of the job.
"""

from collections.abc import Callable
from enum import Enum

import dagster as dg
from pydantic import Field

from graphrag_assets.defs import options
from graphrag_assets.defs.index_names import (
    COMMIT,
    INDEX_EVERYTHING,
    INDEX_SELECTED,
    REFRESH_CHANGED,
    RETRY_FAILED_UNITS,
    IndexNames,
)
from graphrag_assets.defs.masked import masked
from graphrag_assets.defs.resources import begin_step, needs
from graphrag_assets.defs.runs import IndexRun, Runner, register_batches
from graphrag_assets.indexing.given_up import retry_given_up
from graphrag_assets.indexing.publish import publish_records
from graphrag_assets.indexing.scan import scan_input


class Which(Enum):
    """Which batches are indexed."""

    CHANGED = "changed"
    FAILED = "failed"
    ALL = "all"


class BatchSelection(options.BatchOptions):
    """Which batches, and how they are indexed."""

    which: Which = Field(
        default=Which.CHANGED,
        description="CHANGED: batches that differ from the input folder or have failed text units. FAILED: the latter "
        "alone. ALL. Settings given here stay with the batches that are indexed; others keep theirs.",
    )
    read_every_file: bool = Field(
        default=False,
        description="true: compare the content of every file, also of those with the same size and time as before.",
    )


def operations(names: IndexNames, get_job: Callable[[str], dg.JobDefinition]) -> dict[str, dg.JobDefinition]:
    """The jobs, by name; `get_job` finds the asset jobs that they launch."""

    def runner(context: dg.OpExecutionContext) -> Runner:
        config = {part: context.run_config[part] for part in ("resources", "loggers") if part in context.run_config}
        tags = {options.LAUNCHED_BY: context.run.root_run_id or context.run_id}
        return Runner(names, get_job, context.instance, config, tags)

    @dg.op(
        name=names.name(INDEX_SELECTED),
        required_resource_keys=needs(names),
        description="Index batches, each by a run of its own; one that fails does not stop the others.",
    )
    @masked
    def index_selected(context: dg.OpExecutionContext, config: BatchSelection) -> list[str]:
        """Returns the batches that failed."""
        index = begin_step(names, context)
        found = scan_input(index, read_every_file=config.read_every_file)
        failed_before = [*found.pending, *found.given_up]
        todo = {Which.CHANGED: found.due, Which.FAILED: failed_before, Which.ALL: found.known}[config.which]
        if config.which is Which.FAILED:
            retry_given_up(index)
        register_batches(names, context.instance, found)
        if not todo and config.which is not Which.ALL and config.asks_for_something:
            what = "has changed" if config.which is Which.CHANGED else "has failed text units"
            context.log.warning(
                "No batch %s, so the settings given have no effect. which: ALL takes every batch.", what
            )
        launch, ops = runner(context), {names.name("index_batch"): options.run_config_of(options.BatchOptions, config)}
        failed = []
        for place, batch in enumerate(todo, start=1):
            run = launch.index(batch, ops)
            _log(context, f"batch {batch} ({place} of {len(todo)})", run)
            if reason := run.not_published:
                publish_records(index)
                raise dg.Failure(f"{run.reason} {reason}", allow_retries=False)
            if not run.result.success:
                failed.append(batch)
        return failed

    @dg.op(
        name=names.name("refresh_all"),
        required_resource_keys=needs(names),
        description="Graph, communities, reports, embeddings and publication, from the mentions of all batches.",
    )
    @masked
    def refresh_all(context: dg.OpExecutionContext, config: options.RefreshOptions, failed: list[str]) -> None:
        """Fails at the end if batches have failed; the others are published."""
        ops = {
            names.name("detect_communities"): options.run_config_of(options.CommunityOptions, config),
            names.name("write_community_reports"): options.run_config_of(options.ReportOptions, config),
        }
        if config.rerun == "EVERYTHING":
            ops[names.name("knowledge_graph")] = options.run_config_of(options.GraphOptions, config)
        index = begin_step(names, context)
        run = runner(context).refresh(index, ops)
        _log(context, "refresh", run)
        if not run.result.success:
            publish_records(index)
            raise dg.Failure(run.reason, allow_retries=False)
        if failed:
            raise dg.Failure(f"Batches failed: {', '.join(failed)}. The log says why; the others are published.")

    @dg.graph(name=names.name("index_and_refresh"))
    def index_and_refresh() -> None:
        refresh_all(index_selected())

    def launching(name: str, which: Which, description: str) -> dg.JobDefinition:
        ops = {index_selected.name: BatchSelection(which=which), refresh_all.name: options.RefreshOptions()}
        return index_and_refresh.to_job(
            names.name(name),
            description=description,
            config=dg.RunConfig(ops=ops),
            executor_def=dg.in_process_executor,
            tags=COMMIT,
        )

    return {
        name: launching(name, which, description)
        for name, which, description in (
            (REFRESH_CHANGED, Which.CHANGED, "Index what changed in the input folder, refresh, publish."),
            (INDEX_EVERYTHING, Which.ALL, "Index every batch again, refresh, publish. Paid calls are in the ledger."),
            (RETRY_FAILED_UNITS, Which.FAILED, "Extract failed text units again, refresh, publish."),
        )
    }


def _log(context: dg.OpExecutionContext, what: str, run: IndexRun) -> None:
    if run.result.success:
        context.log.info("%s: done by run %s", what, run.result.run_id)
    else:
        context.log.error("%s failed in run %s: %s", what, run.result.run_id, run.reason)
