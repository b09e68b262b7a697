"""Deletes records of purged documents from Dagster's storage: names of batches and, in previews, titles.

The automation compares the folder, the database and the publication, so deleting records reruns nothing. Dagster has no
call that deletes backfills, or SQLite's second copy of events without a run: what is left of them is reported.
"""

import contextlib
import shutil
import sqlite3
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import dagster as dg

from graphrag_assets.defs.automation import UNFINISHED
from graphrag_assets.defs.dagster_home import report_contents
from graphrag_assets.defs.index_names import (
    DEAD_RUNS_SENSOR,
    DOCUMENT_BATCHES_SENSOR,
    NIGHTLY_REFRESH,
    REGISTER_BATCHES_SENSOR,
    SOURCE_FILES,
    IndexNames,
)
from graphrag_assets.errors import StoreError
from graphrag_assets.extras.purge.purge import Removed, purge
from graphrag_assets.indexing.index import Index

_INSTIGATORS = (REGISTER_BATCHES_SENSOR, DOCUMENT_BATCHES_SENSOR, DEAD_RUNS_SENSOR, NIGHTLY_REFRESH)
_ALERT = "failed_runs_alert"
_PARTITION = "dagster/partition"


def purge_with_history(
    index: Index, instance: dg.DagsterInstance, dry_run: bool = False, shared_ledger: bool = False
) -> list[Removed]:
    """`purge`, and what Dagster's storage records of deleted documents.

    Raises:
        StoreError: as `purge`; or a run is in progress.
    """
    names = IndexNames()
    # Listed before the input folder is read: what comes later belongs to no deleted document, and stays.
    runs = [record for record in instance.get_run_records() if names.has_run(record.dagster_run)]
    keys = instance.get_dynamic_partitions(names.partitions_name)
    unfinished = [record.dagster_run.run_id for record in runs if record.dagster_run.status in UNFINISHED]
    if index.working.path.exists() and unfinished:
        raise StoreError(f"Run {unfinished[0]} is in progress. Purge when it has finished.")

    def purge_history(last_removal: float, batches: list[str]) -> Removed:
        records = records_to_purge(runs, keys, last_removal, batches)
        size = None if dry_run else purge_records(instance, names, index, records)
        what = f"{len(records.runs)} runs, {len(records.partitions)} partitions"
        if n_kept := _count_backfills(instance, names, last_removal):
            what += f"; {n_kept} backfills stay: only `dagster run wipe` deletes them, with all runs"
        return Removed("Dagster's storage", what, len(records), size)

    return purge(index, dry_run, shared_ledger, purge_history)


class Records(NamedTuple):
    """Ids of runs, keys of partitions."""

    runs: list[str]
    partitions: list[str]

    def __len__(self) -> int:
        return len(self.runs) + len(self.partitions)


def records_to_purge(
    runs: Sequence[dg.RunRecord],
    keys: Sequence[str],
    before: float,
    batches: Collection[str],
) -> Records:
    """Of `runs`, those created until `before` or of a batch that is not one of `batches`; of `keys`, the others."""
    concerned = []
    for record in runs:
        batch = record.dagster_run.tags.get(_PARTITION)
        if record.create_timestamp.timestamp() <= before or (batch is not None and batch not in batches):
            concerned.append(record.dagster_run.run_id)
    return Records(concerned, [key for key in keys if key not in batches])


def _count_backfills(instance: dg.DagsterInstance, names: IndexNames, before: float) -> int:
    """The number of backfills of the index until `before`, which may name deleted batches."""
    return sum(
        not names.all_keys.isdisjoint(backfill.asset_selection or ()) and backfill.backfill_timestamp <= before
        for backfill in instance.get_backfills()
    )


def purge_records(instance: dg.DagsterInstance, names: IndexNames, index: Index, records: Records) -> int:
    """Delete the records, report what the index still contains, and return the bytes freed."""
    before = _size(instance)
    if len(records):
        # Events of assets are kept a second time, by asset, with names of partitions beside them.
        own = {*names.all_keys, names.key(SOURCE_FILES)}
        is_shared = not own.issuperset(instance.get_asset_keys())
        instance.wipe_assets(list(own))
        if not is_shared:  # events without a run have the empty id: also those of others
            instance.delete_run("")
        report_contents(instance, names, index)
        instigators = {_ALERT, *(names.name(instigator) for instigator in _INSTIGATORS)}
        for state in instance.all_instigator_state():
            if state.instigator_name in instigators:
                # All ticks: the one that drops a partition comes after its batch has left the index.
                instance.purge_ticks(state.instigator_origin_id, state.selector_id, time.time())
        for key in records.partitions:
            instance.delete_dynamic_partition(names.partitions_name, key)
        for run_id in records.runs:
            _purge_run(instance, run_id)
    for database in _databases(instance):
        if database.name.endswith(".db"):
            _vacuum(database)
    return max(before - _size(instance), 0)


def _purge_run(instance: dg.DagsterInstance, run_id: str) -> None:
    instance.delete_run(run_id)
    instance.compute_log_manager.delete_logs(prefix=[run_id])
    with contextlib.suppress(Exception):  # no storage of files, or none that is local
        shutil.rmtree(Path(instance.storage_directory()) / run_id, ignore_errors=True)
    for folder in _folders(instance):  # SQLite has a file of events per run
        for suffix in ("", "-wal", "-shm", "-journal"):
            (folder / "runs" / f"{run_id}.db{suffix}").unlink(missing_ok=True)


def _folders(instance: dg.DagsterInstance) -> list[Path]:
    """Where Dagster keeps SQLite files, if it does."""
    try:
        home = Path(instance.root_directory)
    except Exception:  # an instance without a folder
        return []
    return [home / "history", home / "schedules"]


def _databases(instance: dg.DagsterInstance) -> list[Path]:
    return sorted(file for folder in _folders(instance) for file in folder.rglob("*.db*"))


def _size(instance: dg.DagsterInstance) -> int:
    return sum(file.stat().st_size for file in _databases(instance))


def _vacuum(database: Path) -> None:
    """Return free pages, so that nothing of deleted rows remains."""
    with contextlib.closing(sqlite3.connect(database, timeout=60, isolation_level=None)) as connection:
        if connection.execute("PRAGMA freelist_count").fetchone() != (0,):
            connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
