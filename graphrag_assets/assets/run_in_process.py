"""Executes the job update_index in this process: a run of the Dagster home, which its UI shows and cancels.

The home of an index has its runs, partitions and ticks, and is kept beside it in the data folder.
"""

import contextlib
import logging
import os
import signal
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import yaml
from filelock import FileLock

from graphrag_assets.assets.automation import fail_dead_runs
from graphrag_assets.assets.checks import CHECKS
from graphrag_assets.assets.corpus import FAILED, NOT_PUBLISHED, STOPPED
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_definitions import index_definitions
from graphrag_assets.assets.index_names import BATCH_STATE, PUBLICATION, UPDATE_INDEX, IndexNames
from graphrag_assets.assets.scan import BatchSelection
from graphrag_assets.errors import SettingsError
from graphrag_assets.runtime.interruption import first_signal, raise_if_interrupted
from graphrag_assets.settings import Settings

_SECONDS_BETWEEN_LOOKS = 1.0
_FAILED_CHECKS = "DagsterAssetCheckFailedError"
"""What Dagster raises in a step with failed blocking checks; it does not say what to do."""
OnEvent = Callable[[dg.DagsterEvent], None]


class Updated(NamedTuple):
    """What a run of update_index has done.

    Attributes:
        indexed: the batches that were committed.
        failed: the batches that failed, and why.
        reason: why everything after the batches failed; None if it succeeded, or did not begin.
        published: the number of the publication that was made or found, and whether it is new.
        not_published: what to say if nothing was published because of a batch.
        warnings: of checks that are not about the tables, such as that of the retrieval.
    """

    run_id: str
    indexed: frozenset[str]
    failed: dict[str, str]
    reason: str | None
    published: tuple[int, bool] | None
    not_published: str
    warnings: list[str]


def update_index(index: Index, batches: Sequence[str], on_event: OnEvent) -> Updated:
    """Index batches, then refresh and publish; `on_event` gets each event of the run as it happens.

    Raises:
        KeyboardInterrupt: a signal, or a person in the UI, ended the run.
    """
    names, run_id = IndexNames(), str(uuid.uuid4())
    config = {"batches": list(batches)} if batches else {"which": BatchSelection.NOTHING.name}
    with dagster_instance(make_home(index.settings)) as instance:
        fail_dead_runs(names, instance)

        def tell(event: dg.DagsterEvent) -> None:
            run = instance.get_run_by_id(run_id) if event.is_step_failure and first_signal() else None
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
        return _result_of(done, batches)


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


def _result_of(done: dg.ExecuteInProcessResult, batches: Sequence[str]) -> Updated:
    materialized = [event.materialization for event in done.all_events if event.is_step_materialization]
    indexed = frozenset(batches).intersection(one.partition for one in materialized if one.partition)
    metadata: dict[str, Any] = {one.asset_key.path[-1]: one.metadata for one in materialized}
    state, published = metadata.get(BATCH_STATE, {}), metadata.get(PUBLICATION)
    failed_checks = [check for check in done.get_asset_check_evaluations() if not check.passed]
    checks = [
        f"Check failed: {check.description} {check.metadata['remedy'].value}"
        for check in failed_checks
        if check.blocking
    ]
    of_tables = {check.name for check in CHECKS}  # `graphrag-assets status` shows what these found
    warnings = [
        check.description
        for check in failed_checks
        if check.description and not check.blocking and check.check_name not in of_tables
    ]
    reasons, not_published = list[str](), ""
    for event in done.all_events:
        if not event.is_step_failure:
            continue
        failure, error = event.step_failure_data.user_failure_data, event.step_failure_data.error
        if failure and STOPPED in failure.metadata:
            state, not_published = failure.metadata, NOT_PUBLISHED
        elif event.step_key != f"check_{BATCH_STATE}" and (not error or error.cls_name != _FAILED_CHECKS):
            reasons.append((failure and failure.description) or (error.message if error else "it does not say why"))
    failed: Any = state[FAILED].value if FAILED in state else {}
    said = " ".join([*checks, *(reason.strip().partition("\n")[0] for reason in reasons)])
    number = (int(published["publication"].value), bool(published["new"].value)) if published else None
    return Updated(done.run_id, indexed, dict(failed), said or None, number, not_published, warnings)


_OUTPUT_STAYS = {
    "compute_logs": {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
}
_LOCK = "opening.lock"
_WORKSPACE = """\
load_from:
  - python_module: {module_name: graphrag_assets.definitions, location_name: graphrag_assets}
"""


def make_home(settings: Settings) -> Path:
    """Return the home of the index, written if it has none. DAGSTER_HOME, where it is set, is used as it is.

    Raises:
        SettingsError: DAGSTER_HOME is not the absolute path of a folder.
    """
    if chosen := os.environ.get("DAGSTER_HOME"):
        if not (Path(chosen).is_absolute() and Path(chosen).is_dir()):
            raise SettingsError(
                f"DAGSTER_HOME={chosen} must be the absolute path of an existing folder. Create it, or unset "
                "DAGSTER_HOME to use the home of the index."
            )
        return Path(chosen)
    home = settings.data.absolute() / "dagster"
    if (home / "dagster.yaml").exists():
        return home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    packaged = resources.files("graphrag_assets") / "dagster.yaml"  # of the project, in a wheel inside the package
    template = packaged if packaged.is_file() else Path(__file__).resolve().parents[2] / "dagster.yaml"
    configuration = yaml.safe_load(template.read_text(encoding="utf-8"))
    configuration["storage"]["sqlite"]["base_dir"] = str(home)
    configuration["compute_logs"]["config"]["base_dir"] = str(home / "logs")
    configuration["local_artifact_storage"]["config"]["base_dir"] = str(home)
    texts = {"workspace.yaml": _WORKSPACE, "dagster.yaml": yaml.safe_dump(configuration, sort_keys=False)}
    with FileLock(home / _LOCK):  # dagster.yaml comes last: with it, the home is complete
        for name, text in texts.items():
            (home / name).write_text(text, encoding="utf-8")
    return home


@contextlib.contextmanager
def dagster_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Yield the Dagster instance of a home, for a run in this process, whose output belongs to the terminal."""
    os.environ["DAGSTER_HOME"] = str(home)  # where Dagster looks for it, in this process and those it starts
    file = home / "dagster.yaml"
    configuration = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else None
    with tempfile.TemporaryDirectory() as folder, FileLock(home / _LOCK):  # one process creates the storage's tables
        changed = Path(folder) / file.name
        changed.write_text(yaml.safe_dump((configuration or {}) | _OUTPUT_STAYS), encoding="utf-8")
        opened = dg.DagsterInstance.from_config(str(home), str(changed))
    with opened as instance:
        yield instance
