"""Writes communities, members and reports of an imported index in the form of a last run's result.

The stages that follow compare the graph with them as with the result of any run, and find no change.
"""

import math

import polars as pl

from graphrag_assets.extras.interop.facts import Facts, entity_ids
from graphrag_assets.extras.interop.hierarchy import hierarchy_of
from graphrag_assets.extras.interop.left_out import Counts
from graphrag_assets.extras.interop.report_rows import renumbered, report_rows
from graphrag_assets.extras.interop.source import Source
from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.index import Index
from graphrag_assets.pipeline.clustering import ClusterOptions
from graphrag_assets.pipeline.incremental_leiden import recluster
from graphrag_assets.pipeline.resolution import apply_aliases
from graphrag_assets.store import schema
from graphrag_assets.store.change_log import remove_marks
from graphrag_assets.store.imports import add_original_ids, add_rows, number_communities


def write_structure(index: Index, batch: str, source: Source, facts: Facts, counts: Counts) -> int:
    """Write communities, members and reports of the source as the last run would have left them.

    Returns:
        the number of communities of the source.
    """
    if source.members.is_empty():
        counts["communities", "without members, left out"] += source.communities.height
        report_rows(source.reports, source.communities["community"].head(0), counts)
        return 0
    entities, relationships, members, edges, aliases, present = index.working.read_tables(
        "entities", "relationships", "community_members", "clustered_edges", "entity_aliases", "communities"
    )
    # Entities that are in a community stay there.
    new = entities.join(members, left_on="id", right_on="entity_id", how="anti")
    inside = relationships.join(new, left_on="source_id", right_on="id", how="semi").join(
        new, left_on="target_id", right_on="id", how="semi"
    )
    keys = _entities_of(facts.keys, aliases, entities)
    hierarchy = hierarchy_of(source.communities, source.members, keys, new, inside, counts)
    communities = _with_free_ids(hierarchy.communities, batch, present["id"])
    complete = _level_complete(members, hierarchy.members)
    seen = pl.concat([edges, _edges(inside)])
    loss = _modularity_loss(index, entities, relationships, complete, seen)
    reports = report_rows(source.reports, communities["community"], counts)
    with index.working.transaction() as connection:
        numbered = number_communities(connection, communities)
        number_of = numbered.select("community", "id", number=pl.col("human_readable_id").cast(pl.Int64))
        remove_marks(connection)
        connection.execute("DELETE FROM community_members; DELETE FROM clustered_edges")
        add_rows(connection, schema.COMMUNITY_MEMBERS, _with_new_numbers(complete, number_of))
        add_rows(connection, schema.CLUSTERED_EDGES, seen)
        add_rows(connection, schema.COMMUNITIES, _community_rows(numbered))
        numbers = connection.sql("SELECT table_name, id, human_readable_id FROM numbers").pl()
        cited = renumbered(reports, _numbers_of(facts.references, numbers, number_of), counts)
        rows = _report_rows(cited, number_of)
        add_rows(connection, schema.COMMUNITY_REPORTS, rows.drop("original_id"))
        add_original_ids(connection, batch, _original_ids(communities, rows))
        connection.execute(
            "UPDATE imports SET modularity_loss = $loss WHERE batch = $batch", {"loss": loss, "batch": batch}
        )
    return communities.height


def _entities_of(keys: pl.DataFrame, aliases: pl.DataFrame, entities: pl.DataFrame) -> pl.DataFrame:
    """id, entity_id: the entities here of those of the index; aliases for all documents are applied."""
    canonical = apply_aliases(keys.with_columns(document_id=pl.lit(None, pl.String)), aliases, ["key"])
    named = canonical.select("id", entity_id=entity_ids(canonical["key"]))
    return named.join(entities.select(entity_id="id"), on="entity_id", how="semi", maintain_order="left")


def _with_free_ids(communities: pl.DataFrame, batch: str, taken: pl.Series) -> pl.DataFrame:
    """Communities with unused ids; original_id is that of the source."""
    hashed = pl.Series([stable_id(batch, "community", given) for given in communities["id"]], dtype=pl.String)
    clash = communities["id"].is_in(taken.implode()) | communities["id"].is_null()
    return communities.with_columns(original_id="id", id=pl.when(clash).then(hashed).otherwise("id"))


def _original_ids(communities: pl.DataFrame, reports: pl.DataFrame) -> pl.DataFrame:
    both = [
        frame.select(pl.lit(table).alias("table_name"), "id", "original_id")
        for table, frame in (("communities", communities), ("community_reports", reports))
    ]
    return pl.concat(both).filter(pl.col("id") != pl.col("original_id"))


def _level_complete(present: pl.DataFrame, imported: pl.DataFrame) -> pl.DataFrame:
    """Both memberships over the levels of either: level, community, entity_id, imported (whose number it is)."""
    both = pl.concat(
        [
            frame.select("level", pl.col("community").cast(pl.Int64), "entity_id", imported=pl.lit(is_imported))
            for frame, is_imported in ((present, False), (imported, True))
        ]
    )
    if both.is_empty():
        return both
    deepest = both.select(pl.col("level").max()).item()
    missing = (
        both.filter(pl.col("level") == pl.col("level").max().over("imported"))
        .with_columns(level=pl.int_ranges(pl.col("level") + 1, deepest + 1))
        .explode("level", empty_as_null=False)
    )
    return pl.concat([both, missing.select(both.columns)])


def _with_new_numbers(complete: pl.DataFrame, number_of: pl.DataFrame) -> pl.DataFrame:
    """Members with the numbers of imported communities here; disconnected pieces keep numbers below 0 for now."""
    renamed = complete.join(number_of.select("community", "number"), on="community", how="left", maintain_order="left")
    number = pl.when("imported").then(pl.coalesce("number", "community")).otherwise("community")
    return renamed.select("level", "entity_id", community=number)


def _edges(relationships: pl.DataFrame) -> pl.DataFrame:
    return relationships.select(
        source_id=pl.min_horizontal("source_id", "target_id"),
        target_id=pl.max_horizontal("source_id", "target_id"),
        weight="weight",
    )


def _modularity_loss(
    index: Index, entities: pl.DataFrame, relationships: pl.DataFrame, members: pl.DataFrame, edges: pl.DataFrame
) -> float:
    """The share by which the modularity of these communities is below that of a fresh run."""
    settings = index.settings
    name = pl.concat_str("imported", pl.lit(":"), "community")
    found = recluster(
        entities["id"],
        relationships,
        members.select("level", "entity_id", cluster=name),
        edges,
        ClusterOptions(settings.max_cluster_size),
        tolerated_loss=math.inf,
        keep_divisions=True,
    )
    best = found.last_fresh.modularity
    return max((best - found.modularity) / max(abs(best), 1e-9), 0.0)


def _community_rows(communities: pl.DataFrame) -> pl.DataFrame:
    """Rows of the table communities for the clustering to compare with; it then writes the complete rows."""
    number = pl.col("human_readable_id").cast(pl.Int64)
    return communities.select(
        "id", "level", "entity_ids", human_readable_id=number, community=number, parent=pl.lit(-1, pl.Int64)
    )


def _numbers_of(
    references: pl.DataFrame, numbers: pl.DataFrame, communities: pl.DataFrame
) -> dict[tuple[str, int], int]:
    """The number of a row here, by table and number in the imported index."""
    rows = references.join(numbers, on=["table_name", "id"]).select("table_name", "number", "human_readable_id")
    found = {(table, old): int(new) for table, old, new in rows.iter_rows()}
    reports = communities.select("community", "number").iter_rows()
    return found | {("community_reports", old): new for old, new in reports}


def _report_rows(reports: pl.DataFrame, communities: pl.DataFrame) -> pl.DataFrame:
    """Rows of community_reports without a fingerprint, which the next run adds; original_id is that of the source."""
    own = communities.select("community", "number", community_id="id")
    placed = reports.join(own, on="community", maintain_order="left")
    ids = [stable_id("community_report", community) for community in placed["community_id"]]
    columns = ("title", "summary", "full_content", "rank", "rating_explanation", "findings", "full_content_json")
    return placed.select(
        *columns,
        original_id="id",
        community="number",
        human_readable_id="number",
        model=pl.lit(schema.IMPORTED),
    ).with_columns(pl.Series("id", ids, dtype=pl.String))
