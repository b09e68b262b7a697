"""Documents and text units of an imported index: every unit in its document, at its position there."""

import json
import re
from typing import NamedTuple

import polars as pl

from graphrag_assets.extras.interop.left_out import Counts, fitting
from graphrag_assets.extras.interop.source import Source
from graphrag_assets.text.words import count_tokens

_METADATA_LINE = re.compile(r"[^\n:]{1,80}: [^\n]*\.\n")
_MAX_METADATA_LINES = 20


class Texts(NamedTuple):
    """`documents`: id, number, title, text, creation_date, raw_data. `text_units`: id, number, document_id, ordinal,
    start_char, end_char, text, n_tokens; the span is null where the unit is not literally in its document.
    """

    documents: pl.DataFrame
    text_units: pl.DataFrame


def text_rows(source: Source, counts: Counts) -> Texts:
    """The documents and text units that fit. An index without documents gets those that its text units name."""
    units = _distinct(source.text_units, "text_units", counts)
    has_text = pl.col("text").fill_null("").str.strip_chars() != ""
    units = fitting(units, has_text, "text_units", "without text", counts)
    shared = units.filter(pl.col("document_ids").list.len() > 1)
    counts["text_units", "in several documents, assigned to the first"] += shared.height
    units = units.with_columns(document_id=pl.col("document_ids").list.first().fill_null("")).drop("document_ids")
    joined = units.group_by("document_id", maintain_order=True).agg(joined=pl.col("text").str.join("\n\n"))
    if source.documents.is_empty():
        name = pl.when(pl.col("document_id") == "").then(pl.lit("untitled")).otherwise("document_id")
        named = joined.select(id="document_id", title=name)
        documents = pl.concat([source.documents, named], how="diagonal")
    else:
        documents = _distinct(source.documents, "documents", counts)
    units = fitting(
        units, pl.col("document_id").is_in(documents["id"].implode()), "text_units", "of missing documents", counts
    )
    documents = documents.join(joined, left_on="id", right_on="document_id", how="left", maintain_order="left")
    documents = documents.with_columns(
        _as_json(documents["raw_data"]),
        text=pl.coalesce("text", "joined", pl.lit("")),
        title=pl.coalesce("title", "id"),
    ).drop("joined")
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
    unique = pl.col("id").is_not_null() & pl.col("id").is_first_distinct()
    return fitting(frame, unique, table, "without a unique id", counts)


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
