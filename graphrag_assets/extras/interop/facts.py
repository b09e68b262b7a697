"""Turns an index of GraphRAG into the facts of a batch: documents, text units, mentions and claims.

An entity becomes one mention in each of its text units; so does a relationship, with its weight divided among them.
Merging the mentions restores the entity or relationship, and deleting a text unit deletes its share.
"""

from typing import NamedTuple

import polars as pl

from graphrag_assets.extras.interop.graph_rows import claim_rows, entity_rows, relationship_rows
from graphrag_assets.extras.interop.source import Counts, Tables
from graphrag_assets.extras.interop.texts import documents_and_units, new_ids
from graphrag_assets.ids import stable_id, with_id
from graphrag_assets.store import schema


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
    """The facts of an index, as of the batch `batch`; what had to be repaired is added to `counts`."""
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
    """The ids that merging gives to entities or relationships with these normalized titles."""
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
    listed = entities.rename({"key": "title_key", "text_unit_ids": "text_unit_id"}).explode("text_unit_id")
    mentions = _in_units(listed, units).with_columns(
        table_name=pl.lit("entity_mentions"), n_sentences=pl.lit(1, pl.Int64)
    )
    return with_id(mentions, "table_name", "text_unit_id", "title_key", "type")


def _relationship_mentions(relationships: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    listed = (
        relationships.with_columns(type=pl.lit(""), strength=pl.col("weight") / pl.col("text_unit_ids").list.len())
        .rename({"text_unit_ids": "text_unit_id"})
        .explode("text_unit_id")
    )
    mentions = _in_units(listed, units).with_columns(table_name=pl.lit("relationship_mentions"))
    return with_id(mentions, "table_name", "text_unit_id", "source_key", "target_key", "type", "description")
