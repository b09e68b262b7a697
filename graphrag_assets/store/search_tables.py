"""The tables that searches read: written for a new publication, or brought up to date after rows were replaced."""

from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.store.bm25_index import IndexedTexts, touched_texts, update_bm25_index, write_bm25_index
from graphrag_assets.store.connections import execute_with
from graphrag_assets.store.passage_graph import write_passage_graph
from graphrag_assets.store.token_counts import has_dates, write_token_counts
from graphrag_assets.text.words import name_key

_WEIGHTS = """
INSERT INTO search.community_weights
SELECT m.community, count(DISTINCT t.text_unit)
FROM (SELECT DISTINCT entity, community FROM search.entity_communities {touched}) m
LEFT JOIN search.entity_text_units t USING (entity)
GROUP BY m.community ORDER BY m.community
"""
_NAMES = """
INSERT INTO search.entity_names
WITH names AS (
    SELECT title_key AS name, title_key FROM entities
    UNION SELECT alias_key, title_key FROM entity_aliases WHERE accepted
    UNION SELECT spelling, title_key FROM spellings
)
SELECT md5_number_lower(n.name) AS hashed, e.human_readable_id, e.frequency, md5_number_lower(e.title_key)
FROM names n JOIN entities e USING (title_key) {touched} ORDER BY ALL
"""
_TOUCHED_NAMES = """
CREATE TEMP TABLE touched_names AS
FROM touched_nodes UNION SELECT human_readable_id FROM entities WHERE title_key IN (FROM changed_names);
DELETE FROM search.entity_names WHERE entity IN (FROM touched_names)
"""


# Text units whose text, mentions or titles of entities may be others; those that are gone still have their numbers.
_PASSAGE_UNITS = """
SELECT number AS text_unit FROM touched_texts WHERE kind = 'text_unit'
UNION SELECT text_unit_number FROM entity_mentions
WHERE id IN (FROM touched_entity_mentions) AND text_unit_number IS NOT NULL
UNION SELECT text_unit FROM search.entity_text_units WHERE entity IN (FROM retitled)
"""


class SearchedBefore(NamedTuple):
    """What the search tables were made from: the touched texts, and whether contexts show dates."""

    texts: IndexedTexts
    dates: bool


def write_search_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the tables derived from the texts of the publication open in `connection`."""
    _write_names(connection)
    connection.execute(_WEIGHTS.format(touched=""))
    write_token_counts(connection)
    write_bm25_index(connection)
    write_passage_graph(connection)


def searched_before(connection: duckdb.DuckDBPyConnection) -> SearchedBefore:
    """What `update_search_tables` has to know of the touched rows before they are replaced."""
    return SearchedBefore(touched_texts(connection), has_dates(connection))


def update_search_tables(connection: duckdb.DuckDBPyConnection, before: SearchedBefore) -> bool:
    """Bring the search tables up to date after the rows in the temporary tables touched_* were replaced.

    Returns:
        false if they have to be rebuilt.
    """
    if has_dates(connection) != before.dates:
        return False
    connection.execute(_TOUCHED_NAMES)
    _write_names(connection, "SEMI JOIN touched_names t ON t.entity = e.human_readable_id")
    connection.execute("DELETE FROM search.community_weights WHERE community IN (FROM touched_weights)")
    connection.execute(_WEIGHTS.format(touched="SEMI JOIN touched_weights USING (community)"))
    write_token_counts(connection)
    if not update_bm25_index(connection, before.texts):
        return False
    write_passage_graph(connection, _PASSAGE_UNITS)
    return True


def _write_names(connection: duckdb.DuckDBPyConnection, touched: str = "") -> None:
    """Fill entity_names, with the spellings that a question may have of a title."""
    special = connection.sql(
        f"SELECT DISTINCT title_key FROM entities e {touched} WHERE regexp_matches(title_key, '[^\\x00-\\x7f]|-')"
    ).pl()
    spellings = special.with_columns(
        spelling=pl.Series([name_key(key) for key in special["title_key"]], dtype=pl.String)
    )
    execute_with(connection, _NAMES.format(touched=touched), spellings=spellings)
