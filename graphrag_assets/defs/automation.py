"""Sensors and schedule: watch the input folder, propagate changes to the publication.

`reconcile` decides what to do. The sensor that indexes and the schedule are off until they are switched on in the UI,
or by GRAPHRAG_AUTOMATION=on.
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import dagster as dg

from graphrag_assets.defs.checks import up_to_date_evaluation
from graphrag_assets.defs.index_names import (
    BATCH_STATE,
    BATCHES_PER_RUN,
    DOCUMENT_BATCHES_SENSOR,
    GLOBAL_ASSETS,
    INDEX_BATCHES,
    NIGHTLY_REFRESH,
    REFRESH_GRAPH,
    REGISTER_BATCHES_SENSOR,
    UPDATE_INDEX,
    IndexNames,
)
from graphrag_assets.defs.reconcile import (
    Failures,
    Observed,
    Request,
    are_neighbors,
    batch_request,
    decide,
    in_runs,
    refresh_request,
    wanted,
)
from graphrag_assets.defs.registration import source_versions, version_of
from graphrag_assets.defs.resources import needs, open_index
from graphrag_assets.errors import GraphRAGError, masked_errors
from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.checks import out_of_date
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.scan import present_inputs, scan, scan_input
from graphrag_assets.llm.model_errors import BudgetExceeded, CircuitOpen, ModelUnusable
from graphrag_assets.runtime.outgoing import listed
from graphrag_assets.store.batches import recorded_inputs

_PARTITION = "dagster/partition"
_RANGE_START, _RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def register_batches_sensor(names: IndexNames) -> dg.SensorDefinition:
    """The sensor that tells Dagster what is in the input folder. It is always on, and starts nothing."""

    @dg.sensor(
        name=names.name(REGISTER_BATCHES_SENSOR),
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        required_resource_keys=needs(names),
        description="Registers new entries of the input folder as partitions, so that they can be materialized by "
        "hand, and reports the versions of changed ones, so that their assets show as unsynced.",
    )
    @masked_errors()
    def register_batches_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        return report_batches(names, open_index(names, context.resources), context.instance, context.cursor)

    return register_batches_sensor


def report_batches(
    names: IndexNames, index: Index, instance: dg.DagsterInstance, cursor: str | None
) -> dg.SensorResult | dg.SkipReason:
    """Add partitions of new batches, and report what differs from the index and was not reported yet.

    That are the versions of batches, and, once there is a publication, whether it is up to date: Dagster calls a
    partitioned asset fresh without looking at its partitions, so that nothing else shows an edit. `cursor` holds what
    was reported last.
    """
    try:
        found = scan(index)
    except GraphRAGError as error:  # an unreadable folder is not an empty one
        return dg.SkipReason(str(error))
    last = {"versions": {}, "lacking": ""} | json.loads(cursor or "{}")
    reported, rows, published = last["versions"], out_of_date(index, found), recorded_inputs(index.working, "published")
    versions = {batch: version_of(found, batch) for batch in [*found.revised, *found.deleted]}
    changed = [batch for batch, version in versions.items() if reported.get(batch) != version]
    new = sorted(found.digests.keys() - set(instance.get_dynamic_partitions(names.partitions_name)))
    said = [f"Registered {listed(new)}."] if new else []
    said += [f"Reported new versions of {listed(changed)}."] if changed else []
    events: list[dg.AssetObservation | dg.AssetMaterialization | dg.AssetCheckEvaluation]
    events = [*source_versions(names, found, changed)]
    lacking = stable_id(published, *rows.iter_rows(), *sorted(versions.items())) if published and rows.height else ""
    if lacking != last["lacking"]:
        events.append(up_to_date_evaluation(names, rows))
    return dg.SensorResult(
        skip_reason=" ".join(said) or f"All {len(found.digests)} batches of the input folder are registered.",
        dynamic_partitions_requests=[names.batches.build_add_request(new)] if new else None,
        asset_events=events,
        cursor=json.dumps({"versions": versions, "lacking": lacking}),
    )


def document_batches_sensor(names: IndexNames, jobs: Mapping[str, Any], automated: bool) -> dg.SensorDefinition:
    """The sensor that indexes what changes."""

    @dg.sensor(
        name=names.name(DOCUMENT_BATCHES_SENSOR),
        jobs=[jobs[name] for name in (INDEX_BATCHES, UPDATE_INDEX, REFRESH_GRAPH)],
        minimum_interval_seconds=15,
        default_status=dg.DefaultSensorStatus.RUNNING if automated else dg.DefaultSensorStatus.STOPPED,
        required_resource_keys=needs(names),
        description="Watches the input folder: indexes new, edited and deleted batches, then refreshes and publishes.",
    )
    @masked_errors()
    def document_batches_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        return request_runs(names, open_index(names, context.resources), context.instance)

    return document_batches_sensor


def request_runs(names: IndexNames, index: Index, instance: dg.DagsterInstance) -> dg.SensorResult | dg.SkipReason:
    """Observe, decide, request runs. A tick without a request says why."""
    try:
        observed = observe(names, index, instance)
    except GraphRAGError as error:  # an unreadable folder is not an empty one
        return dg.SkipReason(str(error))
    decision = decide(observed)
    partitions = [*instance.get_dynamic_partitions(names.partitions_name), *decision.add]
    runs = in_runs(decision.batches, partitions, BATCHES_PER_RUN)
    requests = [_run_request(names, run, partitions) for run in runs]
    requests += [_run_request(names, [decision.refresh], [])] if decision.refresh else []
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None
        if requests
        else names.in_words(listed(decision.waiting, separator=" ")) or "The publication is up to date.",
        dynamic_partitions_requests=[
            *([names.batches.build_add_request(decision.add)] if decision.add else []),
            *([names.batches.build_delete_request(decision.drop)] if decision.drop else []),
        ],
        asset_events=source_versions(names, observed.scan, [r.batch for r in decision.batches if r.batch]),
    )


def _run_request(names: IndexNames, requests: Sequence[Request], partitions: Sequence[str]) -> dg.RunRequest:
    """The run for requests that are indexed together, or for a refresh.

    Dagster gives a run one partition, or all from one to another. Batches that are no neighbors among the partitions
    are named to the step batch_state.
    """
    first, last = requests[0], requests[-1]
    # The sensor itself tries again, and waits longer each time: with Dagster's retries, runs would multiply.
    tags = {"dagster/max_retries": "0"}
    tags |= dict(zip(names.request_tags, (request.name for request in requests), strict=False))
    if len(requests) > 1:
        key = stable_id(*(request.key for request in requests))
        if are_neighbors(requests, partitions):
            tags |= {_RANGE_START: str(first.batch), _RANGE_END: str(last.batch)}
            return dg.RunRequest(key, job_name=names.name(INDEX_BATCHES), tags=tags)
        config = {"ops": {names.name(BATCH_STATE): {"config": {"batches": [request.batch for request in requests]}}}}
        return dg.RunRequest(
            key,
            job_name=names.name(UPDATE_INDEX),
            asset_selection=[names.key(BATCH_STATE)],
            run_config=config,
            tags=tags,
        )
    job = REFRESH_GRAPH if first.batch is None else INDEX_BATCHES
    return dg.RunRequest(first.key, job_name=names.name(job), partition_key=first.batch, tags=tags)


def observe(names: IndexNames, index: Index, instance: dg.DagsterInstance) -> Observed:
    """The present state: folder, database, publication, and Dagster's runs.

    Raises:
        InputError: the input folder cannot be read, or is not the one of this index.
    """
    found = scan_input(index)
    partitions = instance.get_dynamic_partitions(names.partitions_name)
    indexing, refreshing = _under_way(names, instance, partitions, found.digests)
    observed = Observed(
        scan=found,
        keys=frozenset(partitions),
        indexing=indexing,
        refreshing=refreshing,
        inputs=present_inputs(index),
        published=recorded_inputs(index.working, "published"),
        now=time.time(),
    )
    requests = [*(batch_request(found, batch) for batch in wanted(observed)), refresh_request(observed.inputs)]
    return replace(observed, failures=_failures(instance, names.request_tags, requests))


def _under_way(
    names: IndexNames, instance: dg.DagsterInstance, partitions: Sequence[str], batches: Iterable[str]
) -> tuple[frozenset[str], bool]:
    """The batches in unfinished runs of this index, and whether one of them refreshes the assets after the batches."""
    of_any_batch = names.name(UPDATE_INDEX)
    refreshing_jobs = {of_any_batch, names.name(REFRESH_GRAPH)}
    global_keys = set(names.keys(GLOBAL_ASSETS))
    indexing: set[str] = set()
    refreshing = False
    for run in instance.get_runs(dg.RunsFilter(statuses=UNFINISHED)):
        if not names.has_run(run):
            continue
        if _PARTITION in run.tags:
            indexing.add(run.tags[_PARTITION])
        elif _RANGE_START in run.tags:
            ends = [run.tags[tag] for tag in (_RANGE_START, _RANGE_END)]
            registered = set(ends) <= set(partitions)  # somebody may have deleted a partition by hand
            first, last = map(partitions.index, ends) if registered else (0, len(partitions))
            indexing.update(partitions[first : last + 1])
        elif run.job_name == of_any_batch:
            step = cast(Any, run.run_config).get("ops", {}).get(names.name(BATCH_STATE), {})
            indexing.update(step.get("config", {}).get("batches") or batches)
        refreshing |= run.job_name in refreshing_jobs or bool(set(run.asset_selection or ()) & global_keys)
    return frozenset(indexing), refreshing


def _failures(instance: dg.DagsterInstance, tags: Sequence[str], requests: Sequence[str]) -> dict[str, Failures]:
    """Failed requests, by name; Dagster's own retries of a run count as the same attempt."""
    over = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
    failed = defaultdict[str, list[dg.RunRecord]](list)
    for tag in tags:
        for record in instance.get_run_records(dg.RunsFilter(tags={tag: list(requests)}, statuses=over)):
            failed[record.dagster_run.tags[tag]].append(record)
    return {name: _failures_of(instance, records) for name, records in failed.items()}


def _failures_of(instance: dg.DagsterInstance, records: Sequence[dg.RunRecord]) -> Failures:
    canceled = any(record.dagster_run.status == dg.DagsterRunStatus.CANCELED for record in records)
    attempts = {record.dagster_run.root_run_id or record.dagster_run.run_id for record in records}
    last = max(records, key=lambda record: (record.end_time or 0.0, record.storage_id))
    entries = instance.all_logs(last.dagster_run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    events = [entry.dagster_event for entry in entries if entry.dagster_event]
    return Failures(len(attempts), last.end_time or 0.0, canceled, _is_unpaid(events))


def _is_unpaid(events: Sequence[dg.DagsterEvent]) -> bool:
    """Whether a step has failed because the budget is used up or a model cannot be used."""
    unpaid = {kind.__name__ for kind in (BudgetExceeded, CircuitOpen, ModelUnusable)}
    errors = [event.step_failure_data.error for event in events]
    return any(
        error and not unpaid.isdisjoint((error.cls_name, error.cause and error.cause.cls_name)) for error in errors
    )


def nightly_refresh(names: IndexNames, job: Any, automated: bool) -> dg.ScheduleDefinition:
    """The schedule of the job update_index, which then reads every file of the input folder.

    An edit that keeps size and time is found on a local disk by inode and change time, which not every file system has.
    """
    return dg.ScheduleDefinition(
        name=names.name(NIGHTLY_REFRESH),
        job=job,
        cron_schedule="0 3 * * *",  # nightly, when few edit and ask
        run_config={"ops": {names.name(BATCH_STATE): {"config": {"read_every_file": True}}}},
        default_status=dg.DefaultScheduleStatus.RUNNING if automated else dg.DefaultScheduleStatus.STOPPED,
        description="Reads every file, indexes what changed, retries failed text units, refreshes, publishes.",
    )
