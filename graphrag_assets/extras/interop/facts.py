"""Turns an index of GraphRAG into the facts of a batch: documents, text units, mentions and claims.

An entity becomes one mention in each of its text units; so does a relationship, with its weight divided among them.
Merging the mentions restores the entity or relationship, and deleting a text unit deletes its share.
"""

from typing import NamedTuple

import polars as pl

from graphrag_assets.contracts.records import UNKNOWN
from graphrag_assets.extras.interop.source import Counts, Tables, fitting
from graphrag_assets.extras.interop.texts import documents_and_units, new_ids
from graphrag_assets.ids import stable_id, with_id
from graphrag_assets.store import schema
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
    named = _of_existing_units(
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
    keyed = _of_existing_units(keyed, unit_ids, counts, "relationships")
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
    """Return the normalized title of each name; empty for null."""
    keys = {name: title_key(name) for name in names.drop_nulls().unique()}
    return pl.Series(names.name, ["" if name is None else keys[name] for name in names], dtype=pl.String)


def _of_existing_units(frame: pl.DataFrame, unit_ids: pl.Series, counts: Counts, table: str) -> pl.DataFrame:
    """Rows in at least one of the text units, without references to others."""
    placed = frame.with_columns(_UNITS.set_intersection(unit_ids.unique().implode()))
    before, after = (one.select(_UNITS.len().sum()).item() or 0 for one in (frame, placed))
    counts[table, "references to missing text units, left out"] += before - after
    return fitting(placed, _UNITS.len() > 0, table, "without a text unit", counts)


def _joined(column: str) -> pl.Expr:
    """Return the distinct texts, joined: nothing is lost, and no model has to summarize."""
    text = pl.col(column)
    return text.filter(text != "").unique(maintain_order=True).str.join(" ")


def _all_units() -> pl.Expr:
    """Return the text units of a group, each once."""
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
        dates[name] = [None if stated is None else iso_date(stated, name == "end_date") for stated in distinct[name]]
        counts["covariates", "unreadable dates, left out"] += sum(
            stated not in (None, "", "NONE") and date is None
            for stated, date in zip(distinct[name], dates[name], strict=True)
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


class Facts(NamedTuple):
    """What an imported index contributes.

    frames: by table, as a batch has them. entity_ids: given id, entity_id. edges: source_id, target_id (the smaller
    first), weight. references: table_name, number, id: what a number in a report of the index refers to.
    """

    frames: dict[str, pl.DataFrame]
    entity_ids: pl.DataFrame
    edges: pl.DataFrame
    references: pl.DataFrame

    def rows(self) -> dict[str, int]:
        """Rows by table of GraphRAG."""
        heights = {name: self.frames[name].height for name in ("documents", "text_units", "covariates")}
        return heights | {"entities": self.entity_ids["entity_id"].n_unique(), "relationships": self.edges.height}


def facts_of(tables: Tables, batch: str, counts: Counts) -> Facts:
    """Return the facts of an index, as of the batch `batch`; what had to be repaired is added to `counts`."""
    documents, units = documents_and_units(tables, batch, counts)
    entities, keys = entity_rows(tables["entities"], units["given_id"], counts)
    relationships, pairs = relationship_rows(tables["relationships"], units["given_id"], counts)
    claims = claim_rows(tables["covariates"], units["given_id"], counts)
    claims = claims.with_columns(new_ids(claims["id"], "covariates", batch))
    frames = {
        "documents": documents,
        "text_units": units,
        "entity_mentions": _entity_mentions(entities, units),
        "relationship_mentions": _relationship_mentions(relationships, units),
        "covariates": _in_units(claims, units).with_columns(covariate_type=pl.lit("claim")),
    }
    keys = keys.with_columns(entity_id=_ids("entity", keys, "key"))
    ends = pl.DataFrame({key: _ids("entity", relationships, key) for key in ("low_key", "high_key")})
    edges = ends.select(source_id=pl.min_horizontal(pl.all()), target_id=pl.max_horizontal(pl.all())).with_columns(
        relationships["weight"]
    )
    numbers = {
        "documents": documents.select("id", number="human_readable_id"),
        "text_units": units.select("id", number="human_readable_id"),
        "covariates": claims.select("id", number="human_readable_id"),
        "entities": keys.select(id="entity_id", number="human_readable_id"),
        "relationships": pairs.select(_ids("relationship", pairs, "low_key", "high_key"), number="human_readable_id"),
    }
    references = pl.concat(
        frame.select(pl.lit(name).alias("table_name"), "number", "id") for name, frame in numbers.items()
    )
    return Facts(
        {table.name: _with_columns(frames[table.name], table) for table in schema.BATCH_TABLES},
        keys.select("id", "entity_id"),
        edges,
        references.drop_nulls().unique(["table_name", "number"], keep="first", maintain_order=True),
    )


def _ids(kind: str, frame: pl.DataFrame, *keys: str) -> pl.Series:
    """Return the ids that merging gives to entities or relationships with these normalized titles."""
    return pl.Series("id", [stable_id(kind, *row) for row in frame.select(keys).iter_rows()], dtype=pl.String)


def _with_columns(frame: pl.DataFrame, table: schema.Table) -> pl.DataFrame:
    missing = [pl.lit(None).alias(name) for name in table.column_names if name not in frame.columns]
    return frame.with_columns(missing).select(table.column_names)


def _in_units(rows: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Rows with the given id of a text unit as text_unit_id, with the lineage that they have here."""
    lineage = units.select("batch", "document_id", _unit="id", text_unit_id="given_id")
    placed = rows.join(lineage, on="text_unit_id", maintain_order="left").drop("text_unit_id")
    return placed.rename({"_unit": "text_unit_id"}).with_columns(extractor=pl.lit(schema.IMPORTED))


def _entity_mentions(entities: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    rows = entities.rename({"key": "title_key", "text_unit_ids": "text_unit_id"}).explode("text_unit_id")
    mentions = _in_units(rows, units).with_columns(
        table_name=pl.lit("entity_mentions"), n_sentences=pl.lit(1, pl.Int64)
    )
    return with_id(mentions, "table_name", "text_unit_id", "title_key", "type")


def _relationship_mentions(relationships: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    rows = (
        relationships.with_columns(type=pl.lit(""), strength=pl.col("weight") / pl.col("text_unit_ids").list.len())
        .rename({"text_unit_ids": "text_unit_id"})
        .explode("text_unit_id")
    )
    mentions = _in_units(rows, units).with_columns(table_name=pl.lit("relationship_mentions"))
    return with_id(mentions, "table_name", "text_unit_id", "source_key", "target_key", "type", "description")
