"""Deletes records of purged documents from Dagster's storage: names of batches and, in previews, titles.

The automation compares the folder, the database and the publication, so deleting records reruns nothing.
"""

import contextlib
import shutil
import sqlite3
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import dagster as dg
import sqlalchemy as sa

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
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.purge import Removed, purge

_INSTIGATORS = (REGISTER_BATCHES_SENSOR, DOCUMENT_BATCHES_SENSOR, DEAD_RUNS_SENSOR, NIGHTLY_REFRESH)
_ALERT = "failed_runs_alert"
_PARTITION = "dagster/partition"
_FINISHED_BACKFILLS = {"COMPLETED", "FAILED", "CANCELED", "COMPLETED_SUCCESS", "COMPLETED_FAILED"}


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
        records = records_to_purge(instance, names, runs, keys, last_removal, batches)
        size = None if dry_run else purge_records(instance, names, index, records)
        n_runs, n_partitions, n_backfills = map(len, records)
        what = f"{n_runs} runs, {n_partitions} partitions, {n_backfills} backfills"
        return Removed("Dagster's storage", what, len(records), size)

    return purge(index, dry_run, shared_ledger, purge_history)


class Records(NamedTuple):
    """Ids of runs and backfills, keys of partitions."""

    runs: list[str]
    partitions: list[str]
    backfills: list[str]

    def __len__(self) -> int:
        return len(self.runs) + len(self.partitions) + len(self.backfills)


def records_to_purge(
    instance: dg.DagsterInstance,
    names: IndexNames,
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
    backfills = [
        backfill.backfill_id
        for backfill in instance.get_backfills()
        if backfill.status.name in _FINISHED_BACKFILLS
        and not names.all_keys.isdisjoint(backfill.asset_selection or ())
        and (backfill.backfill_timestamp <= before)
    ]
    return Records(concerned, [key for key in keys if key not in batches], backfills)


def purge_records(instance: dg.DagsterInstance, names: IndexNames, index: Index, records: Records) -> int:
    """Delete the records, report what the index still contains, and return the bytes freed."""
    before = _size(instance)
    if len(records):
        # Events of assets are kept a second time, by asset, with names of partitions beside them.
        keys = [*names.all_keys, names.key(SOURCE_FILES)]
        instance.wipe_assets(keys)
        _purge_events_without_run(instance, keys)
        report_contents(instance, names, index)
        instigators = {_ALERT, *(names.name(instigator) for instigator in _INSTIGATORS)}
        for state in instance.all_instigator_state():
            if state.instigator_name in instigators:
                # All ticks: the one that drops a partition comes after its batch has left the index.
                instance.purge_ticks(state.instigator_origin_id, state.selector_id, time.time())
        for key in records.partitions:
            instance.delete_dynamic_partition(names.partitions_name, key)
        if records.backfills:
            with instance.run_storage.connect() as connection:  # type: ignore[attr-defined]
                for name, column in (("backfill_tags", "backfill_id"), ("bulk_actions", "key")):
                    table = sa.table(name, sa.column(column))
                    connection.execute(sa.delete(table).where(table.c[column].in_(records.backfills)))
        for run_id in records.runs:
            _purge_run(instance, run_id)
    for database in _databases(instance):
        _vacuum(database)
    return max(before - _size(instance), 0)


def _purge_events_without_run(instance: dg.DagsterInstance, keys: Collection[dg.AssetKey]) -> None:
    """SQLite's storage has them in a file of their own, which wiping assets leaves as it is."""
    events = sa.table("event_logs", sa.column("run_id"), sa.column("asset_key"))
    of_assets = events.c.asset_key.in_([key.to_string() for key in keys])
    with instance.event_log_storage.run_connection("") as connection:  # type: ignore[attr-defined]
        connection.execute(sa.delete(events).where(events.c.run_id == "", of_assets))


def _purge_run(instance: dg.DagsterInstance, run_id: str) -> None:
    instance.delete_run(run_id)
    instance.compute_log_manager.delete_logs(prefix=[run_id])
    with contextlib.suppress(Exception):  # no storage of files, or none that is local
        shutil.rmtree(Path(instance.storage_directory()) / run_id, ignore_errors=True)
    if path_for_shard := getattr(instance.event_log_storage, "path_for_shard", None):  # a SQLite file per run
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{path_for_shard(run_id)}{suffix}").unlink(missing_ok=True)


def _databases(instance: dg.DagsterInstance) -> list[Path]:
    """The SQLite files of the instance; none when it is kept elsewhere."""
    opened = (
        getattr(instance.run_storage, "connect", None),
        getattr(instance.event_log_storage, "index_connection", None),
        getattr(instance.schedule_storage, "connect", None),
    )
    found = []
    if path_for_shard := getattr(instance.event_log_storage, "path_for_shard", None):
        found.append(Path(path_for_shard("")))
    for connect in opened:
        if connect is None:
            continue
        with connect() as connection:
            if connection.dialect.name == "sqlite" and connection.engine.url.database not in (None, "", ":memory:"):
                found.append(Path(connection.engine.url.database))
    return [path for path in dict.fromkeys(found) if path.is_file()]


def _size(instance: dg.DagsterInstance) -> int:
    """Bytes of the SQLite files, those of single runs included."""
    folders = {path.parent for path in _databases(instance)}
    return sum(file.stat().st_size for folder in folders for file in folder.glob("*.db*"))


def _vacuum(database: Path) -> None:
    """Return free pages, so that nothing of deleted rows remains."""
    with contextlib.closing(sqlite3.connect(database, timeout=60, isolation_level=None)) as connection:
        if connection.execute("PRAGMA freelist_count").fetchone() != (0,):
            connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
