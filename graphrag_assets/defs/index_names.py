"""Names of one index in a Dagster project: asset keys, steps, jobs, sensors, resources and partitions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import dagster as dg

from graphrag_assets.store import schema

PUBLICATION = "publication"
SOURCE_FILES = "source_files"
BATCH_ASSETS = tuple(table.name for table in schema.BATCH_TABLES)
UPDATE_INDEX, INDEX_BATCHES, REFRESH_GRAPH = "update_index", "index_batches", "refresh_graph"
PREVIEW_COST, ROLLBACK, EVALUATE, EXTRACT_BATCH = "preview_cost", "rollback", "evaluate", "extract_batch"
JOBS = (UPDATE_INDEX, INDEX_BATCHES, REFRESH_GRAPH, PREVIEW_COST, ROLLBACK, EVALUATE, EXTRACT_BATCH)
REGISTER_BATCHES_SENSOR, DOCUMENT_BATCHES_SENSOR = "register_batches_sensor", "document_batches_sensor"
DEAD_RUNS_SENSOR = "dead_runs_sensor"
NIGHTLY_REFRESH = "nightly_refresh"
EXTRACT = {"graphrag/queue": "extract", "dagster-celery/queue": "extract"}
WRITE = {"graphrag/queue": "write"}
"""Tags of runs: of those that only fill the ledger, on any machine; of those on the machine with the index."""
BATCH_STATE = "batch_state"
BATCHES_PER_RUN = 20
"""Maximum number of batches that one run of a backfill, or of the sensor, indexes."""
GLOBAL_ASSETS = (BATCH_STATE, *(table.name for table in schema.GLOBAL_TABLES), PUBLICATION)


_NAMED = re.compile(
    rf"\b({'|'.join((UPDATE_INDEX, INDEX_BATCHES, REFRESH_GRAPH, DOCUMENT_BATCHES_SENSOR, NIGHTLY_REFRESH))})\b"
)


@dataclass(frozen=True)
class IndexNames:
    """Names that are unique in a project with several indexes.

    Attributes:
        key_prefix: begins every asset key, and every other name; empty for the only index of a project.
        group: the group of all assets; None for one group per stage.
    """

    key_prefix: tuple[str, ...] = ()
    group: str | None = None

    def key(self, asset: str) -> dg.AssetKey:
        """The key of an asset."""
        return dg.AssetKey([*self.key_prefix, asset])

    def keys(self, assets: Iterable[str]) -> list[dg.AssetKey]:
        """The keys of assets."""
        return [self.key(asset) for asset in assets]

    def name(self, name: str) -> str:
        """The name of a step, job, sensor, schedule, resource or partitions definition."""
        return "_".join([*self.key_prefix, name])

    def in_words(self, text: str) -> str:
        """A text with the names that jobs and sensors have in this index."""
        return _NAMED.sub(lambda found: self.name(found[0]), text)

    def group_name(self, stage: str) -> str:
        """The group of the assets of a stage."""
        return self.group or stage

    @cached_property
    def all_keys(self) -> frozenset[dg.AssetKey]:
        """The keys of all assets that are materialized."""
        return frozenset(self.keys((*BATCH_ASSETS, *GLOBAL_ASSETS)))

    @cached_property
    def batches(self) -> dg.DynamicPartitionsDefinition:
        """The partitions: one per batch, which is an entry directly under the input folder."""
        return dg.DynamicPartitionsDefinition(name=self.name("document_batches"))

    def has_run(self, run: dg.DagsterRun) -> bool:
        """Whether a run is of this index; others may share the Dagster instance."""
        jobs = {self.name(job) for job in JOBS}
        return run.job_name in jobs or not self.all_keys.isdisjoint(run.asset_selection or ())

    @cached_property
    def request_tags(self) -> list[str]:
        """The tags of runs that the sensor has requested, with the names of their requests: one for each batch."""
        first = f"graphrag/{self.name('request')}"  # Dagster allows one slash
        return [first, *(f"{first}-{number}" for number in range(2, BATCHES_PER_RUN + 1))]

    @property
    def partitions_name(self) -> str:
        """The name of the partitions definition, by which an instance knows the batches."""
        return self.name("document_batches")
