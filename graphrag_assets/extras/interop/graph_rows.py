"""Entities, relationships and claims of an imported index, in the form that the graph has here."""

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from graphrag_assets.contracts.records import UNKNOWN
from graphrag_assets.extras.interop.left_out import Counts, fitting
from graphrag_assets.ids import stable_id
from graphrag_assets.text.iso_dates import iso_date
from graphrag_assets.text.words import title_key

STATUSES = ("TRUE", "FALSE", "SUSPECTED")
_UNITS = pl.col("text_unit_ids").list
_ALL_UNITS = pl.col("text_unit_ids").explode(empty_as_null=False).unique(maintain_order=True)
"""The text units of a group, each once."""


class GraphRows(NamedTuple):
    """Entities: key, id, number, title, type, description, text_unit_ids, one per key.

    Relationships: low_key, high_key, id, number, source, target, source_key, target_key, description, weight,
    text_unit_ids, one per pair of keys. `keys`: id, number, key of every given entity. `pairs`: number, low_key,
    high_key of every given relationship. Both resolve references to given rows.
    """

    entities: pl.DataFrame
    relationships: pl.DataFrame
    keys: pl.DataFrame
    pairs: pl.DataFrame


def graph_rows(entities: pl.DataFrame, relationships: pl.DataFrame, unit_ids: pl.Series, counts: Counts) -> GraphRows:
    """One entity per normalized title, one relationship per pair of them, with all ends present.

    GraphRAG's relationships name endpoints that are no entities, and have both directions of a pair. Rows without any
    existing text unit keep an empty list.

    Args:
        entities, relationships: as in `Source`.
        unit_ids: ids of the existing text units.
        counts: what is left out or merged is added.
    """
    named = _named(entities, counts)
    keys = named.select("id", "number", "key")
    merged = _merge_titles(named, counts)
    ends = _with_ends(relationships, counts)
    pairs = _merge_pairs(ends, counts)
    merged, pairs = _with_units(merged, pairs, unit_ids, counts)
    merged = _complete(merged, pairs, counts)
    return GraphRows(merged, pairs, keys, ends.select("number", "low_key", "high_key"))


def key_of(names: pl.Series) -> pl.Series:
    """The normalized title of each name; empty for null."""
    distinct = names.drop_nulls().unique()
    keys = pl.DataFrame(
        {"name": distinct, "key": [title_key(name) for name in distinct]}, {"name": pl.String, "key": pl.String}
    )
    return names.to_frame("name").join(keys, on="name", how="left", maintain_order="left")["key"].fill_null("")


def _named(entities: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    named = entities.with_columns(
        key_of(entities["title"]).alias("key"),
        pl.col("type").fill_null("").str.strip_chars().str.to_uppercase(),
        pl.col("description").fill_null(""),
    )
    return fitting(named, pl.col("key") != "", "entities", "without a title", counts)


def _merge_titles(named: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    merged = (
        named.sort("number", nulls_last=True, maintain_order=True)
        .group_by("key", maintain_order=True)
        .agg(
            pl.col("id", "number", "title").first(),
            pl.col("type").filter(pl.col("type") != "").first().fill_null(""),
            _joined("description"),
            _ALL_UNITS,
        )
    )
    counts["entities", "with the same title as another, merged"] += named.height - merged.height
    return merged


def _joined(column: str) -> pl.Expr:
    """The distinct texts, joined: nothing is lost, and no model has to summarize."""
    text = pl.col(column)
    return text.filter(text != "").unique(maintain_order=True).str.join(" ")


def _with_ends(relationships: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    """Relationships between two names, with a weight above 0."""
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
    if keyed["weight"].null_count() == keyed.height:  # a graph without weights is valid
        return keyed.with_columns(weight=pl.lit(1.0))
    return fitting(keyed, pl.col("weight") > 0, "relationships", "without a weight above 0", counts)


def _merge_pairs(ends: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    merged = (
        ends.sort("number", nulls_last=True, maintain_order=True)
        .group_by("low_key", "high_key", maintain_order=True)
        .agg(
            pl.col("id", "number", "source", "target", "source_key", "target_key").first(),
            _joined("description"),
            pl.col("weight").sum(),
            _ALL_UNITS,
        )
    )
    counts["relationships", "duplicates of a pair, in either direction, merged"] += ends.height - merged.height
    return merged


def _with_units(
    entities: pl.DataFrame, relationships: pl.DataFrame, unit_ids: pl.Series, counts: Counts
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both without references to missing text units."""
    found = []
    for table, frame in (("entities", entities), ("relationships", relationships)):
        kept = frame.with_columns(text_unit_ids=_UNITS.set_intersection(unit_ids.unique().implode()))
        before, after = (f.select(_UNITS.len().sum()).item() or 0 for f in (frame, kept))
        counts[table, "references to missing text units, left out"] += before - after
        found.append(kept)
    return found[0], found[1]


def _complete(entities: pl.DataFrame, relationships: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    """`entities` with those that only relationships name, and with missing descriptions taken from relationships."""
    ends = [
        relationships.select("weight", "description", "text_unit_ids", key=f"{end}_key", title=end)
        for end in ("source", "target")
    ]
    named_ends = (
        pl.concat(ends)
        .sort(pl.col("weight").neg(), "title", "description")
        .group_by("key", maintain_order=True)
        .agg(
            pl.col("title").first(),
            pl.col("description").filter(pl.col("description") != "").first().fill_null("").alias("said"),
            _ALL_UNITS,
        )
    )
    phantoms = named_ends.join(entities, on="key", how="anti").select("key", "title", "text_unit_ids", type=pl.lit(""))
    counts["entities", "missing endpoints of relationships, added"] += phantoms.height
    both = pl.concat([entities, phantoms], how="diagonal").with_columns(pl.col("description").fill_null(""))
    untyped = entities.filter(pl.col("type") == "").height
    # A graph without types is valid.
    counts["entities", "without a type, of type UNKNOWN"] += untyped if untyped < entities.height else 0
    silent = (pl.col("description") == "") & (pl.col("said").fill_null("") != "")
    joined = both.join(named_ends.select("key", "said"), on="key", how="left", maintain_order="left")
    own = joined.join(entities, on="key", how="semi")
    description_added = "without a description, set to that of their strongest relationship"
    counts["entities", description_added] += own.filter(silent).height
    return joined.with_columns(
        description=pl.when(silent).then("said").otherwise("description"),
        type=pl.when(pl.col("type") == "").then(pl.lit(UNKNOWN)).otherwise("type"),
    ).drop("said")


def claim_rows(claims: pl.DataFrame, unit_ids: Iterable[str], counts: Counts) -> pl.DataFrame:
    """Claims with content and an existing text unit; dates as ISO 8601 with the original precision.

    One without an id gets that of its content.
    """
    said, subject = (pl.col(name).fill_null("").str.strip_chars() for name in ("description", "subject_id"))
    why = "without a subject or a description"
    claims = fitting(claims, (said != "") & (subject != ""), "covariates", why, counts)
    is_placed = pl.col("text_unit_id").is_in(pl.Series(unit_ids).implode())
    claims = fitting(claims, is_placed, "covariates", "in missing text units", counts)
    parts = claims.select("text_unit_id", "subject_id", "object_id", "type", "description").iter_rows()
    own_ids = pl.Series([stable_id("claim", *part) for part in parts], dtype=pl.String)
    counts["covariates", "without an id, given a new one"] += claims["id"].null_count()
    claims = claims.with_columns(id=pl.coalesce("id", own_ids))
    distinct = fitting(claims, pl.col("id").is_first_distinct(), "covariates", "with the id of another claim", counts)
    status = pl.col("status").fill_null("").str.strip_chars().str.to_uppercase()
    counts["covariates", "with an unknown status, set to SUSPECTED"] += distinct.filter(~status.is_in(STATUSES)).height
    dated = [_dates(distinct[name], name == "end_date") for name in ("start_date", "end_date")]
    for given, read in zip((distinct["start_date"], distinct["end_date"]), dated, strict=True):
        counts["covariates", "unreadable dates, left out"] += sum(
            said not in (None, "", "NONE") and date is None for said, date in zip(given, read, strict=True)
        )
    return distinct.with_columns(
        *dated,
        status=pl.when(status.is_in(STATUSES)).then(status).otherwise(pl.lit("SUSPECTED")),
        type=pl.col("type").fill_null("").str.to_uppercase(),
        object_id=pl.col("object_id").fill_null("NONE"),
        source_text=pl.col("source_text").fill_null(""),
    )


def _dates(given: pl.Series, last: bool) -> pl.Series:
    known = {date: iso_date(date, last) for date in given.drop_nulls().unique()}
    return pl.Series(given.name, [None if date is None else known[date] for date in given], dtype=pl.String)
