"""The tables that searches read, from the texts of a publication."""

import duckdb
import polars as pl

from graphrag_assets.store.bm25_index import write_bm25_index
from graphrag_assets.store.passage_graph import write_passage_graph
from graphrag_assets.store.reading_order import execute_in_order
from graphrag_assets.text.words import name_key

_WEIGHTS = """
INSERT INTO search.community_weights
SELECT m.community AS community, count(DISTINCT t.text_unit)
FROM (SELECT DISTINCT entity, community FROM search.entity_communities) m
LEFT JOIN search.entity_text_units t USING (entity)
GROUP BY m.community
"""
_NAMES = """
INSERT INTO search.entity_names
WITH names AS (
    SELECT title_key AS name, title_key FROM entities
    UNION SELECT alias_key, title_key FROM entity_aliases WHERE accepted
    UNION SELECT spelling, title_key FROM spellings
)
SELECT md5_number_lower(n.name) AS hashed, e.human_readable_id, e.frequency, md5_number_lower(e.title_key)
FROM names n JOIN entities e USING (title_key);
"""
_SPECIAL = "SELECT DISTINCT title_key FROM entities WHERE regexp_matches(title_key, '[^\\x00-\\x7f]|-')"


def write_search_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the tables derived from the texts of the publication in use; the index is attached as `working`."""
    # With the spellings that a question may have of a title.
    special = connection.sql(_SPECIAL).pl()
    spellings = [name_key(key) for key in special["title_key"]]
    names = special.with_columns(spelling=pl.Series(spellings, dtype=pl.String))
    connection.register("spellings", names)
    execute_in_order(connection, _NAMES + _WEIGHTS)
    connection.unregister("spellings")
    write_bm25_index(connection)
    write_passage_graph(connection)
