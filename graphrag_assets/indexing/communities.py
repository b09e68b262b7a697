"""Communities of the graph, their members and history, and the layout of the map."""

import json
import time
from collections.abc import Mapping
from dataclasses import astuple
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.community_part import LOGGED_INPUTS, update_part, write_part
from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult
from graphrag_assets.pipeline.clustering import ClusterOptions, community_table
from graphrag_assets.pipeline.community_identity import match_communities
from graphrag_assets.pipeline.community_tables import finish_communities, finish_members, periods
from graphrag_assets.pipeline.incremental_leiden import MODULARITY_LOSS, FreshRun, Reclustered, recluster
from graphrag_assets.pipeline.layout_updates import update_layout
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_inputs, record_options, record_stage, recorded, recorded_inputs
from graphrag_assets.store.change_log import changes_since_mark, last_revision, set_mark
from graphrag_assets.store.working import Changes, assign_numbers, numbered, replace_tables

# No texts, and in any order: nothing made of them depends on it.
_READ = (
    "SELECT id, title, degree, text_unit_ids FROM entities",
    "SELECT id, source_id, target_id, weight FROM relationships",
    "SELECT id, level, entity_ids FROM communities",
    "FROM community_history",
    "FROM community_members",
    "FROM clustered_edges",
    "FROM entity_positions",
    "SELECT t.id, d.creation_date FROM text_units t JOIN documents d ON d.id = t.document_id",
    # Imported communities were good enough for their index: what they lack does not count against later ones.
    "SELECT count(*) AS n, coalesce(max(modularity_loss), 0)::DOUBLE AS loss FROM imports",
)
_FIRST_RESOLUTION = "1.0"  # of communities made before the resolution was recorded


CODE_VERSION = "2"
"""Incremented when the same inputs give other rows."""


_READER = "detect_communities"
_FRESH_RUN = "last fresh clustering"


class UpdatedCommunities(NamedTuple):
    """The changes, and the clustering; of the part that was read, if that is not all."""

    updated: StageResult
    clustering: Reclustered


def _fresh_run(recorded: str | None) -> FreshRun | None:
    return FreshRun(*json.loads(recorded)) if recorded else None


@exclusive("detect_communities")
def update_communities(index: Index, run_id: str, from_scratch: bool = False) -> UpdatedCommunities:
    """Cluster, starting from the previous communities; match them so that ids stay; lay out.

    It starts from nothing with `from_scratch`, or when the resolution is not that of the previous communities.

    Stores the run options of `index`.
    """
    started = time.monotonic()
    settings = index.settings
    options = ClusterOptions(settings.max_cluster_size, settings.seed, settings.cluster_resolution)
    made_with = stable_id("communities", CODE_VERSION, *astuple(options))
    if not from_scratch and (updated := _update_part(index, run_id, options, made_with, started)):
        return updated
    with index.working.connect() as connection:
        seen = last_revision(connection)
    entities, relationships, previous, history, previous_members, clustered_edges, positions, dated_units, imported = (
        index.working.read_all(*_READ)
    )
    resolution = str(settings.cluster_resolution)
    # The communities of an import count as made at the resolution set: they are to be kept.
    unrecorded = resolution if imported.item(0, "n") else _FIRST_RESOLUTION
    is_same = resolution == (recorded_inputs(index.working, "resolution") or unrecorded)
    is_imported = imported.item(0, "n") > 0
    previous_members = previous_members.rename({"community": "cluster"})
    clustering = recluster(
        entities["id"],
        relationships,
        previous_members,
        clustered_edges,
        options,
        from_scratch or not is_same,
        MODULARITY_LOSS + imported.item(0, "loss"),
        keep_divisions=is_imported,
        # An import brings edges that the record does not count.
        last_fresh=None if is_imported else _fresh_run(recorded_inputs(index.working, _FRESH_RUN)),
    )
    members = clustering.members
    table = community_table(members, entities, relationships)
    matched = match_communities(previous, table)
    revision = 1 + history.select(pl.col("revision").max().fill_null(0)).item()
    events = matched.history.with_columns(revision=pl.lit(revision))
    positions = positions.clear() if from_scratch else positions
    n_placed = int(recorded_inputs(index.working, "layout") or 0)
    placed = update_layout(entities, members, relationships, settings.seed, positions, n_placed)
    with index.working.transaction() as connection:
        order = table.join(matched.ids, on="key").select("id", "level", -pl.col("size").cast(pl.Int64))
        assign_numbers(connection, "communities", order)
        numbers = numbered(connection, "communities", matched.ids.select("id"))
        frames = {
            schema.COMMUNITIES: finish_communities(table, matched.ids, numbers, periods(dated_units, table)),
            schema.COMMUNITY_MEMBERS: finish_members(members, matched.ids, numbers),
            schema.COMMUNITY_HISTORY: pl.concat([history, events], how="diagonal_relaxed"),
            schema.ENTITY_POSITIONS: placed.frame,
            schema.CLUSTERED_EDGES: clustering.edges,
        }
        changes = replace_tables(connection, frames)
        record_inputs(connection, "resolution", resolution, run_id)
        record_inputs(connection, "layout", str(placed.n_placed), run_id)
        _record(connection, index, run_id, started, clustering, changes, made_with, seen)
    by_name = {written.name: frame for written, frame in frames.items()}
    return UpdatedCommunities(StageResult(by_name, changes, {}, time.monotonic() - started), clustering)


def _update_part(
    index: Index, run_id: str, options: ClusterOptions, made_with: str, started: float
) -> UpdatedCommunities | None:
    """Update the communities that the changes since the last run concern; None if all are to be read."""
    with index.working.connect() as connection:
        changed = changes_since_mark(connection, _READER, LOGGED_INPUTS, made_with)
        last_fresh, placed = (recorded(connection, stage) for stage in (_FRESH_RUN, "layout"))
        fresh_run = _fresh_run(last_fresh)
        # Others than these rules made the communities of an import: it is clustered as a whole.
        ((imports,),) = connection.execute("SELECT count(*) FROM imports").fetchall()
        if changed is None or changed.rows.is_empty() or fresh_run is None or imports:
            return None
        found = update_part(connection, changed, options, fresh_run, int(placed or 0))
    if found is None:
        return None
    part, clustering = found
    with index.working.transaction() as connection:
        changes = write_part(connection, part)
        if part.placed:
            record_inputs(connection, "layout", str(part.placed.n_placed), run_id)
        _record(connection, index, run_id, started, clustering, changes, made_with, changed.revision)
    return UpdatedCommunities(StageResult({}, changes, {}, time.monotonic() - started), clustering)


def _record(
    connection: duckdb.DuckDBPyConnection,
    index: Index,
    run_id: str,
    started: float,
    clustering: Reclustered,
    changes: Mapping[str, Changes],
    made_with: str,
    seen: int,
) -> None:
    """Record what was done; `seen` is the revision to set the mark to."""
    record_options(connection, None, index.run_options)
    record_inputs(connection, _FRESH_RUN, json.dumps(clustering.last_fresh), run_id)
    record_stage(connection, run_id, "detect_communities", None, time.monotonic() - started, changes, "communities")
    set_mark(connection, _READER, LOGGED_INPUTS, seen, made_with)
