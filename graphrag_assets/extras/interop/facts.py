"""Turns a repaired index into the facts of a batch: documents, text units, mentions and claims.

An entity becomes one mention in each of its text units; so does a relationship, with its weight divided among them.
Merging the mentions restores the entity or relationship, and deleting a text unit deletes its share.
"""

import json
from collections.abc import Mapping
from datetime import date
from typing import NamedTuple

import polars as pl

from graphrag_assets.extras.interop.graph_rows import GraphRows, claim_rows, graph_rows, key_of
from graphrag_assets.extras.interop.left_out import Counts
from graphrag_assets.extras.interop.source import Source
from graphrag_assets.extras.interop.text_rows import Texts, text_rows
from graphrag_assets.ids import stable_id, with_id
from graphrag_assets.pipeline.chunking import count_sentences
from graphrag_assets.pipeline.document_dates import FIELDS, date_of, first_date, in_fields, in_name
from graphrag_assets.pipeline.text_files import split_front_matter
from graphrag_assets.pipeline.unit_contexts import joined
from graphrag_assets.store import schema
from graphrag_assets.text.languages import language_of
from graphrag_assets.text.words import count_tokens

_LINES_PER_UNIT = 20
_INVENTED = "graph"
"""Stands for the id of the document that a graph without texts becomes."""


class Facts(NamedTuple):
    """What an imported index contributes.

    frames: by table, as a batch has them. kept_numbers: table_name, id, human_readable_id wanted for rows.
    original_ids: table_name, id, original_id. references: table_name, number, id: what a number in a report of the
    index refers to. keys: id, key: the normalized title of an entity of the index.
    """

    frames: dict[str, pl.DataFrame]
    kept_numbers: pl.DataFrame
    original_ids: pl.DataFrame
    references: pl.DataFrame
    keys: pl.DataFrame


def facts_of(source: Source, batch: str, taken: dict[str, pl.Series], counts: Counts) -> Facts:
    """The facts of an index; what had to be repaired is added to `counts`.

    Args:
        source: the index.
        batch: the name of the batch it becomes.
        taken: ids that other batches have, by table.
        counts: what was repaired.
    """
    texts = text_rows(source, counts)
    graph = graph_rows(source.entities, source.relationships, texts.text_units["id"], counts)
    claims = claim_rows(source.covariates, texts.text_units["id"], counts)
    texts, graph = _with_text_for_the_rest(texts, graph, counts)
    ids = {
        "documents": _ids(texts.documents, "documents", batch, taken, counts),
        "text_units": _ids(texts.text_units, "text_units", batch, taken, counts),
        "covariates": _ids(claims, "covariates", batch, taken, counts),
    }
    documents = _documents(texts.documents, batch).pipe(_renamed, ids["documents"], "id")
    units = _text_units(texts, batch).pipe(_renamed, ids["text_units"], "id")
    units = _renamed(units, ids["documents"], "document_id")
    lineage = units.select("batch", "document_id", text_unit_id="id")
    frames = {
        "documents": documents,
        "text_units": units,
        "entity_mentions": _entity_mentions(graph.entities, ids["text_units"], lineage),
        "relationship_mentions": _relationship_mentions(graph.relationships, ids["text_units"], lineage),
        "covariates": _covariates(claims, ids, lineage),
    }
    rows = _identified(texts, graph, claims, ids)
    return Facts(
        {table.name: frames[table.name].select(table.column_names) for table in schema.BATCH_TABLES},
        rows.filter(pl.col("number").is_not_null()).select("table_name", "id", human_readable_id="number"),
        rows.filter(pl.col("id") != pl.col("original_id")).select("table_name", "id", "original_id"),
        _references(rows, graph),
        graph.keys.select("id", "key"),
    )


def entity_ids(keys: pl.Series) -> pl.Series:
    """The ids of the entities with these normalized titles, as merging gives them."""
    return pl.Series("id", [stable_id("entity", key) for key in keys], dtype=pl.String)


def _relationship_ids(low: pl.Series, high: pl.Series) -> pl.Series:
    return pl.Series("id", [stable_id("relationship", *pair) for pair in zip(low, high, strict=True)], dtype=pl.String)


def _ids(frame: pl.DataFrame, table: str, batch: str, taken: dict[str, pl.Series], counts: Counts) -> pl.DataFrame:
    """given, id: the ids as they are, but new ones for those that rows of other batches have."""
    clashing = frame.select(given="id").with_columns(clash=pl.col("given").is_in(taken[table].implode()))
    counts[table, "id already used by another batch, replaced by a new one"] += int(clashing["clash"].sum())
    hashed = pl.Series("hashed", [stable_id(batch, table, given) for given in clashing["given"]], dtype=pl.String)
    return clashing.with_columns(hashed).select("given", id=pl.when("clash").then("hashed").otherwise("given"))


def _renamed(frame: pl.DataFrame, ids: pl.DataFrame, column: str) -> pl.DataFrame:
    found = frame.join(ids.rename({"id": "_new"}), left_on=column, right_on="given", how="left", maintain_order="left")
    return found.with_columns(pl.col("_new").alias(column)).drop("_new")


def _documents(documents: pl.DataFrame, batch: str) -> pl.DataFrame:
    hashes = [stable_id("content", *row) for row in documents.select("title", "text", "raw_data").iter_rows()]
    dates = documents.select("document_date", "raw_data", "text", "title").iter_rows()
    return documents.with_columns(
        batch=pl.lit(batch),
        document_date=pl.Series([_date(*row) for row in dates], dtype=pl.Date),
        source=pl.concat_str(pl.lit(f"{batch}/"), "title"),
        row_number=pl.lit(None, pl.Int64),
        content_hash=pl.Series(hashes, dtype=pl.String),
        format=pl.lit(schema.IMPORTED),
        encoding=pl.lit(None, pl.String),
        text_column=pl.lit(None, pl.String),
        title_column=pl.lit(None, pl.String),
        places=pl.lit(None),
        language=pl.Series([language_of(text) for text in documents["text"]], dtype=pl.String),
        n_tokens=pl.Series(count_tokens(documents["text"].to_list()), dtype=pl.Int64),
    )


def _date(stated: str | None, raw_data: str | None, text: str, title: str) -> date | None:
    """The document's date: the one it came with, or as it is found in files; its title is the name of its file."""
    fields = json.loads(raw_data) if raw_data else None
    given = [in_fields(one, FIELDS) for one in (fields, split_front_matter(text)[0]) if isinstance(one, Mapping)]
    return date_of(first_date([stated, *given])) or in_name(title)


def _text_units(texts: Texts, batch: str) -> pl.DataFrame:
    units = texts.text_units
    n_sentences = pl.Series([count_sentences(text) for text in units["text"]], dtype=pl.Int64)
    # The title of an untitled document is its id; the text that stands for the graph itself is no document.
    stands_in = (pl.col("title") == pl.col("id")) | pl.col("id").is_in(["", _INVENTED])
    titled = texts.documents.filter(~stands_in).drop_nulls("title")
    titles = titled.select(
        document_id="id", context=pl.Series([joined(title, []) for title in titled["title"]], dtype=pl.String)
    )
    return units.join(titles, on="document_id", how="left", maintain_order="left").with_columns(
        pl.col("context").fill_null(""),
        headings=pl.concat_list("context").list.drop_nulls(),
        context_fingerprint=pl.lit(None, pl.String),
        batch=pl.lit(batch),
        n_sentences=n_sentences,
        page=pl.lit(None, pl.Int64),
        sheet=pl.lit(None, pl.String),
        time=pl.lit(None, pl.String),
        extractor=pl.lit(schema.IMPORTED),
    )


def _mentions(rows: pl.DataFrame, unit_ids: pl.DataFrame, lineage: pl.DataFrame, table: str) -> pl.DataFrame:
    """A row per row and text unit, with its lineage."""
    listed = rows.explode("text_unit_ids", empty_as_null=False).rename({"text_unit_ids": "text_unit_id"})
    placed = _renamed(listed, unit_ids, "text_unit_id").join(lineage, on="text_unit_id", maintain_order="left")
    return placed.with_columns(table_name=pl.lit(table), extractor=pl.lit(schema.IMPORTED))


def _entity_mentions(entities: pl.DataFrame, unit_ids: pl.DataFrame, lineage: pl.DataFrame) -> pl.DataFrame:
    rows = entities.select(
        "title", "type", "description", "text_unit_ids", title_key="key", n_sentences=pl.lit(1, pl.Int64)
    )
    mentions = _mentions(rows, unit_ids, lineage, "entity_mentions")
    return with_id(mentions, "table_name", "text_unit_id", "title_key", "type")


def _relationship_mentions(relationships: pl.DataFrame, unit_ids: pl.DataFrame, lineage: pl.DataFrame) -> pl.DataFrame:
    rows = relationships.select(
        *("source", "target", "source_key", "target_key", "description", "text_unit_ids"),
        type=pl.lit(""),
        strength=pl.col("weight") / pl.col("text_unit_ids").list.len(),
    )
    mentions = _mentions(rows, unit_ids, lineage, "relationship_mentions")
    return with_id(mentions, "table_name", "text_unit_id", "source_key", "target_key", "type", "description")


def _covariates(claims: pl.DataFrame, ids: dict[str, pl.DataFrame], lineage: pl.DataFrame) -> pl.DataFrame:
    named = claims.with_columns(
        key_of(claims["subject_id"]).alias("subject_key"),
        key_of(claims["object_id"]).alias("object_key"),
        covariate_type=pl.lit("claim"),
        extractor=pl.lit(schema.IMPORTED),
    )
    placed = _renamed(_renamed(named, ids["covariates"], "id"), ids["text_units"], "text_unit_id")
    return placed.join(lineage, on="text_unit_id", maintain_order="left")


def _identified(texts: Texts, graph: GraphRows, claims: pl.DataFrame, ids: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """number, table_name, original_id, id of every row that came with the index."""
    given = {"documents": texts.documents, "text_units": texts.text_units, "covariates": claims}
    same = [
        frame.select("id", "number")
        .join(ids[name], left_on="id", right_on="given", maintain_order="left")
        .select("number", table_name=pl.lit(name), original_id="id", id="id_right")
        for name, frame in given.items()
    ]
    entities = graph.entities.with_columns(_new=entity_ids(graph.entities["key"]))
    pairs = graph.relationships
    relationships = pairs.with_columns(_new=_relationship_ids(pairs["low_key"], pairs["high_key"]))
    derived = [
        frame.select("number", table_name=pl.lit(name), original_id="id", id="_new")
        for name, frame in (("entities", entities), ("relationships", relationships))
    ]
    return pl.concat([*same, *derived])


def _references(rows: pl.DataFrame, graph: GraphRows) -> pl.DataFrame:
    """The current row for each number that a report of the index cites; merged rows map to the same row."""
    entities = graph.keys.with_columns(id=entity_ids(graph.keys["key"]))
    relationships = graph.pairs.with_columns(_relationship_ids(graph.pairs["low_key"], graph.pairs["high_key"]))
    merged = [
        frame.select("number", "id", table_name=pl.lit(name))
        for name, frame in (("entities", entities), ("relationships", relationships))
    ]
    others = rows.filter(~pl.col("table_name").is_in(["entities", "relationships"])).select(merged[0].columns)
    return pl.concat([others, *merged]).drop_nulls("number").unique(["table_name", "number"], keep="first")


def _with_text_for_the_rest(texts: Texts, graph: GraphRows, counts: Counts) -> tuple[Texts, GraphRows]:
    """Add a document with a line for each entity and relationship that has no text unit."""
    entities = graph.entities.filter(pl.col("text_unit_ids").list.len() == 0)
    pairs = graph.relationships.filter(pl.col("text_unit_ids").list.len() == 0)
    if entities.is_empty() and pairs.is_empty():
        return texts, graph
    counts["entities", "without a text unit, given a text of what the graph says of them"] += entities.height
    counts["relationships", "without a text unit, given a text of what the graph says of them"] += pairs.height
    units = _invented_units(entities, pairs)
    document = pl.DataFrame({"id": _INVENTED, "title": "what the graph says", "text": "".join(units["text"])})
    of_entities = units.filter(pl.col("place") == 0).select("key", _unit="id")
    of_pairs = units.explode("pairs", empty_as_null=False).select("id", "pairs").unnest("pairs").rename({"id": "_unit"})
    unit_list = (
        pl.when(pl.col("text_unit_ids").list.len() == 0).then(pl.concat_list("_unit")).otherwise("text_unit_ids")
    )
    placed = graph._replace(
        entities=graph.entities.join(of_entities, on="key", how="left", maintain_order="left")
        .with_columns(text_unit_ids=unit_list)
        .drop("_unit"),
        relationships=graph.relationships.join(of_pairs, on=["low_key", "high_key"], how="left", maintain_order="left")
        .with_columns(text_unit_ids=unit_list)
        .drop("_unit"),
    )
    added = units.select("id", "document_id", "ordinal", "start_char", "end_char", "text", "n_tokens")
    return Texts(
        pl.concat([texts.documents, document], how="diagonal"), pl.concat([texts.text_units, added], how="diagonal")
    ), placed


def _invented_units(entities: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Text units: a line for each entity, then one for each relationship that starts from it, some 20 to a unit.

    Columns of the text units, key, place (0: the entity's first), pairs (structs of low_key and high_key).
    """
    described = (
        pl.when(pl.col("description") == "").then(pl.lit("")).otherwise(pl.concat_str(pl.lit(": "), "description"))
    )
    own = entities.select(
        "key", first=pl.lit(True), line=pl.concat_str("title", pl.lit(" ("), "type", pl.lit(")"), described)
    )
    ties = pairs.select(
        key="source_key",
        first=pl.lit(False),
        line=pl.concat_str("source", pl.lit(" – "), "target", described),
        pair=pl.struct("low_key", "high_key"),
    )
    units = (
        pl.concat([own, ties], how="diagonal")
        .sort("key", ~pl.col("first"), maintain_order=True)
        .with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64).over("key") // _LINES_PER_UNIT)
        .group_by("key", "place", maintain_order=True)
        .agg(pl.concat_str("line", pl.lit("\n")).str.join().alias("text"), pl.col("pair").drop_nulls().alias("pairs"))
    )
    ends = pl.col("text").str.len_chars().cum_sum().cast(pl.Int64)
    ids = [stable_id(_INVENTED, key, place) for key, place in units.select("key", "place").iter_rows()]
    return units.with_columns(
        id=pl.Series(ids, dtype=pl.String),
        document_id=pl.lit(_INVENTED),
        ordinal=pl.int_range(pl.len(), dtype=pl.Int64),
        start_char=ends - pl.col("text").str.len_chars().cast(pl.Int64),
        end_char=ends,
        n_tokens=pl.Series(count_tokens(units["text"].to_list()), dtype=pl.Int64),
    )
