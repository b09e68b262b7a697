"""Documents and text units of an imported index: every unit in its document, at its position there."""

import json
import re
from collections.abc import Mapping
from datetime import date

import polars as pl

from graphrag_assets.extras.interop.source import Counts, Tables, fitting
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.chunking import count_sentences
from graphrag_assets.pipeline.unit_contexts import joined
from graphrag_assets.reading.document_dates import FIELDS, date_of, first_date, in_fields, in_name
from graphrag_assets.reading.text_files import split_front_matter
from graphrag_assets.store import schema
from graphrag_assets.text.languages import language_of
from graphrag_assets.text.words import count_tokens

_METADATA_LINE = re.compile(r"[^\n:]{1,80}: [^\n]*\.\n")
_MAX_METADATA_LINES = 20
"""GraphRAG may have prepended lines "key: value." to a text unit."""


def documents_and_units(tables: Tables, batch: str, counts: Counts) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of documents and text_units, each with the columns given_id and human_readable_id of the imported index."""
    documents = _distinct(tables["documents"], "documents", counts).with_columns(
        pl.coalesce("title", "id").alias("title"), pl.col("text").fill_null(""), given_id="id"
    )
    units = _distinct(tables["text_units"], "text_units", counts).with_columns(given_id="id")
    has_text = pl.col("text").fill_null("").str.strip_chars() != ""
    units = fitting(units, has_text, "text_units", "without text", counts)
    is_placed = pl.col("document_id").is_in(documents["id"].implode())
    units = fitting(units, is_placed, "text_units", "of missing documents", counts)
    units = _placed(documents, units, counts)
    return _documents(documents, batch), _text_units(units, documents, batch)


def _distinct(frame: pl.DataFrame, table: str, counts: Counts) -> pl.DataFrame:
    """Rows with an id, one per id."""
    unique = pl.col("id").is_not_null() & pl.col("id").is_first_distinct()
    return fitting(frame, unique, table, "without a unique id", counts)


def new_ids(source_ids: pl.Series, table: str, batch: str) -> pl.Series:
    """Return the ids here of rows with these ids in the imported index; null for null."""
    ids = [None if one is None else stable_id(batch, table, one) for one in source_ids]
    return pl.Series("id", ids, dtype=pl.String)


def _documents(documents: pl.DataFrame, batch: str) -> pl.DataFrame:
    raw_data = pl.Series("raw_data", [_as_json(value) for value in documents["raw_data"]], dtype=pl.String)
    documents = documents.with_columns(new_ids(documents["id"], "documents", batch), raw_data)
    hashes = [stable_id("content", *row) for row in documents.select("title", "text", "raw_data").iter_rows()]
    dates = [_date(*row) for row in documents.select("raw_data", "text", "title").iter_rows()]
    return documents.with_columns(
        batch=pl.lit(batch),
        document_date=pl.Series(dates, dtype=pl.Date),
        source=pl.concat_str(pl.lit(f"{batch}/"), "title"),
        content_hash=pl.Series(hashes, dtype=pl.String),
        format=pl.lit(schema.IMPORTED),
        language=pl.Series([language_of(text) for text in documents["text"]], dtype=pl.String),
        n_tokens=pl.Series(count_tokens(documents["text"].to_list()), dtype=pl.Int64),
    )


def _as_json(text: str | None) -> str | None:
    """Return a text that is JSON as it is, another as a JSON string."""
    if text is None:
        return None
    try:
        json.loads(text)
    except ValueError:
        return json.dumps(text, ensure_ascii=False)
    return text


def _date(raw_data: str | None, text: str, title: str) -> date | None:
    """Return the document's date as it is found in files; its title is the name of its file."""
    fields = json.loads(raw_data) if raw_data else None
    dates = [in_fields(one, FIELDS) for one in (fields, split_front_matter(text)[0]) if isinstance(one, Mapping)]
    return date_of(first_date(dates)) or in_name(title)


def _text_units(units: pl.DataFrame, documents: pl.DataFrame, batch: str) -> pl.DataFrame:
    # The title of an untitled document is its id.
    titled = documents.filter(pl.col("title") != pl.col("id"))
    contexts = pl.Series([joined(title, []) for title in titled["title"]], dtype=pl.String)
    titles = titled.select(document_id="id", context=contexts)
    units = units.join(titles, on="document_id", how="left", maintain_order="left")
    return units.with_columns(
        new_ids(units["id"], "text_units", batch),
        new_ids(units["document_id"], "documents", batch).alias("document_id"),
        pl.col("context").fill_null(""),
        headings=pl.concat_list("context").list.drop_nulls(),
        batch=pl.lit(batch),
        n_sentences=pl.Series([count_sentences(text) for text in units["text"]], dtype=pl.Int64),
        extractor=pl.lit(schema.IMPORTED),
    )


def _placed(documents: pl.DataFrame, units: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    """`units` with ordinal and span, in the order of their documents."""
    rows: list[tuple[str, str, int | None, int | None]] = []
    for text, ids, texts in (
        units.sort("human_readable_id", nulls_last=True, maintain_order=True)
        .group_by("document_id", maintain_order=True)
        .agg("id", "text")
        .join(documents.select(document_id="id", whole="text"), on="document_id", maintain_order="left")
        .select("whole", "id", "text")
        .iter_rows()
    ):
        after = 0
        for unit_id, unit in zip(ids, texts, strict=True):
            start, span_text = _find(text, unit, after)
            rows.append((unit_id, span_text, start, None if start is None else start + len(span_text)))
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
    )


def _find(document: str, unit: str, after: int) -> tuple[int | None, str]:
    """Where `unit` begins in `document`, and its text there, without prepended metadata."""
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
