"""Communities after a change: the part of the graph that it reaches is read and clustered, and nothing else.

A part has whole communities of level 0: those of changed entities, those at both ends of relationships that count as
changed, and those into which the change spreads.
"""

from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.pipeline.clustering import ClusterOptions, community_table
from graphrag_assets.pipeline.community_identity import Matched, match_communities
from graphrag_assets.pipeline.incremental_leiden import (
    FRESH_SHARE,
    WEIGHT_TOLERANCE,
    FreshRun,
    Outside,
    Reclustered,
    ReclusteredPart,
    recluster_part,
)
from graphrag_assets.pipeline.layout_updates import Positions, place_new
from graphrag_assets.store.change_log import Changed
from graphrag_assets.store.connections import one_value

LOGGED_INPUTS = ("documents", "entities", "relationships")

# A sentence about a hub changes all its relationships by a little: they do not count, see `incremental_leiden`.
_CONCERNED = f"""
CREATE OR REPLACE TEMP TABLE concerned AS
WITH written AS (
    SELECT DISTINCT least(one, other) AS source_id, greatest(one, other) AS target_id
    FROM (SELECT unnest($sources::VARCHAR[]) AS one, unnest($targets::VARCHAR[]) AS other)
), weighed AS (
    SELECT source_id, target_id, coalesce(n.weight, 0) AS weight, coalesce(e.weight, 0) AS settled FROM written
    LEFT JOIN (
        SELECT least(source_id, target_id) AS source_id, greatest(source_id, target_id) AS target_id, weight
        FROM relationships WHERE id IN (SELECT unnest($relationships::VARCHAR[]))
    ) n USING (source_id, target_id)
    LEFT JOIN clustered_edges e USING (source_id, target_id)
), changed AS (
    FROM weighed WHERE abs(weight - settled) > {WEIGHT_TOLERANCE} * greatest(weight, settled)
)
SELECT unnest($entities::VARCHAR[]) AS id
UNION SELECT unnest([source_id, target_id]) FROM changed
UNION SELECT e.id FROM (SELECT id, unnest(text_unit_ids) AS unit FROM entities) e JOIN text_units t ON t.id = e.unit
WHERE t.document_id IN (SELECT unnest($documents::VARCHAR[]))
"""
_FIRST = "SELECT DISTINCT community FROM community_members WHERE level = 0 AND entity_id IN (FROM concerned)"
_NODES = """
CREATE OR REPLACE TEMP TABLE nodes AS
FROM concerned
UNION SELECT entity_id FROM community_members WHERE level = 0 AND community IN (SELECT unnest($communities::BIGINT[]))
"""
_LINKS = """
CREATE OR REPLACE TEMP TABLE links AS
SELECT source_id AS here, target_id AS there, weight FROM clustered_edges WHERE source_id IN (FROM nodes)
UNION ALL SELECT target_id, source_id, weight FROM clustered_edges WHERE target_id IN (FROM nodes)
"""
# Weights have six digits, so rounded sums do not depend on the order.
_ACROSS = """
SELECT l.here AS entity_id, m.community, round(sum(l.weight), 6) AS weight
FROM links l JOIN community_members m ON m.level = 0 AND m.entity_id = l.there
WHERE l.there NOT IN (FROM nodes) GROUP BY ALL
"""
_WEIGHTS = """
WITH of_entity AS (SELECT entity_id, community FROM community_members WHERE level = 0),
edges AS (
    SELECT s.community AS source, t.community AS target, weight
    FROM clustered_edges e JOIN of_entity s ON s.entity_id = e.source_id JOIN of_entity t ON t.entity_id = e.target_id
)
SELECT community, round(sum(weight), 6) AS degree,
       round(coalesce(sum(weight) FILTER (source = target), 0) / 2, 6) AS inside
FROM (FROM edges SELECT source AS community, * UNION ALL FROM edges SELECT target, *)
GROUP BY community ORDER BY community
"""
_EDGES = "SELECT here AS source_id, there AS target_id, weight FROM links WHERE here < there AND there IN (FROM nodes)"
_RELATIONSHIPS = """
SELECT id, source_id, target_id, weight FROM relationships
WHERE source_id IN (FROM nodes) AND target_id IN (FROM nodes)
"""
_PREVIOUS = """
SELECT id, level, entity_ids FROM communities
WHERE community IN (SELECT community FROM community_members WHERE entity_id IN (FROM nodes))
"""
_DATED = """
SELECT t.id, d.creation_date FROM text_units t JOIN documents d ON d.id = t.document_id
WHERE t.id IN (SELECT unnest($units::VARCHAR[]))
"""
_DEEPEST = """
SELECT max(level), max(level) FILTER (community NOT IN (
    SELECT community FROM community_members WHERE entity_id IN (FROM nodes)
)) FROM communities
"""
_OTHER_MEMBERS = """
SELECT 0::BIGINT AS level, community::VARCHAR AS cluster, entity_id FROM community_members
WHERE level = 0 AND entity_id NOT IN (FROM nodes)
"""


class Part(NamedTuple):
    """What the rows of a part replace: those of its entities and its previous communities (both ids), and its edges."""

    entity_ids: pl.Series
    communities: pl.Series
    edges: pl.DataFrame


class Clustered(NamedTuple):
    """Communities to be written: of the whole graph, or of a `part` of it.

    table: as of `community_table`. dated_units: id, creation_date. placed: their positions, and None stands for those
    that they had. revision: of the change log, to set the mark to.
    """

    clustering: Reclustered
    table: pl.DataFrame
    matched: Matched
    dated_units: pl.DataFrame
    placed: Positions | None
    revision: int
    part: Part | None = None


class _Read(NamedTuple):
    """A part of the graph as it is now, and its previous communities (id, level, entity_ids).

    clustering: its new communities, down to the deepest level of the whole. n_edges: of the whole.
    """

    clustering: ReclusteredPart
    ids: pl.Series
    entities: pl.DataFrame
    relationships: pl.DataFrame
    previous: pl.DataFrame
    previous_edges: pl.DataFrame
    n_edges: int


def cluster_part(
    connection: duckdb.DuckDBPyConnection,
    changed: Changed,
    options: ClusterOptions,
    last_fresh: FreshRun,
    n_placed: int,
) -> Clustered | None:
    """Read the part that `changed` concerns, and cluster it.

    None if the whole is to be clustered: to compare with a fresh run, or because a level comes or goes, or the map is
    to be laid out from scratch.
    """
    read = _read(connection, changed, options)
    if read is None:
        return None
    clustering = read.clustering
    compared = last_fresh._replace(n_changed=last_fresh.n_changed + clustering.n_changed)
    if compared.n_changed > FRESH_SHARE * read.n_edges or not compared.is_reached(clustering.modularity):
        return None
    table = community_table(clustering.members, read.entities, read.relationships)
    used = connection.sql("SELECT id FROM communities").pl()["id"]
    matched = match_communities(read.previous, table, used=used)
    is_moved = matched.history.filter(pl.col("level") == 0).height > 0
    placed = _place(connection, read, n_placed) if is_moved else None
    if is_moved and placed is None:
        return None
    units = table["text_unit_ids"].explode().drop_nulls().unique().to_list()
    dated = connection.sql(_DATED, params={"units": units}).pl()
    done = Reclustered(*clustering[:4], compared, fresh=False)
    part = Part(read.ids, read.previous["id"], read.previous_edges)
    return Clustered(done, table, matched, dated, placed, changed.revision, part)


def _read(connection: duckdb.DuckDBPyConnection, changed: Changed, options: ClusterOptions) -> _Read | None:
    """The part, clustered; None if the deepest level is not the one that it was."""
    given = {
        "entities": changed.ids("entities").to_list(),
        "documents": changed.ids("documents").to_list(),
        "relationships": changed.ids("relationships").to_list(),
        **changed.ends(),
    }
    connection.execute(_CONCERNED, given)
    own = connection.sql(_FIRST).pl()["community"].to_list()
    weights = connection.sql(_WEIGHTS).pl()
    while True:
        connection.execute(_NODES, {"communities": own})
        connection.execute(_LINKS)
        ids, relationships, members, edges = (
            connection.sql(query).pl()
            for query in (
                "SELECT id FROM nodes SEMI JOIN entities USING (id)",
                _RELATIONSHIPS,
                "SELECT level, community AS cluster, entity_id FROM community_members WHERE entity_id IN (FROM nodes)",
                _EDGES,
            )
        )
        outside = Outside(connection.sql(_ACROSS).pl().sort(pl.all()), weights, own)
        found = recluster_part(ids["id"], relationships, members, edges, outside, options)
        if isinstance(found, ReclusteredPart):
            break
        own = [*own, *found]
    ((deepest, elsewhere),) = connection.execute(_DEEPEST).fetchall()
    depth = max(found.members["level"], default=-1)
    if deepest is None or max(depth, -1 if elsewhere is None else elsewhere) != deepest:
        return None
    last = found.members.filter(pl.col("level") == depth)
    below = [last.with_columns(level=pl.lit(level, pl.Int64)) for level in range(depth + 1, deepest + 1)]
    return _Read(
        found._replace(members=pl.concat([found.members, *below])),
        connection.sql("FROM nodes").pl()["id"],
        connection.sql("SELECT id, text_unit_ids FROM entities WHERE id IN (FROM nodes)").pl(),
        relationships,
        connection.sql(_PREVIOUS).pl(),
        edges,
        one_value(connection, "SELECT count(*) FROM clustered_edges"),
    )


def _place(connection: duckdb.DuckDBPyConnection, read: _Read, n_placed: int) -> Positions | None:
    """Positions of the part; None if the map has to be laid out from scratch."""
    entities = connection.sql("SELECT id, degree FROM entities").pl()
    members = pl.concat(
        [connection.sql(_OTHER_MEMBERS).pl(), read.clustering.members.select("level", "cluster", "entity_id")]
    )
    relationships = connection.sql(
        "SELECT source_id, target_id, weight FROM relationships "
        "WHERE source_id IN (FROM nodes) OR target_id IN (FROM nodes)"
    ).pl()
    placed = place_new(entities, members, relationships, connection.sql("FROM entity_positions").pl(), n_placed)
    return placed and placed._replace(frame=placed.frame.filter(pl.col("id").is_in(read.ids.implode())))
