"""Names of one index in a Dagster project: asset keys, steps, jobs, sensors, resources and partitions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import dagster as dg

from graphrag_assets.assets.index import Index
from graphrag_assets.store import schema

PUBLICATION, SOURCE_FILES, BATCH_STATE = "publication", "source_files", "batch_state"
DOCUMENT_BATCHES = "document_batches"
BATCH_ASSETS = tuple(table.name for table in schema.BATCH_TABLES)
GLOBAL_ASSETS = (
    BATCH_STATE,
    *("entities", "relationships", "communities", "community_reports", "embeddings"),
    PUBLICATION,
)
ASSETS = (*BATCH_ASSETS, *GLOBAL_ASSETS)
"""The assets that are materialized, in the order in which data flows. Other tables belong to one of them."""
_TABLES_OF = {
    "entities": ("entity_aliases",),
    "communities": ("community_members",),
    "community_reports": ("citations",),
    "embeddings": ("entity_candidates",),
}
ASSET_OF = {name: name for name in ASSETS} | {table: asset for asset, tables in _TABLES_OF.items() for table in tables}
"""The asset that a table belongs to."""
UPDATE_INDEX, PREVIEW_COST, EVALUATE, ROLLBACK = "update_index", "preview_cost", "evaluate", "rollback"
EXTRACT_BATCH = "extract_batch"
DOCUMENT_BATCHES_SENSOR, DEAD_RUNS_SENSOR = "document_batches_sensor", "dead_runs_sensor"
NIGHTLY_REFRESH = "nightly_refresh"
EXTRACT = {"graphrag/queue": "extract", "dagster-celery/queue": "extract"}
"""Tags of runs that only fill the ledger, on any machine."""
BATCHES_PER_RUN = 20
"""Maximum number of batches that one run of a backfill indexes."""
_NAMED = re.compile(rf"\b({'|'.join((UPDATE_INDEX, DOCUMENT_BATCHES_SENSOR, NIGHTLY_REFRESH))})\b")


@dataclass(frozen=True)
class IndexNames:
    """Names that are unique in a project with several indexes.

    Attributes:
        key_prefix: begins every asset key, and every other name, and is the group of the assets; empty for the only
            index of a project, which has a group per stage.
    """

    key_prefix: tuple[str, ...] = ()

    def key(self, asset: str) -> dg.AssetKey:
        """Return the key of an asset."""
        return dg.AssetKey([*self.key_prefix, asset])

    def keys(self, assets: Iterable[str]) -> list[dg.AssetKey]:
        """Return the keys of assets."""
        return [self.key(asset) for asset in assets]

    def name(self, name: str) -> str:
        """Return the name of a step, job, sensor, schedule, resource or partitions definition."""
        return "_".join([*self.key_prefix, name])

    def in_words(self, text: str) -> str:
        """Return a text with the names that jobs and sensors have in this index."""
        return _NAMED.sub(lambda match: self.name(match[0]), text)

    def group_name(self, stage: str) -> str:
        """Return the group of the assets of a stage."""
        return "_".join(self.key_prefix) or stage

    @cached_property
    def batches(self) -> dg.DynamicPartitionsDefinition:
        """The partitions: one per batch, which is an entry directly under the input folder."""
        return dg.DynamicPartitionsDefinition(name=self.name(DOCUMENT_BATCHES))

    @property
    def pool(self) -> str:
        """The pool of the steps that write the index: with a limit of one, runs wait for one another in the queue."""
        return self.name("index_writer")

    @property
    def resource(self) -> str:
        """The name of the resource that is the `Index`."""
        return self.name("index")

    def index(self, resources: object) -> Index:
        """Return the index among a context's `resources`, with the settings in force now."""
        index: Index = getattr(resources, self.resource)
        return index

    def has_run(self, run: dg.DagsterRun) -> bool:
        """Whether a run is of this index; others may share the Dagster instance."""
        jobs = {self.name(job) for job in (UPDATE_INDEX, PREVIEW_COST, EVALUATE, ROLLBACK, EXTRACT_BATCH)}
        return run.job_name in jobs or not set(self.keys(ASSETS)).isdisjoint(run.asset_selection or ())
