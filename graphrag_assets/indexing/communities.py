"""Communities of the graph, their members and history."""

import json
import math
import time
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult
from graphrag_assets.pipeline.clustering import ClusterOptions, community_table
from graphrag_assets.pipeline.community_identity import Matched, match_communities
from graphrag_assets.pipeline.community_tables import finish_communities, finish_members, periods
from graphrag_assets.pipeline.incremental_leiden import MODULARITY_LOSS, FreshRun, Reclustered, recluster
from graphrag_assets.runtime.tracing import traced
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_inputs, record_options, record_stage, recorded
from graphrag_assets.store.connections import one_value
from graphrag_assets.store.working import Changes, assign_numbers, numbered, replace_rows, replace_table

# No texts, and in any order: nothing made of them depends on it.
_READ = (
    "SELECT id, title, degree, text_unit_ids FROM entities",
    "SELECT id, source_id, target_id, weight FROM relationships",
    "SELECT id, level, entity_ids FROM communities",
    "SELECT level, community AS cluster, entity_id FROM community_members",
    "FROM clustered_edges",
    "SELECT t.id, d.creation_date FROM text_units t JOIN documents d ON d.id = t.document_id",
    "SELECT count(*) AS n FROM batch_state WHERE origin IS NOT NULL",
)


CODE_VERSION = "2"
"""Incremented when the same inputs give other rows."""


_FRESH_RUN = "last fresh clustering"


class UpdatedCommunities(NamedTuple):
    """The changes, and the clustering."""

    updated: StageResult
    clustering: Reclustered


class _Clustered(NamedTuple):
    """Communities to be written. table: as of `community_table`. dated_units: id, creation_date."""

    clustering: Reclustered
    table: pl.DataFrame
    matched: Matched
    dated_units: pl.DataFrame


@exclusive("detect_communities")
@traced("detect_communities")
def update_communities(index: Index, run_id: str, from_scratch: bool = False) -> UpdatedCommunities:
    """Cluster, starting from the previous communities; match them so that ids stay.

    Stores the run options of `index`.
    """
    started = time.monotonic()
    found = _cluster(index, ClusterOptions(index.settings.max_cluster_size), from_scratch)
    with index.working.transaction() as connection:
        changes = _write(connection, found)
        record_options(connection, None, index.run_options)
        record_inputs(connection, _FRESH_RUN, json.dumps(found.clustering.last_fresh), run_id)
        record_stage(connection, run_id, "detect_communities", None, time.monotonic() - started, changes, "communities")
    return UpdatedCommunities(StageResult({}, changes, {}, time.monotonic() - started), found.clustering)


def _cluster(index: Index, options: ClusterOptions, from_scratch: bool) -> _Clustered:
    with index.working.connect() as connection:
        last_fresh = recorded(connection, _FRESH_RUN)
    entities, relationships, previous, previous_members, clustered_edges, dated_units, imported = (
        index.working.read_all(*_READ)
    )
    is_imported = imported.item() > 0
    clustering = recluster(
        entities["id"],
        relationships,
        previous_members,
        clustered_edges,
        options,
        from_scratch,
        # Imported communities stay, with the reports that were paid for, until somebody clusters from scratch.
        math.inf if is_imported else MODULARITY_LOSS,
        keep_divisions=is_imported,
        last_fresh=FreshRun(*json.loads(last_fresh)) if last_fresh else None,
    )
    table = community_table(clustering.members, entities, relationships)
    return _Clustered(clustering, table, match_communities(previous, table), dated_units)


def _write(connection: duckdb.DuckDBPyConnection, found: _Clustered) -> dict[str, Changes]:
    table, ids = found.table, found.matched.ids
    order = table.join(ids, on="key").select("id", "level", -pl.col("size").cast(pl.Int64))
    assign_numbers(connection, "communities", order)
    numbers = numbered(connection, "communities", ids.select("id"))
    communities = finish_communities(table, ids, numbers, periods(found.dated_units, table))
    members = finish_members(found.clustering.members, ids, numbers)
    revision = one_value(connection, "SELECT coalesce(max(revision), 0) + 1 FROM community_history")
    events = found.matched.history.with_columns(revision=pl.lit(revision, pl.Int64))
    return {
        "communities": replace_table(connection, schema.COMMUNITIES, communities),
        "community_members": replace_table(connection, schema.COMMUNITY_MEMBERS, members),
        "community_history": replace_rows(
            connection, schema.COMMUNITY_HISTORY, events, "revision", pl.Series([revision])
        ),
        "clustered_edges": replace_table(connection, schema.CLUSTERED_EDGES, found.clustering.edges),
    }
