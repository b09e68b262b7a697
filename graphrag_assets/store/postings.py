"""The inverted index for BM25: term counts of texts, made by the tokeniser that queries use too."""

from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.text import terms


class Postings(NamedTuple):
    """`postings`: kind, term, number, n. `lengths`: kind, number, length."""

    postings: pl.DataFrame
    lengths: pl.DataFrame


def count_terms(kind: str, numbered_texts: pl.DataFrame) -> Postings:
    """Term counts of the texts in `numbered_texts` (columns number, text)."""
    listed = numbered_texts.select("number", terms(numbered_texts["text"]).alias("term"))
    label = pl.lit(kind).alias("kind")
    counted = listed.explode("term").drop_nulls("term").group_by("term", "number").len("n")
    return Postings(
        counted.select(label, "term", "number", "n"),
        listed.select(label, "number", pl.col("term").list.len().alias("length")),
    )


_TEXTS = {
    "text_unit": "SELECT human_readable_id AS number, text FROM text_units",
    "entity": "SELECT human_readable_id AS number, title || ' ' || description AS text FROM entities",
    "community_report": (
        "SELECT human_readable_id AS number, regexp_replace(full_content, '\\[Data: [^\\]]*\\]', '', 'g') AS text "
        "FROM community_reports"
    ),
}


def write_postings(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the tables postings and posting_lengths of the published index open in `connection`."""
    counted = [count_terms(kind, connection.sql(query).pl()) for kind, query in _TEXTS.items()]
    connection.register("counted_postings", pl.concat([c.postings for c in counted]))
    connection.register("counted_lengths", pl.concat([c.lengths for c in counted]))
    connection.execute(
        "INSERT INTO postings SELECT kind, md5_number_lower(term) AS hashed, number, n "
        "FROM counted_postings ORDER BY kind, hashed, number"
    )
    connection.execute("INSERT INTO posting_lengths FROM counted_lengths ORDER BY kind, number")
    connection.unregister("counted_postings")
    connection.unregister("counted_lengths")
