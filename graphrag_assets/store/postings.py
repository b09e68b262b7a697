"""The inverted index for BM25: term counts of texts, made by the tokeniser that queries use too."""

from collections.abc import Iterator
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.text import terms

_TEXTS_AT_ONCE = 10_000  # bounds the memory, whatever the corpus

_POSTINGS_AT_ONCE = 10_000_000


class Postings(NamedTuple):
    """`postings`: kind, term, number, n, length. `lengths`: one row per text, its terms."""

    postings: pl.DataFrame
    lengths: pl.Series


def count_terms(kind: str, numbered_texts: pl.DataFrame) -> Postings:
    """Term counts of the texts in `numbered_texts` (columns number, text)."""
    listed = numbered_texts.select(pl.col("number").cast(pl.Int32), terms(numbered_texts["text"]).alias("term"))
    listed = listed.with_columns(pl.col("term").list.len().cast(pl.Int32).alias("length"))
    counted = listed.explode("term").drop_nulls("term").group_by("term", "number").agg(pl.len(), pl.first("length"))
    columns = (pl.lit(kind).alias("kind"), "term", "number", pl.col("len").cast(pl.Int32).alias("n"), "length")
    return Postings(counted.select(columns), listed["length"])


_TEXTS = {
    # With its context: a passage often says "it" of what only the title or a heading names.
    "text_unit": "SELECT human_readable_id AS number, concat_ws(' ', context, text) AS text FROM text_units",
    "entity": "SELECT human_readable_id AS number, title || ' ' || description AS text FROM entities",
    "community_report": (
        "SELECT human_readable_id AS number, regexp_replace(full_content, '\\[Data: [^\\]]*\\]', '', 'g') AS text "
        "FROM community_reports"
    ),
}


_WEIGHTS = """
INSERT INTO community_weights
SELECT m.community, count(DISTINCT t.text_unit)
FROM (SELECT DISTINCT entity, community FROM entity_communities) m LEFT JOIN entity_text_units t USING (entity)
GROUP BY m.community ORDER BY m.community
"""
_NAMES = """
INSERT INTO entity_names
WITH names AS (
    SELECT title_key AS name, title_key FROM entities
    UNION SELECT alias_key, title_key FROM entity_aliases WHERE accepted
)
SELECT md5_number_lower(n.name) AS hashed, e.human_readable_id, e.frequency, md5_number_lower(e.title_key)
FROM names n JOIN entities e USING (title_key) ORDER BY ALL
"""


def write_postings(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill postings, posting_terms, posting_statistics, entity_names and community_weights.

    Args:
        connection: has the published index open, with entities, texts and bridge tables in it.
    """
    connection.execute(_NAMES)
    connection.execute(_WEIGHTS)
    connection.execute("CREATE OR REPLACE TEMP TABLE counted AS FROM postings WITH NO DATA")
    for kind, query in _TEXTS.items():
        texts = length = 0
        for part in _parts(connection, query):
            counted = count_terms(kind, part)
            texts, length = texts + len(counted.lengths), length + int(counted.lengths.sum())
            connection.register("counted_part", counted.postings)
            connection.execute(
                "INSERT INTO temp.counted SELECT kind, md5_number_lower(kind || ' ' || term), number, n, length "
                "FROM counted_part"
            )
            connection.unregister("counted_part")
        if texts:
            connection.execute("INSERT INTO posting_statistics VALUES (?, ?, ?)", [kind, texts, length / texts])
    # Sorted in slices that fit in memory: one sort of everything would go through the disk, three times slower.
    ((rows,),) = connection.execute("SELECT count(*) FROM temp.counted").fetchall()
    slices = rows // _POSTINGS_AT_ONCE + 1
    for place in range(slices):
        bounds = {"first": 2**64 * place // slices, "last": 2**64 * (place + 1) // slices - 1}
        connection.execute(
            "INSERT INTO postings FROM temp.counted WHERE term BETWEEN $first::UBIGINT AND $last::UBIGINT "
            "ORDER BY term, number",
            bounds,
        )
    connection.execute("DROP TABLE temp.counted")
    connection.execute("INSERT INTO posting_terms SELECT term, count(*) FROM postings GROUP BY term ORDER BY term")


def _parts(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[pl.DataFrame]:
    """The rows of `query` in parts of bounded size, found by their numbers: the tables are sorted by them."""
    ((last,),) = connection.execute(f"SELECT coalesce(max(number), -1) FROM ({query})").fetchall()
    for start in range(0, last + 1, _TEXTS_AT_ONCE):
        bounds = {"start": start, "end": start + _TEXTS_AT_ONCE}
        yield connection.sql(f"SELECT * FROM ({query}) WHERE number >= $start AND number < $end", params=bounds).pl()
