import os
from pathlib import Path

import polars as pl
import pytest

from graphrag_assets.store import schema
from graphrag_assets.store.batches import trim_runs
from graphrag_assets.store.index_database import IndexDatabase, replace_table
from graphrag_assets.store.index_files import leftovers


def write(working: IndexDatabase, revision: int, n: int = 4000) -> None:
    """So many documents, about 1 kB each, of which every second one changes with the revision."""
    ids = [f"d{i}" for i in range(n)]
    texts = [os.urandom(256).hex() * 2 if i % 2 else f"{i:>1024}" for i in range(n)]
    frame = pl.DataFrame({"id": ids, "title": f"revision {revision}", "text": texts})
    missing = [pl.lit(None).alias(c) for c in schema.DOCUMENTS.column_names if c not in frame.columns]
    with working.transaction() as connection:
        replace_table(connection, schema.DOCUMENTS, frame.with_columns(missing))


def size(working: IndexDatabase) -> int:
    return working.path.stat().st_size


@pytest.fixture
def working(tmp_path: Path) -> IndexDatabase:
    """Mostly free blocks of deleted rows."""
    database = IndexDatabase(tmp_path / "working.duckdb")
    for revision in range(3):
        write(database, revision)
    write(database, 3, 10)
    return database


def test_file_of_free_blocks_is_rewritten_with_all_rows(working):
    def content():
        comments = (
            "SELECT table_name, column_name, comment, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
        )
        views = "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
        versions = working.content_versions(table.name for table in schema.WORKING)
        return versions, *(frame.rows() for frame in working.read_all(comments, views))

    held = content()
    before = size(working)
    working.rewrite()
    assert size(working) < before / 2
    assert content() == held
    assert len(held[2]) == 2
    assert leftovers(working.path.parent) == []


def test_records_of_runs_keep_their_newest_rows_and_the_last_of_each_batch(tmp_path):
    working = IndexDatabase(tmp_path / "working.duckdb")
    with working.transaction() as connection:
        connection.execute(
            "INSERT INTO index_runs BY NAME SELECT 'r' || i AS run_id, 'index_batch' AS stage, "
            "CASE WHEN i = 0 THEN 'old' ELSE 'b' END AS batch, "
            "TIMESTAMP '2026-01-01' + to_days(i::INTEGER) AS committed_at FROM range(20) t(i)"
        )
        trim_runs(connection, rows=5)
    assert working.read("SELECT run_id FROM index_runs ORDER BY committed_at")["run_id"].to_list() == [
        "r0",
        *(f"r{i}" for i in range(15, 20)),
    ]
