"""Executes the job update_index in this process: a run as any other, which the UI shows and cancels."""

import contextlib
import logging
import os
import signal
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import dagster as dg

from graphrag_assets.assets.asset_checks import FAILED_CHECKS, failed_check_messages
from graphrag_assets.assets.automation import fail_dead_runs
from graphrag_assets.assets.corpus import FAILED, STOPPED
from graphrag_assets.assets.dagster_home import dagster_instance, make_home
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_definitions import index_definitions
from graphrag_assets.assets.index_names import BATCH_STATE, PUBLICATION, UPDATE_INDEX, IndexNames
from graphrag_assets.assets.scan import Which
from graphrag_assets.runtime.interruption import raise_if_interrupted, was_interrupted

_SECONDS_BETWEEN_LOOKS = 1.0
OnEvent = Callable[[dg.DagsterEvent], None]


class Updated(NamedTuple):
    """What a run of update_index has done.

    Attributes:
        indexed: the batches that were committed.
        failed: the batches that failed, and why.
        reason: why everything after the batches failed; None if it succeeded, or did not begin.
        published: the number of the publication that was made or found, and whether it is new.
        not_published: what to say if nothing was published because of a batch.
    """

    run_id: str
    indexed: frozenset[str]
    failed: dict[str, str]
    reason: str | None
    published: tuple[int, bool] | None
    not_published: str


def update_index(index: Index, batches: Sequence[str], on_event: OnEvent) -> Updated:
    """Index batches, then refresh and publish; `on_event` gets each event of the run as it happens.

    Raises:
        KeyboardInterrupt: a signal, or a person in the UI, ended the run.
    """
    names, run_id = IndexNames(), str(uuid.uuid4())
    config = {"batches": list(batches)} if batches else {"which": Which.NOTHING.name}
    with dagster_instance(make_home(index.settings)) as instance:
        fail_dead_runs(names, instance)

        def tell(event: dg.DagsterEvent) -> None:
            run = instance.get_run_by_id(run_id) if event.is_step_failure and was_interrupted() else None
            if run:  # Dagster would call it a failure
                instance.report_run_canceling(run)
            on_event(event)

        definitions = dg.Definitions.merge(
            index_definitions(names, index.overrides, index.keys),
            dg.Definitions(loggers={"console": _teller(tell)}),
        )
        with _canceled_from_outside(instance, run_id):
            done = definitions.resolve_job_def(UPDATE_INDEX).execute_in_process(
                {"ops": {BATCH_STATE: {"config": config}}, "loggers": {"console": {}}},
                instance,
                raise_on_error=False,
                run_id=run_id,
            )
        raise_if_interrupted()
        return _result_of(done, instance, batches)


def _teller(on_event: OnEvent) -> dg.LoggerDefinition:
    """Return a logger that passes the events of a run on, and prints nothing."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            event = getattr(record, "dagster_meta", {}).get("dagster_event")
            if event:
                on_event(event)

    @dg.logger
    def teller(_: dg.InitLoggerContext) -> logging.Logger:
        logger = logging.Logger("graphrag_assets.run", logging.DEBUG)
        logger.addHandler(Handler())
        return logger

    return teller


@contextlib.contextmanager
def _canceled_from_outside(instance: dg.DagsterInstance, run_id: str) -> Iterator[None]:
    """Interrupt this process when the run is canceled in the UI."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_SECONDS_BETWEEN_LOOKS):
            run = instance.get_run_by_id(run_id)
            if run and run.status in (dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED):
                os.kill(os.getpid(), signal.SIGINT)
                return

    watcher = threading.Thread(target=watch, name="watch-run", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _result_of(done: dg.ExecuteInProcessResult, instance: dg.DagsterInstance, batches: Sequence[str]) -> Updated:
    materialized = [event.materialization for event in done.all_events if event.is_step_materialization]
    indexed = frozenset(batches).intersection(one.partition for one in materialized if one.partition)
    metadata: dict[str, Any] = {one.asset_key.path[-1]: one.metadata for one in materialized}
    state, published = metadata.get(BATCH_STATE, {}), metadata.get(PUBLICATION)
    checks = failed_check_messages(instance, done.run_id)
    reasons, not_published = list[str](), ""
    for event in done.all_events:
        if not event.is_step_failure:
            continue
        failure, error = event.step_failure_data.user_failure_data, event.step_failure_data.error
        if failure and STOPPED in failure.metadata:
            state, not_published = failure.metadata, str(failure.metadata[STOPPED].value)
        elif event.step_key != f"check_{BATCH_STATE}" and (not error or error.cls_name != FAILED_CHECKS):
            reasons.append((failure and failure.description) or (error.message if error else "it does not say why"))
    failed: Any = state[FAILED].value if FAILED in state else {}
    said = " ".join([*checks, *(reason.strip().partition("\n")[0] for reason in reasons)])
    number = (int(published["publication"].value), bool(published["new"].value)) if published else None
    return Updated(done.run_id, indexed, dict(failed), said or None, number, not_published)
