"""Communities in their final form: clusters with kept ids, numbers, periods and links to parents and children."""

import polars as pl

from graphrag_assets.store import schema


def periods(text_units: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """key, period: the date of the newest document each community draws on.

    Args:
        text_units: id, creation_date (of the document).
        table: key, text_unit_ids.
    """
    dates = text_units.select(text_unit_ids="id", period=pl.col("creation_date").str.slice(0, 10))
    used = table.select("key", "text_unit_ids").explode("text_unit_ids").join(dates, on="text_unit_ids")
    return used.group_by("key").agg(pl.col("period").max())


def finish_communities(
    table: pl.DataFrame, ids: pl.DataFrame, numbers: pl.DataFrame, period_of: pl.DataFrame
) -> pl.DataFrame:
    """The table communities.

    Args:
        table: key, level, parent (key), children (keys), entity_ids, relationship_ids, text_unit_ids, size.
        ids: key, id. numbers: id, human_readable_id. period_of: key, period.
    """
    named = ids.join(numbers, on="id").select("key", "id", community=pl.col("human_readable_id").cast(pl.Int64))
    children = (
        table.select("key", "children")
        .explode("children")
        .join(named.select(children="key", child="community"), on="children")
        .group_by("key")
        .agg(children=pl.col("child").sort())
    )
    return (
        table.drop("children")
        .join(named, on="key")
        .join(named.select(parent="key", parent_number="community"), on="parent", how="left")
        .join(children, on="key", how="left")
        .join(period_of, on="key", how="left")
        .with_columns(
            pl.col("children").fill_null(pl.lit([], pl.List(pl.Int64))),
            parent=pl.col("parent_number").fill_null(-1),
            human_readable_id=pl.col("community"),
            title=pl.format("Community {}", "community"),
        )
        .select(schema.COMMUNITIES.column_names)
        .sort("community")
    )


def finish_members(members: pl.DataFrame, ids: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """The table community_members from members (level, cluster, entity_id)."""
    named = ids.join(numbers, on="id").select(cluster="key", community="human_readable_id")
    return members.join(named, on="cluster").select("community", "level", "entity_id")
