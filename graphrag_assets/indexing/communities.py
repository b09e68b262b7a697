"""Communities of the graph, their members and history, and the layout of the map."""

import json
import time
from typing import NamedTuple

import polars as pl

from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult
from graphrag_assets.pipeline.clustering import ClusterOptions, community_table
from graphrag_assets.pipeline.community_identity import match_communities
from graphrag_assets.pipeline.community_tables import finish_communities, finish_members, periods
from graphrag_assets.pipeline.incremental_leiden import MODULARITY_LOSS, FreshRun, Reclustered, recluster
from graphrag_assets.pipeline.layout_updates import update_layout
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_inputs, record_options, record_stage, recorded_inputs
from graphrag_assets.store.working import assign_numbers, numbered, replace_tables

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


_FRESH_RUN = "last fresh clustering"


class UpdatedCommunities(NamedTuple):
    """The tables written, the clustering, and the graph that it clusters."""

    updated: StageResult
    clustering: Reclustered
    entities: pl.DataFrame
    relationships: pl.DataFrame


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
    entities, relationships, previous, history, previous_members, clustered_edges, positions, dated_units, imported = (
        index.working.read_all(*_READ)
    )
    options = ClusterOptions(settings.max_cluster_size, settings.seed, settings.cluster_resolution)
    resolution = str(settings.cluster_resolution)
    # The communities of an import count as made at the resolution set: they are to be kept.
    unrecorded = resolution if imported.item(0, "n") else _FIRST_RESOLUTION
    is_same = resolution == (recorded_inputs(index.working, "resolution") or unrecorded)
    previous_members = previous_members.rename({"community": "cluster"})
    clustering = recluster(
        entities["id"],
        relationships,
        previous_members,
        clustered_edges,
        options,
        from_scratch or not is_same,
        MODULARITY_LOSS + imported.item(0, "loss"),
        keep_divisions=imported.item(0, "n") > 0,
        # An import brings edges that the record does not count.
        last_fresh=None if imported.item(0, "n") else _fresh_run(recorded_inputs(index.working, _FRESH_RUN)),
    )
    members = clustering.members
    table = community_table(members, entities, relationships)
    matched = match_communities(previous, table)
    last_revision = history.select(pl.col("revision").max().fill_null(0)).item()
    events = matched.history.with_columns(revision=pl.lit(1 + last_revision))
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
        seconds = time.monotonic() - started
        record_options(connection, None, index.run_options)
        record_inputs(connection, "resolution", resolution, run_id)
        record_inputs(connection, _FRESH_RUN, json.dumps(clustering.last_fresh), run_id)
        record_inputs(connection, "layout", str(placed.n_placed), run_id)
        record_stage(connection, run_id, "detect_communities", None, seconds, changes, "communities")
    by_name = {written.name: frame for written, frame in frames.items()}
    updated = StageResult(by_name, changes, {}, time.monotonic() - started)
    return UpdatedCommunities(updated, clustering, entities, relationships)
