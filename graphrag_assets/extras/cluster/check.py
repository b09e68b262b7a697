"""What a machine lacks to be one of several that index together, found by trying it."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import dagster as dg
import polars as pl
import psutil
import sqlalchemy as sa

from graphrag_assets.defs.dead_runs import celery_of
from graphrag_assets.defs.index_names import COMMIT, EXTRACT, QUEUE
from graphrag_assets.errors import GraphRAGError
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.index_batch import named_options
from graphrag_assets.indexing.staged_batches import staging_of
from graphrag_assets.runtime.outgoing import shown
from graphrag_assets.store.staging import Manifest, Staging

_SECONDS = 5.0
_MAX_SKEW = 60.0
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "fuse.glusterfs", "fuse.sshfs", "lustre"}
_TRIED = "cluster-check"


class Finding(NamedTuple):
    """A check, its result, and the remedy; without a remedy it passed."""

    what: str
    found: str
    remedy: str = ""


def check_machine(index: Index) -> Iterator[Finding]:
    """Look at the input folder, the staging area, the other machines' settings and working databases, the ledger, the
    clock, Dagster and its queues.
    """
    yield _tried("input folder", lambda: f"{len(index.input.batches())} batches", "Set GRAPHRAG_INPUT.")
    if not index.settings.staging:
        yield Finding("staging area", "none", "Set GRAPHRAG_STAGING on all machines, and on none without it.")
    else:
        remedy = "Set GRAPHRAG_STAGING to a place that all machines write to."
        yield _tried("staging area", lambda: _try_staging(index), remedy)
        if staging := staging_of(index):
            yield from _compare(index, staging)
    if index.settings.calls_models:
        yield _tried("ledger", lambda: _try_ledger(index), "Set GRAPHRAG_LEDGER_URL to a PostgreSQL database.")
    databases = (index.settings.ledger_url, os.environ.get("DAGSTER_POSTGRES_URL", ""))
    if url := next((url for url in databases if url.startswith("postgresql")), None):
        yield _compare_clocks(url)
    if not os.environ.get("DAGSTER_HOME"):
        yield Finding("Dagster", "no DAGSTER_HOME", "Set DAGSTER_HOME to a folder with deploy/cluster/dagster.yaml.")
        return
    try:
        instance = dg.DagsterInstance.get()
    except Exception as error:  # whatever its storage raises
        yield Finding("Dagster", shown(_first_line(error)), "Check DAGSTER_POSTGRES_URL and that PostgreSQL is up.")
        return
    with instance:
        yield _tried("Dagster", lambda: _try_dagster(instance), "Check DAGSTER_POSTGRES_URL and that PostgreSQL is up.")
        if celery := celery_of(instance):
            remedy = "Check CELERY_BROKER_URL, and start a worker for each queue."
            yield _tried(
                "queues", lambda: _try_queues(celery.control.inspect(timeout=_SECONDS).active_queues()), remedy
            )


def _tried(what: str, attempt: Callable[[], str], remedy: str) -> Finding:
    try:
        return Finding(what, attempt())
    except GraphRAGError as error:  # says what to do
        return Finding(what, "not usable", str(error))
    except Exception as error:  # whatever a client library raises
        return Finding(what, shown(_first_line(error)), remedy)


def _try_staging(index: Index) -> str:
    """Write, read and delete a revision."""
    staging = staging_of(index)
    assert staging is not None
    frame = pl.DataFrame({"tried": [1]})
    staged = staging.write({"index_errors": frame}, Manifest(_TRIED, "", {}, {}, socket.gethostname(), 0.0, {}))
    read = staging.read(staged)
    staging.sweep(_TRIED)
    if read is None or not read["index_errors"].equals(frame):
        raise ValueError("the data read differs from the data written")
    waiting = len(staging.revisions())
    return f"written, read and deleted; {waiting} batches wait to be committed"


_IF_GONE = "If a machine is gone, delete its file in the folder machines of the staging area."


def _compare(index: Index, staging: Staging) -> Iterator[Finding]:
    """Compare what machines have declared: the settings that determine rows, and who has the working database."""
    ours, has_database = named_options(index), index.database.exists()
    try:
        machines = staging.declare(socket.gethostname(), {"settings": ours, "working_database": has_database})
    except GraphRAGError as error:
        yield Finding("settings", "not compared", str(error))
        return
    differing = [
        f"{name}: {theirs['settings'].get(name)} on {machine}, {ours.get(name)} here"
        for machine, theirs in machines.items()
        for name in sorted(ours.keys() | theirs["settings"].keys())
        if ours.get(name) != theirs["settings"].get(name)
    ]
    found = f"compared with {len(machines) - 1} other machines"
    remedy = f"{'; '.join(differing)}. Make them the same, and run `doctor cluster` on each machine again. {_IF_GONE}"
    yield Finding("settings", found, remedy if differing else "")
    yield _find_working_database(index, [machine for machine, theirs in machines.items() if theirs["working_database"]])


def _find_working_database(index: Index, having: list[str]) -> Finding:
    what, found = "working database", f"on {', '.join(having)}" if having else "none yet"
    if len(having) > 1:
        remedy = f"Only the committer has one: delete the folder index in GRAPHRAG_DATA of the others. {_IF_GONE}"
        return Finding(what, found, remedy)
    mounts = [(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True)]
    if (kind := file_system_of(index.settings.data, mounts)) in _NETWORK:
        return Finding(what, f"its folder is on {kind}", "Set GRAPHRAG_DATA to a local disk: DuckDB's locks need one.")
    return Finding(what, found)


def file_system_of(folder: Path, mounts: list[tuple[str, str]]) -> str:
    """The type of the file system that a folder is on, of those mounted: place and type."""
    within = [(place, kind) for place, kind in mounts if folder.resolve().is_relative_to(place)]
    return max(within, key=lambda mount: len(mount[0]), default=("", ""))[1]


def _try_ledger(index: Index) -> str:
    _time_of(index.settings.ledger_url)
    return "reached"


def _compare_clocks(url: str) -> Finding:
    try:
        skew = abs(_time_of(url) - time.time())
    except Exception as error:  # whatever the client library raises
        return Finding("clock", f"not compared: {shown(_first_line(error))}", "Check that PostgreSQL is up.")
    found = f"{skew:.0f} s from that of PostgreSQL"
    remedy = (
        "Set it by NTP. Nothing is lost by it, but waits after failures and for files to settle are off by as much."
    )
    return Finding("clock", found, remedy if skew > _MAX_SKEW else "")


def _time_of(url: str) -> float:
    """The time of a PostgreSQL database; ValueError for another one."""
    if not url.startswith("postgresql"):
        raise ValueError("it is not PostgreSQL")
    engine = sa.create_engine(url, connect_args={"connect_timeout": int(_SECONDS)})
    try:
        with engine.connect() as connection:
            return float(connection.scalar(sa.text("SELECT extract(epoch FROM clock_timestamp())")) or 0)
    finally:
        engine.dispose()


def _try_dagster(instance: dg.DagsterInstance) -> str:
    n_running = instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
    return f"{type(instance.run_launcher).__name__}, {n_running} runs in progress"


def _try_queues(active: dict[str, list[dict[str, str]]] | None) -> str:
    """Raises ValueError if a queue has no worker."""
    workers = {name: {queue["name"] for queue in queues} for name, queues in (active or {}).items()}
    wanted = (EXTRACT[QUEUE], COMMIT[QUEUE])
    counted = {queue: sum(queue in queues for queues in workers.values()) for queue in wanted}
    if empty := [queue for queue, n in counted.items() if not n]:
        raise ValueError(f"no worker for the queue {' and '.join(empty)}")
    return ", ".join(f"{n} workers for {queue}" for queue, n in counted.items())


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
