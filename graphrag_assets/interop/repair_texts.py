"""Repairs documents and text units: every unit is in an existing document, at its position there."""

import json
import re
from collections import Counter
from typing import NamedTuple

import polars as pl

from graphrag_assets.interop.source import Source
from graphrag_assets.text import count_tokens

Counts = Counter[tuple[str, str]]
"""Number of repairs, by table and kind."""

_METADATA_LINE = re.compile(r"[^\n:]{1,80}: [^\n]*\.\n")
_MAX_METADATA_LINES = 20


class Texts(NamedTuple):
    """`documents`: id, number, title, text, creation_date, raw_data. `text_units`: id, number, document_id, ordinal,
    start_char, end_char, text, n_tokens; the span is null where the unit is not literally in its document.
    """

    documents: pl.DataFrame
    text_units: pl.DataFrame


def repair_texts(source: Source, counts: Counts) -> Texts:
    """The usable documents and text units; repairs are added to `counts`."""
    documents = _distinct(source.documents, "documents", counts)
    units = _distinct(source.text_units, "text_units", counts)
    empty = units.filter(pl.col("text").fill_null("").str.strip_chars() == "")
    counts["text_units", "without text, left out"] += empty.height
    units = units.join(empty, on="id", how="anti", maintain_order="left")
    shared = units.filter(pl.col("document_ids").list.len() > 1)
    counts["text_units", "in several documents, assigned to the first"] += shared.height
    units = units.with_columns(document_id=pl.col("document_ids").list.first().fill_null("")).drop("document_ids")
    listed = documents.select("id", "text_unit_ids").explode("text_unit_ids", empty_as_null=False)
    dangling = listed.join(units, left_on="text_unit_ids", right_on="id", how="anti")
    counts["documents", "references to missing text units, left out"] += dangling.height
    documents = documents.with_columns(_as_json(documents["raw_data"])).drop("text_unit_ids")
    documents = _with_missing(documents, units, counts)
    return Texts(documents, _placed(documents, units, counts))


def _as_json(given: pl.Series) -> pl.Series:
    """Texts that are JSON as they are, others as a JSON string."""

    def valid(text: str) -> str:
        try:
            json.loads(text)
        except ValueError:
            return json.dumps(text, ensure_ascii=False)
        return text

    return pl.Series(given.name, [None if text is None else valid(text) for text in given], dtype=pl.String)


def _distinct(frame: pl.DataFrame, table: str, counts: Counts) -> pl.DataFrame:
    """Rows with an id, one per id."""
    found = frame.drop_nulls("id").unique("id", keep="first", maintain_order=True)
    counts[table, "without a unique id, left out"] += frame.height - found.height
    return found


def _with_missing(documents: pl.DataFrame, units: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    """`documents` with those that only text units refer to; their text is that of their units."""
    texts = units.join(
        documents.filter(pl.col("text").is_not_null()), left_on="document_id", right_on="id", how="anti"
    ).group_by("document_id", maintain_order=True)
    joined = texts.agg(pl.col("text").str.join("\n\n").alias("joined")).rename({"document_id": "id"})
    missing = joined.join(documents, on="id", how="anti", maintain_order="left")
    counts["documents", "missing, created from their text units"] += joined.height
    added = missing.select("id", title=pl.when(pl.col("id") == "").then(pl.lit("untitled")).otherwise("id"))
    return (
        pl.concat([documents, added], how="diagonal")
        .join(joined, on="id", how="left", maintain_order="left")
        .with_columns(text=pl.coalesce("text", "joined", pl.lit("")), title=pl.coalesce("title", "id"))
        .drop("joined")
    )


def _placed(documents: pl.DataFrame, units: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    """`units` with ordinal and span, in the order of their documents."""
    rows: list[tuple[str, str, int | None, int | None]] = []
    for text, ids, given in (
        units.sort("number", nulls_last=True, maintain_order=True)
        .group_by("document_id", maintain_order=True)
        .agg("id", "text")
        .join(documents.select(document_id="id", whole="text"), on="document_id", maintain_order="left")
        .select("whole", "id", "text")
        .iter_rows()
    ):
        after = 0
        for unit_id, unit in zip(ids, given, strict=True):
            start, found = _find(text, unit, after)
            rows.append((unit_id, found, start, None if start is None else start + len(found)))
            after = after if start is None else start + 1
    spans = pl.DataFrame(
        rows, schema={"id": pl.String, "found": pl.String, "start_char": pl.Int64, "end_char": pl.Int64}, orient="row"
    )
    placed = units.join(spans, on="id", maintain_order="right")
    counts["text_units", "not found in their document, without a character span"] += placed["start_char"].null_count()
    freed = placed.filter(pl.col("found") != pl.col("text"))
    counts["text_units", "prepended metadata removed"] += freed.height
    tokens = pl.Series("counted", count_tokens(placed["found"].to_list()), dtype=pl.Int64)
    changed = pl.col("n_tokens").is_null() | (pl.col("found") != pl.col("text"))
    return placed.with_columns(
        n_tokens=pl.when(changed).then(pl.lit(tokens)).otherwise("n_tokens"),
        text="found",
        ordinal=pl.int_range(pl.len(), dtype=pl.Int64).over("document_id"),
    ).drop("found")


def _find(document: str, unit: str, after: int) -> tuple[int | None, str]:
    """Where `unit` begins in `document`, and its text there; GraphRAG may have prepended lines "key: value."."""
    text = unit
    for _ in range(_MAX_METADATA_LINES):
        start = document.find(text, after)
        if start < 0:
            start = document.find(text)
        if start >= 0:
            return start, text
        line = _METADATA_LINE.match(text)
        if not line or line.end() == len(text):
            break
        text = text[line.end() :]
    return None, unit
