"""Tells Dagster which batches the input folder has, and their versions."""

import contextlib
from collections.abc import Sequence

import dagster as dg
from sqlalchemy.exc import IntegrityError

from graphrag_assets.defs.index_names import SOURCE_FILES, IndexNames
from graphrag_assets.indexing.scan import Scan


def register_batches(names: IndexNames, instance: dg.DagsterInstance, scan: Scan) -> None:
    """Register the batches as partitions, and report the present versions of those that differ from the index."""
    _add_partitions(instance, names.partitions_name, scan.known)
    for event in source_versions(names, scan, scan.due):
        instance.report_runless_asset_event(event)


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
    """Events that tell Dagster the present versions of batches of the input folder.

    Observations: of an asset that something else makes, Dagster compares no materializations.
    """
    key = names.key(SOURCE_FILES)
    return [
        dg.AssetObservation(key, partition=batch, tags={"dagster/data_version": version_of(scan, batch)})
        for batch in batches
    ]


def version_of(scan: Scan, batch: str) -> str:
    """The version of a batch of the input folder: of its files, and of the settings that determine its rows."""
    return scan.digests.get(batch, "deleted")
