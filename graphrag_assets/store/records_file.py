"""The records of runs and of model calls as they are now, in a file of their own.

A run that changes nothing publishes nothing, and one that fails neither, but both are recorded and may have cost money.
Queries of users find these records in place of those of the publication, see `publication_reader.Reader.query`.
"""

from pathlib import Path

import polars as pl

from graphrag_assets.store.connections import execute_with, in_memory, opened
from graphrag_assets.store.drafts import draft_folder, move_into_place
from graphrag_assets.store.interrupts import interrupts_raised
from graphrag_assets.store.publication_schema import LLM_CALLS, OPERATIONS
from graphrag_assets.store.working import WorkingDatabase

RECORDS_FILE = "records.duckdb"
_INDEX_RUNS = next(table for table in OPERATIONS if table.name == "index_runs")
CALLS_AS_PUBLISHED = """
SELECT * EXCLUDE (unit) REPLACE (created_at[:26]::TIMESTAMP AS created_at), unit AS text_unit_id FROM incoming_calls
"""
"""Query for the rows of llm_calls from `incoming_calls`, a frame as `Ledger.frame` returns it."""


def write_records(working: WorkingDatabase, index_folder: Path, llm_calls: pl.DataFrame | None) -> None:
    """Replace `records.duckdb`: index_runs, and llm_calls unless it is None (see `publish`)."""
    runs = working.read("FROM index_runs ORDER BY committed_at, stage, batch")
    with draft_folder(index_folder) as drafts:
        draft = drafts / RECORDS_FILE
        with (
            interrupts_raised(),
            in_memory(working.limits.beside(working.path), one_thread=True) as connection,
            opened(connection, draft, "recent", "RECOVERY_MODE NO_WAL_WRITES"),
        ):
            connection.execute(_INDEX_RUNS.ddl())
            execute_with(connection, f"INSERT INTO {_INDEX_RUNS.sql_name} BY NAME FROM runs", runs=runs)
            if llm_calls is not None:
                connection.execute(LLM_CALLS.ddl())
                insert = f"INSERT INTO llm_calls BY NAME {CALLS_AS_PUBLISHED} ORDER BY created_at, key"
                execute_with(connection, insert, incoming_calls=llm_calls)
            connection.execute("CHECKPOINT recent")
        move_into_place(draft, index_folder / RECORDS_FILE)
