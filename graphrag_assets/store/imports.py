"""Imported batches in the working database: their facts, and the records of what was imported."""

from collections.abc import Mapping
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.store import schema
from graphrag_assets.store.batches import utc_now, write_batch
from graphrag_assets.store.connections import execute_with, one_value
from graphrag_assets.store.working import WorkingDatabase, assign_numbers, numbered

_NO_ERRORS = pl.DataFrame(
    schema=dict.fromkeys(("batch", "source", "stage", "error", "hint"), pl.String) | {"row_number": pl.Int64}
)


class ImportedBatch(NamedTuple):
    """A batch to import: its name, origin, the generation of its format, and a hash of its content."""

    name: str
    origin: str
    generation: str
    digest: str


def ids_of_others(working: WorkingDatabase, batch: str) -> dict[str, pl.Series]:
    """The ids of all batches except `batch`, by table."""
    with working.connect() as connection:
        return {
            name: connection.sql(f"SELECT id FROM {name} WHERE batch <> $batch", params={"batch": batch}).pl()["id"]
            for name in ("documents", "text_units", "covariates")
        }


def write_facts(
    working: WorkingDatabase,
    batch: ImportedBatch,
    frames: Mapping[str, pl.DataFrame],
    wanted_numbers: pl.DataFrame,
    original_ids: pl.DataFrame,
    contents: Mapping[str, str],
    run_id: str,
    seconds: float,
) -> None:
    """Write the batch's facts, the numbers its rows keep, and their original ids, in one transaction.

    Args:
        batch: the batch.
        frames: by table, as of any batch.
        wanted_numbers: table_name, id, human_readable_id.
        original_ids: table_name, id, original_id.
        contents: by table, a query for id and content; rows with the same content keep their number.
        run_id, seconds: for index_runs.
    """
    with working.transaction() as connection:
        write_batch(connection, batch.name, frames, _NO_ERRORS, batch.digest, run_id, seconds, origin=batch.origin)
        delete_import_records(connection, batch.name)
        keep_numbers(connection, wanted_numbers, contents)
        add_original_ids(connection, batch.name, original_ids)
        connection.execute(
            "INSERT INTO imports BY NAME SELECT $batch AS batch, $origin AS origin, $generation AS generation, "
            "0.0 AS modularity_loss, $now AS imported_at",
            {"batch": batch.name, "origin": batch.origin, "generation": batch.generation, "now": utc_now()},
        )


def delete_import_records(connection: duckdb.DuckDBPyConnection, batch: str) -> None:
    """Delete the records of an import; its facts stay."""
    for table in ("imports", "import_counts", "imported_ids"):
        connection.execute(f"DELETE FROM {table} WHERE batch = $batch", {"batch": batch})


def add_original_ids(connection: duckdb.DuckDBPyConnection, batch: str, ids: pl.DataFrame) -> None:
    """Record the original ids of rows: table_name, id, original_id. A row of several imports keeps the first."""
    execute_with(
        connection,
        "INSERT INTO imported_ids BY NAME SELECT $batch AS batch, * FROM incoming_ids i "
        "WHERE NOT EXISTS (FROM imported_ids k WHERE k.table_name = i.table_name AND k.id = i.id)",
        {"batch": batch},
        incoming_ids=ids,
    )


def keep_numbers(
    connection: duckdb.DuckDBPyConnection, wanted: pl.DataFrame, contents: Mapping[str, str] | None = None
) -> None:
    """Register the numbers that rows ask for, unless another row has or had them.

    Args:
        connection: inside the transaction.
        wanted: table_name, id, human_readable_id.
        contents: by table, a query for id and content; rows with the same content keep their number.
    """
    content = " UNION ALL ".join(
        f"SELECT '{table}' AS table_name, id, content FROM ({query})" for table, query in (contents or {}).items()
    )
    execute_with(
        connection,
        f"""
        INSERT INTO numbers BY NAME
        SELECT DISTINCT ON (w.table_name, w.human_readable_id) w.table_name, w.id, w.human_readable_id, c.content
        FROM wanted w
        LEFT JOIN ({content or "SELECT NULL AS table_name, NULL AS id, NULL AS content WHERE false"}) c
               ON c.table_name = w.table_name AND c.id = w.id
        WHERE NOT EXISTS (FROM numbers n WHERE n.table_name = w.table_name AND n.id = w.id)
          AND NOT EXISTS (
              FROM numbers n WHERE n.table_name = w.table_name AND n.human_readable_id = w.human_readable_id)
        ORDER BY w.table_name, w.human_readable_id, w.id
        """,
        wanted=wanted,
    )


def number_communities(connection: duckdb.DuckDBPyConnection, communities: pl.DataFrame) -> pl.DataFrame:
    """`communities` (id, community) with the column human_readable_id: the number assigned to each."""
    wanted = communities.select(table_name=pl.lit("communities"), id="id", human_readable_id="community")
    keep_numbers(connection, wanted)
    assign_numbers(connection, "communities", communities.select("id", "community"))
    return numbered(connection, "communities", communities)


def add_rows(connection: duckdb.DuckDBPyConnection, table: schema.Table, frame: pl.DataFrame) -> None:
    """Insert `frame`; columns it lacks are null."""
    execute_with(connection, f"INSERT INTO {table.name} BY NAME FROM added", added=frame)


_WRITTEN = """
WITH units AS (SELECT id FROM text_units WHERE batch = $batch),
named AS (
    SELECT DISTINCT e.id FROM (SELECT id, unnest(text_unit_ids) AS unit FROM entities) e
    JOIN units u ON u.id = e.unit
), stated AS (
    SELECT DISTINCT r.id FROM (SELECT id, unnest(text_unit_ids) AS unit FROM relationships) r
    JOIN units u ON u.id = r.unit
), grouped AS (
    SELECT DISTINCT c.community FROM (SELECT community, unnest(entity_ids) AS entity FROM communities) c
    JOIN named n ON n.id = c.entity
)
SELECT 'documents' AS table_name, count(*) AS n FROM documents WHERE batch = $batch
UNION ALL SELECT 'text_units', count(*) FROM units
UNION ALL SELECT 'entities', count(*) FROM named
UNION ALL SELECT 'relationships', count(*) FROM stated
UNION ALL SELECT 'covariates', count(*) FROM covariates WHERE batch = $batch
UNION ALL SELECT 'communities', count(*) FROM grouped
UNION ALL SELECT 'community_reports', count(*) FROM community_reports SEMI JOIN grouped USING (community)
"""


def rows_written(working: WorkingDatabase, batch: str) -> dict[str, int]:
    """Rows of the index that are derived from the batch, by table."""
    return dict(working.read(_WRITTEN, {"batch": batch}).iter_rows())


def record_counts(working: WorkingDatabase, batch: str, counts: pl.DataFrame) -> None:
    """Record what an import read, wrote and repaired: step, table_name, what, n."""
    with working.transaction() as connection:
        connection.execute("DELETE FROM import_counts WHERE batch = $batch", {"batch": batch})
        add_rows(connection, schema.IMPORT_COUNTS, counts.select(pl.lit(batch).alias("batch"), pl.all()))


def replace_documents(working: WorkingDatabase, batch: str, deleted: pl.Series, digest: str, run_id: str) -> None:
    """Delete the documents `deleted` (ids) of an imported batch, with everything extracted from them.

    A batch without documents is no longer an import.
    """
    with working.transaction() as connection:
        origin = one_value(connection, "SELECT origin FROM batch_state WHERE batch = $batch", {"batch": batch})
        frames = {}
        for table in schema.BATCH_TABLES:
            rows = connection.sql(f"FROM {table.name} WHERE batch = $batch", params={"batch": batch}).pl()
            column = "id" if table is schema.DOCUMENTS else "document_id"
            frames[table.name] = rows.filter(~pl.col(column).is_in(deleted.implode()))
        is_left = frames["documents"].height > 0
        write_batch(connection, batch, frames, _NO_ERRORS, digest, run_id, 0.0, origin=origin if is_left else None)
        if not is_left:
            delete_import_records(connection, batch)


def imports(working: WorkingDatabase) -> pl.DataFrame:
    """batch, origin, generation, imported_at of the imported batches."""
    return working.read("SELECT batch, origin, generation, imported_at FROM imports ORDER BY batch")


def unfinished(working: WorkingDatabase) -> pl.DataFrame:
    """batch, origin of the imports that were interrupted: an import ends with its counts."""
    return working.read("SELECT batch, origin FROM imports ANTI JOIN import_counts USING (batch) ORDER BY batch")


def counts_of(working: WorkingDatabase, batch: str) -> pl.DataFrame:
    """What an import read, wrote and repaired: step, table_name, what, n."""
    return working.read(
        "SELECT step, table_name, what, n FROM import_counts WHERE batch = $batch ORDER BY ALL", {"batch": batch}
    )
