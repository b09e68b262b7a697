"""Communities of the graph, their members and history, and the layout of the map."""

import json
import time
from dataclasses import astuple
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.community_part import LOGGED_INPUTS, Clustered, cluster_part
from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult
from graphrag_assets.pipeline.clustering import ClusterOptions, community_table
from graphrag_assets.pipeline.community_identity import match_communities
from graphrag_assets.pipeline.community_tables import finish_communities, finish_members, periods
from graphrag_assets.pipeline.incremental_leiden import MODULARITY_LOSS, FreshRun, Reclustered, recluster
from graphrag_assets.pipeline.layout_updates import update_layout
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_inputs, record_options, record_stage, recorded
from graphrag_assets.store.change_log import changes_since_mark, last_revision, set_mark
from graphrag_assets.store.connections import execute_with, one_value
from graphrag_assets.store.working import Changes, assign_numbers, numbered, replace_rows, replace_table

# No texts, and in any order: nothing made of them depends on it.
_READ = (
    "SELECT id, title, degree, text_unit_ids FROM entities",
    "SELECT id, source_id, target_id, weight FROM relationships",
    "SELECT id, level, entity_ids FROM communities",
    "SELECT level, community AS cluster, entity_id FROM community_members",
    "FROM clustered_edges",
    "FROM entity_positions",
    "SELECT t.id, d.creation_date FROM text_units t JOIN documents d ON d.id = t.document_id",
    # Imported communities were good enough for their index: what they lack does not count against later ones.
    "SELECT count(*) AS n, coalesce(max(modularity_loss), 0)::DOUBLE AS loss FROM imports",
)


CODE_VERSION = "2"
"""Incremented when the same inputs give other rows."""


_READER = "detect_communities"
_FRESH_RUN = "last fresh clustering"


class UpdatedCommunities(NamedTuple):
    """The changes, and the clustering; of the part that was read, if that is not all."""

    updated: StageResult
    clustering: Reclustered


@exclusive("detect_communities")
def update_communities(index: Index, run_id: str, from_scratch: bool = False) -> UpdatedCommunities:
    """Cluster, starting from the previous communities; match them so that ids stay; lay out.

    Stores the run options of `index`.
    """
    started = time.monotonic()
    settings = index.settings
    options = ClusterOptions(settings.max_cluster_size)
    made_with = stable_id("communities", CODE_VERSION, *astuple(options))
    part = None if from_scratch else _cluster_part(index, options, made_with)
    found = part or _cluster_all(index, options, from_scratch)
    with index.working.transaction() as connection:
        changes = _write(connection, found)
        record_options(connection, None, index.run_options)
        if found.placed:
            record_inputs(connection, "layout", str(found.placed.n_placed), run_id)
        record_inputs(connection, _FRESH_RUN, json.dumps(found.clustering.last_fresh), run_id)
        record_stage(connection, run_id, "detect_communities", None, time.monotonic() - started, changes, "communities")
        set_mark(connection, _READER, LOGGED_INPUTS, found.revision, made_with)
    return UpdatedCommunities(StageResult({}, changes, {}, time.monotonic() - started), found.clustering)


def _cluster_part(index: Index, options: ClusterOptions, made_with: str) -> Clustered | None:
    """The communities that the changes since the last run concern; None if all are to be read."""
    with index.working.connect() as connection:
        changed = changes_since_mark(connection, _READER, LOGGED_INPUTS, made_with)
        last_fresh, n_placed = (recorded(connection, stage) for stage in (_FRESH_RUN, "layout"))
        # Others than these rules made the communities of an import: it is clustered as a whole.
        is_imported = one_value(connection, "SELECT count(*) > 0 FROM imports")
        if changed is None or changed.rows.is_empty() or last_fresh is None or is_imported:
            return None
        return cluster_part(connection, changed, options, FreshRun(*json.loads(last_fresh)), int(n_placed or 0))


def _cluster_all(index: Index, options: ClusterOptions, from_scratch: bool) -> Clustered:
    with index.working.connect() as connection:
        revision = last_revision(connection)
        last_fresh, n_placed = (recorded(connection, stage) for stage in (_FRESH_RUN, "layout"))
    entities, relationships, previous, previous_members, clustered_edges, positions, dated_units, imported = (
        index.working.read_all(*_READ)
    )
    is_imported = imported.item(0, "n") > 0
    clustering = recluster(
        entities["id"],
        relationships,
        previous_members,
        clustered_edges,
        options,
        from_scratch,
        MODULARITY_LOSS + imported.item(0, "loss"),
        keep_divisions=is_imported,
        # An import brings edges that the record does not count.
        last_fresh=FreshRun(*json.loads(last_fresh)) if last_fresh and not is_imported else None,
    )
    table = community_table(clustering.members, entities, relationships)
    known = positions.clear() if from_scratch else positions
    placed = update_layout(entities, clustering.members, relationships, options.seed, known, int(n_placed or 0))
    return Clustered(clustering, table, match_communities(previous, table), dated_units, placed, revision)


def _write(connection: duckdb.DuckDBPyConnection, found: Clustered) -> dict[str, Changes]:
    table, ids, part = found.table, found.matched.ids, found.part
    order = table.join(ids, on="key").select("id", "level", -pl.col("size").cast(pl.Int64))
    assign_numbers(connection, "communities", order)
    numbers = numbered(connection, "communities", ids.select("id"))
    communities = finish_communities(table, ids, numbers, periods(found.dated_units, table))
    members = finish_members(found.clustering.members, ids, numbers)
    revision = one_value(connection, "SELECT coalesce(max(revision), 0) + 1 FROM community_history")
    events = found.matched.history.with_columns(revision=pl.lit(revision, pl.Int64))
    entity_ids, replaced = (part.entity_ids, pl.concat([part.communities, ids["id"]])) if part else (None, None)
    if found.placed:
        positions = replace_rows(connection, schema.ENTITY_POSITIONS, found.placed.frame, "id", entity_ids)
    else:
        positions = Changes(one_value(connection, "SELECT count(*) FROM entity_positions"), 0, 0)
    return {
        "communities": replace_rows(connection, schema.COMMUNITIES, communities, "id", replaced),
        "community_members": replace_rows(connection, schema.COMMUNITY_MEMBERS, members, "entity_id", entity_ids),
        "community_history": replace_rows(
            connection, schema.COMMUNITY_HISTORY, events, "revision", pl.Series([revision])
        ),
        "entity_positions": positions,
        "clustered_edges": _replace_edges(connection, part and part.edges, found.clustering.edges),
    }


def _replace_edges(connection: duckdb.DuckDBPyConnection, before: pl.DataFrame | None, now: pl.DataFrame) -> Changes:
    """Replace the edges `before`, None being all, by those of `now`."""
    if before is None:
        return replace_table(connection, schema.CLUSTERED_EDGES, now)
    gone, arrived = (one.join(other, on=one.columns, how="anti") for one, other in ((before, now), (now, before)))
    delete = (
        "DELETE FROM clustered_edges e USING edges_gone g WHERE e.source_id = g.source_id AND e.target_id = g.target_id"
    )
    execute_with(connection, delete, edges_gone=gone)
    execute_with(connection, "INSERT INTO clustered_edges BY NAME FROM new_edges", new_edges=arrived)
    return Changes(one_value(connection, "SELECT count(*) FROM clustered_edges"), arrived.height, gone.height)
