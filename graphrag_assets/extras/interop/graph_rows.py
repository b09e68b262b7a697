"""Entities, relationships and claims of an imported index, in the form that the graph has here."""

import polars as pl

from graphrag_assets.contracts.records import UNKNOWN
from graphrag_assets.extras.interop.source import Counts, fitting
from graphrag_assets.ids import stable_id
from graphrag_assets.text.iso_dates import iso_date
from graphrag_assets.text.words import title_key

STATUSES = ("TRUE", "FALSE", "SUSPECTED")
_UNITS = pl.col("text_unit_ids").list


def entity_rows(entities: pl.DataFrame, unit_ids: pl.Series, counts: Counts) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One entity per normalized title, with both descriptions of two; and the `key` of every given row.

    Args:
        entities: as GraphRAG has them.
        unit_ids: the given ids of the text units that exist.
        counts: what is left out or merged is added.
    """
    named = entities.with_columns(
        key_of(entities["title"]).alias("key"),
        pl.col("type").fill_null("").str.strip_chars().str.to_uppercase(),
        pl.col("description").fill_null(""),
    )
    named = _in_units(
        fitting(named, pl.col("key") != "", "entities", "without a title", counts), unit_ids, counts, "entities"
    )
    merged = (
        named.sort("human_readable_id", nulls_last=True, maintain_order=True)
        .group_by("key", maintain_order=True)
        .agg(
            pl.col("title").first(),
            pl.col("type").filter(pl.col("type") != "").first().fill_null(UNKNOWN),
            _joined("description"),
            _all_units(),
        )
    )
    counts["entities", "with the same title as another, merged"] += named.height - merged.height
    return merged, named.select("id", "human_readable_id", "key")


def relationship_rows(
    relationships: pl.DataFrame, unit_ids: pl.Series, counts: Counts
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One relationship per pair of normalized names; and the pair of every given row, `low_key` and `high_key`."""
    keyed = relationships.with_columns(
        key_of(relationships["source"]).alias("source_key"),
        key_of(relationships["target"]).alias("target_key"),
        pl.col("description").fill_null(""),
    ).with_columns(
        low_key=pl.min_horizontal("source_key", "target_key"), high_key=pl.max_horizontal("source_key", "target_key")
    )
    keyed = fitting(keyed, pl.col("low_key") != "", "relationships", "without a name at an endpoint", counts)
    is_loop = pl.col("low_key") == pl.col("high_key")
    keyed = fitting(keyed, ~is_loop, "relationships", "between an entity and itself", counts)
    keyed = fitting(keyed, pl.col("weight") > 0, "relationships", "without a weight above 0", counts)
    keyed = _in_units(keyed, unit_ids, counts, "relationships")
    merged = (
        keyed.sort("human_readable_id", nulls_last=True, maintain_order=True)
        .group_by("low_key", "high_key", maintain_order=True)
        .agg(
            pl.col("source", "target", "source_key", "target_key").first(),
            _joined("description"),
            pl.col("weight").sum(),
            _all_units(),
        )
    )
    counts["relationships", "duplicates of a pair, in either direction, merged"] += keyed.height - merged.height
    return merged, keyed.select("human_readable_id", "low_key", "high_key")


def key_of(names: pl.Series) -> pl.Series:
    """The normalized title of each name; empty for null."""
    keys = {name: title_key(name) for name in names.drop_nulls().unique()}
    return pl.Series(names.name, ["" if name is None else keys[name] for name in names], dtype=pl.String)


def _in_units(frame: pl.DataFrame, unit_ids: pl.Series, counts: Counts, table: str) -> pl.DataFrame:
    """Rows in at least one of the text units, without references to others."""
    kept = frame.with_columns(_UNITS.set_intersection(unit_ids.unique().implode()))
    before, after = (one.select(_UNITS.len().sum()).item() or 0 for one in (frame, kept))
    counts[table, "references to missing text units, left out"] += before - after
    return fitting(kept, _UNITS.len() > 0, table, "without a text unit", counts)


def _joined(column: str) -> pl.Expr:
    """The distinct texts, joined: nothing is lost, and no model has to summarize."""
    text = pl.col(column)
    return text.filter(text != "").unique(maintain_order=True).str.join(" ")


def _all_units() -> pl.Expr:
    """The text units of a group, each once."""
    return pl.col("text_unit_ids").explode(empty_as_null=False).unique(maintain_order=True)


def claim_rows(claims: pl.DataFrame, unit_ids: pl.Series, counts: Counts) -> pl.DataFrame:
    """Claims with content and an existing text unit; dates as ISO 8601 with the original precision.

    One without an id gets that of its content.
    """
    said, subject = (pl.col(name).fill_null("").str.strip_chars() for name in ("description", "subject_id"))
    why = "without a subject or a description"
    claims = fitting(claims, (said != "") & (subject != ""), "covariates", why, counts)
    is_placed = pl.col("text_unit_id").is_in(unit_ids.implode())
    claims = fitting(claims, is_placed, "covariates", "in missing text units", counts)
    parts = claims.select("text_unit_id", "subject_id", "object_id", "type", "description").iter_rows()
    claims = claims.with_columns(
        pl.coalesce("id", pl.Series([stable_id("claim", *part) for part in parts], dtype=pl.String)).alias("id")
    )
    distinct = fitting(claims, pl.col("id").is_first_distinct(), "covariates", "with the id of another claim", counts)
    status = pl.col("status").fill_null("").str.strip_chars().str.to_uppercase()
    counts["covariates", "with an unknown status, set to SUSPECTED"] += distinct.filter(~status.is_in(STATUSES)).height
    dates = {}
    for name in ("start_date", "end_date"):
        dates[name] = [None if given is None else iso_date(given, name == "end_date") for given in distinct[name]]
        counts["covariates", "unreadable dates, left out"] += sum(
            given not in (None, "", "NONE") and read is None
            for given, read in zip(distinct[name], dates[name], strict=True)
        )
    return distinct.with_columns(
        *(pl.Series(name, values, dtype=pl.String) for name, values in dates.items()),
        key_of(distinct["subject_id"]).alias("subject_key"),
        key_of(distinct["object_id"]).alias("object_key"),
        status=pl.when(status.is_in(STATUSES)).then(status).otherwise(pl.lit("SUSPECTED")),
        type=pl.col("type").fill_null("").str.to_uppercase(),
        object_id=pl.col("object_id").fill_null("NONE"),
        source_text=pl.col("source_text").fill_null(""),
    )
