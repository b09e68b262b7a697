"""The content of a publication: each published table, in its reading order, from the index."""

import hashlib
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets import __version__
from graphrag_assets.ids import stable_id
from graphrag_assets.store import schema
from graphrag_assets.store.bm25_index import write_bm25_index
from graphrag_assets.store.connections import execute_in_order, one_value
from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.macros import macros_sql, write_macros
from graphrag_assets.store.passage_graph import write_passage_graph
from graphrag_assets.store.schema import PUBLISHED, SCHEMA_VERSION, identifier, literal, sql
from graphrag_assets.store.token_counts import count_new, counted_columns, insert_counted

_PUBLISH = sql("publish").replace("{supersession}", sql("supersession")).replace("{predicates}", sql("predicates"))
_VECTORS = """
INSERT INTO embeddings BY NAME
WITH numbers AS (
    SELECT 'community_report' AS kind, id, human_readable_id AS number FROM working.community_reports
    UNION ALL SELECT 'entity', id, human_readable_id FROM working.entities
    UNION ALL SELECT 'text_unit', id, human_readable_id FROM working.numbers SEMI JOIN working.text_units USING (id)
    WHERE table_name = 'text_units'
)
SELECT kind, number, id, model, vector FROM working.embeddings JOIN numbers USING (kind, id)
"""
_DIMENSIONS = "SELECT coalesce(max(len(vector)), 1) FROM working.embeddings"  # of an index without vectors 1
_COPIED = ("entity_aliases", "entity_candidates", "citations", "index_errors")
_CALLS = """
INSERT INTO llm_calls BY NAME
SELECT * EXCLUDE (unit) REPLACE (created_at[:26]::TIMESTAMP AS created_at), unit AS text_unit_id
FROM calls
"""
DIGESTED = (
    *(*schema.BATCH_TABLES, *schema.GLOBAL_TABLES),
    *(schema.NUMBERS, schema.INDEX_ERRORS, schema.INDEX_SETTINGS, schema.PROMPT_PROFILE),
)
"""The tables of the index that a publication is made from, but for the records of runs."""
ROWS_PER_TABLE = " UNION ALL ".join(f"SELECT {literal(t.name)}, count(*) FROM {t.sql_name}" for t in PUBLISHED)
"""Query for name and number of rows of each table of a publication."""


class Made(NamedTuple):
    """The record of a publication: the columns of the table publication."""

    number: int
    published_at: datetime
    content_digest: str
    version: str = __version__
    schema_version: str = SCHEMA_VERSION


def record(connection: duckdb.DuckDBPyConnection, made: Made) -> None:
    """Write the row of a publication into the database in use, in place of one with its number."""
    connection.execute("DELETE FROM publication WHERE number = $number", {"number": made.number})
    values = ", ".join(f"${name} AS {name}" for name in Made._fields)
    connection.execute(f"INSERT INTO publication BY NAME SELECT {values}", made._asdict())


def fill(connection: duckdb.DuckDBPyConnection, number: int, digest: str, llm_calls: pl.DataFrame | None) -> Made:
    """Fill an empty publication, which is in use, from the index, which is attached as `working`.

    What is counted of new texts is kept in the index. `llm_calls`: as `Ledger.frame` returns them.
    """
    made = Made(number, datetime.now(UTC).replace(tzinfo=None), digest)
    create_tables(connection, one_value(connection, _DIMENSIONS), made)
    execute_in_order(connection, _VECTORS)
    # Uncompressed: vectors hardly compress, and are compared a third faster. The setting applies when blocks are
    # written, hence the checkpoint.
    connection.execute("SET force_compression = 'uncompressed'; CHECKPOINT; RESET force_compression")
    execute_in_order(connection, _PUBLISH)
    counted = counted_columns(connection)
    count_new(connection, counted)
    for name in dict.fromkeys(column.table for column in counted):
        insert_counted(connection, name, counted)
    for table in PUBLISHED:
        if table.name in _COPIED or table.schema == "operations":
            copy = f"INSERT INTO {table.sql_name} BY NAME FROM working.{identifier(table.name)} ORDER BY {table.order}"
            connection.execute(copy)
    if llm_calls is not None:
        connection.register("calls", llm_calls)
        execute_in_order(connection, _CALLS)
        connection.unregister("calls")
    write_bm25_index(connection)
    write_passage_graph(connection)
    return made


def create_tables(connection: duckdb.DuckDBPyConnection, dimensions: int, made: Made | None = None) -> None:
    """Create the tables, macros and views of a publication, for vectors of this many dimensions, and its record."""
    ddl = "".join(table.ddl() for table in PUBLISHED).replace("{dimensions}", str(dimensions))
    connection.execute(f"BEGIN;{ddl}COMMIT")
    if made:
        record(connection, made)
    write_macros(connection)


def content_digest(working: IndexDatabase) -> str:
    """One hash over the shape of a publication and all rows of the index that it is made from, in any order.

    Records of runs do not count. Another version of DuckDB may hash otherwise, and publish the same content again.
    """
    versions = working.content_versions(table.name for table in DIGESTED)
    return stable_id("publication", publication_shape(), *(f"{name} {versions[name]}" for name in sorted(versions)))


@cache
def publication_shape() -> str:
    """Hash of tables, macros and the SQL that fills them: a changed macro makes a new publication."""
    shape = [*(table.ddl() for table in PUBLISHED), _PUBLISH, macros_sql(), sql("graphrag_v3")]
    return hashlib.md5("".join(shape).encode()).hexdigest()
