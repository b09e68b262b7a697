"""Fills the search tables of a publication whose other tables a test has written."""

import duckdb

from graphrag_assets.store.bm25_index import write_bm25_index
from graphrag_assets.store.connections import one_value
from graphrag_assets.store.passage_graph import write_passage_graph
from graphrag_assets.store.schema import WORKING
from graphrag_assets.store.token_counts import count_new, counted_columns

COUNTED_TEXTS = [table for table in WORKING if table.name in ("token_counts", "indexed_texts", "postings", "words")]
"""What an index keeps of texts by their hash."""


def search_tables_of(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the token counts and the search tables of a publication whose other tables are filled, without an index."""
    publication = one_value(connection, "SELECT current_database()")
    connection.execute("ATTACH ':memory:' AS working; USE working")
    for table in COUNTED_TEXTS:
        connection.execute(table.ddl())
    connection.execute(f'USE "{publication}"')
    counted = counted_columns(connection)
    count_new(connection, counted, suffix="")
    for column in counted:
        connection.execute(
            f"UPDATE {column.table} SET {column.column} = tokens FROM "
            f"(SELECT human_readable_id AS number, {column.hash} AS hash FROM {column.table}) "
            "JOIN working.token_counts ON text = hash WHERE human_readable_id = number"
        )
    write_bm25_index(connection)
    write_passage_graph(connection)
    connection.execute("DETACH working")
