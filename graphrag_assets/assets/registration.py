"""Tells Dagster which batches the input folder has, and their versions."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg
from sqlalchemy.exc import IntegrityError

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import CODE_VERSION
from graphrag_assets.assets.index_names import SOURCE_FILES, IndexNames
from graphrag_assets.assets.scan import Scan

_VERSION = "dagster/data_version"


def register_batches(names: IndexNames, instance: dg.DagsterInstance, scan: Scan) -> None:
    """Make the batches the partitions, and report the present versions of those that differ from the index."""
    _add_partitions(instance, names.partitions_name, scan.known)
    drop_batches(names, instance, set(instance.get_dynamic_partitions(names.partitions_name)) - set(scan.known))
    for event in source_versions(names, scan, scan.due):
        instance.report_runless_asset_event(event)


def drop_batches(names: IndexNames, instance: dg.DagsterInstance, batches: Iterable[str]) -> None:
    """Remove the partitions of batches that are deleted, with their rows."""
    for batch in batches:
        instance.delete_dynamic_partition(names.partitions_name, batch)


def _add_partitions(instance: dg.DagsterInstance, name: str, keys: Sequence[str]) -> None:
    """Register partitions, in several processes at once too.

    Dagster looks for them, then inserts those it has not found: where another process was first, it has to look again.
    """
    for _ in keys:  # each collision means that another one is registered
        with contextlib.suppress(IntegrityError):
            instance.add_dynamic_partitions(name, keys)
            return
    instance.add_dynamic_partitions(name, keys)


def source_versions(names: IndexNames, scan: Scan, batches: Sequence[str]) -> list[dg.AssetObservation]:
    """Events that tell Dagster the present versions of batches: of their files, and of what determines their rows."""
    return [_observation(names, batch, scan.digests.get(batch, "deleted")) for batch in batches]


def batch_materializations(
    names: IndexNames, instance: dg.DagsterInstance, index: Index, batch: str, metadata: Mapping[str, Mapping[str, Any]]
) -> list[dg.AssetMaterialization]:
    """The materializations of the tables of a batch, where a run of its partition alone does not report them.

    `metadata`: by the names of the tables.
    """
    versions = index.working.content_versions(metadata, batch)
    tags = {name: {_VERSION: version} for name, version in versions.items()}
    if "documents" in tags:
        tags["documents"] |= _origin(names, instance, index, batch)
    return [
        dg.AssetMaterialization(names.key(name), metadata=metadata[name], partition=batch, tags=tags[name])
        for name in versions
    ]


def _origin(names: IndexNames, instance: dg.DagsterInstance, index: Index, batch: str) -> dict[str, str]:
    """Tags that say of which version of the input folder the documents of a batch are made.

    Dagster sets them in a run of the partition, and without them never calls the documents unsynced: it compares
    nothing with an asset that something else makes.
    """
    version = index.working.read("SELECT digest FROM batch_state WHERE batch = $batch", {"batch": batch}).item()
    if version is None:
        return {}
    key = names.key(SOURCE_FILES)
    of_batch = dg.AssetRecordsFilter(key, asset_partitions=[batch])
    records = instance.fetch_observations(of_batch, limit=10).records
    same = [record for record in records if (record.event_log_entry.tags or {}).get(_VERSION) == version]
    if not same:
        instance.report_runless_asset_event(_observation(names, batch, version))
        same = list(instance.fetch_observations(of_batch, limit=1).records)
    return {
        "dagster/code_version": CODE_VERSION,
        f"dagster/input_data_version/{key.to_user_string()}": version,
        f"dagster/input_event_pointer/{key.to_user_string()}": str(same[0].storage_id),
    }


def _observation(names: IndexNames, batch: str, version: str) -> dg.AssetObservation:
    """An observation: of an asset that something else makes, Dagster compares no materializations."""
    return dg.AssetObservation(names.key(SOURCE_FILES), partition=batch, tags={_VERSION: version})
