import multiprocessing
import os
import signal
import time
from pathlib import Path

import duckdb
import polars as pl
import pytest

from graphrag_assets.errors import StoreError
from graphrag_assets.store import schema
from graphrag_assets.store.batches import trim_runs
from graphrag_assets.store.index_database import IndexDatabase, replace_table
from graphrag_assets.store.index_files import leftovers

SPAWN = multiprocessing.get_context("spawn")


def documents(revision: int, n: int = 4000) -> pl.DataFrame:
    """So many documents, about 1 kB each, of which every second one changes with the revision."""
    texts = pl.Series([os.urandom(256).hex() * 2 for _ in range(n // 2)] + [f"{i:>1024}" for i in range(n - n // 2)])
    return pl.DataFrame(
        {
            "id": [f"d{i}" for i in range(n)],
            "batch": "b",
            "source": "s",
            "row_number": None,
            "title": f"revision {revision}",
            "text": texts,
            "creation_date": "2026-01-01",
            "document_date": None,
            "raw_data": None,
            "encoding": None,
            "text_column": None,
            "title_column": None,
            "places": None,
            "content_hash": "h",
            "format": "txt",
            "language": "en",
            "n_tokens": 8,
        }
    )


def write(working: IndexDatabase, frame: pl.DataFrame) -> None:
    with working.transaction() as connection:
        replace_table(connection, schema.DOCUMENTS, frame)


def size(working: IndexDatabase) -> int:
    return working.path.stat().st_size


@pytest.fixture
def working(tmp_path: Path) -> IndexDatabase:
    """Mostly free blocks of deleted rows."""
    database = IndexDatabase(tmp_path / "working.duckdb")
    for revision in range(3):
        write(database, documents(revision))
    write(database, documents(3, 10))
    return database


def test_file_of_free_blocks_is_rewritten_with_all_rows(working):
    def content():
        with working.connect() as connection:
            tables = {
                table.name: connection.sql(f"FROM {table.name} ORDER BY ALL").fetchall() for table in schema.WORKING
            }
            comments = connection.sql(
                "SELECT table_name, column_name, comment, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
            ).fetchall()
            views = connection.sql(
                "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
            ).fetchall()
        return tables, comments, views

    held = content()
    before = size(working)
    working.rewrite()
    assert size(working) < before / 2
    assert content() == held
    assert len(held[2]) == 2
    assert leftovers(working.path.parent) == []


@pytest.mark.extended
def test_many_revisions_do_not_grow_the_file_without_bound(tmp_path):
    working = IndexDatabase(tmp_path / "working.duckdb")
    write(working, documents(0))
    live, sizes = size(working), []
    for revision in range(1, 16):
        write(working, documents(revision, 4000 if revision % 3 else 400))
        sizes.append(size(working))
    assert max(sizes) < 4 * live
    assert max(sizes[8:]) <= 1.5 * max(sizes[:8])


def test_an_open_reader_in_another_process_keeps_the_file_from_being_replaced(working):
    before = working.path.stat().st_ino
    reading, done = SPAWN.Event(), SPAWN.Event()
    process = SPAWN.Process(target=_hold, args=(working.path, reading, done))
    process.start()
    assert reading.wait(30)
    with pytest.raises(StoreError, match="Cannot open"):
        working.rewrite()
    assert working.path.stat().st_ino == before
    done.set()
    process.join()
    working.rewrite()
    assert working.path.stat().st_ino != before


def _hold(path, reading, done) -> None:
    with duckdb.connect(str(path), read_only=True):
        reading.set()
        done.wait(30)


def _rewrite_again_and_again(path) -> None:
    while True:
        IndexDatabase(path).rewrite()


@pytest.mark.long
def test_kills_while_rewriting_leave_a_whole_database(working):
    held = working.read("SELECT count(*), sum(md5_number_lower(d::VARCHAR)::HUGEINT)::VARCHAR FROM documents d").rows()
    for attempt in range(5):
        process = SPAWN.Process(target=_rewrite_again_and_again, args=(working.path,))
        process.start()
        time.sleep(1.2 + attempt * 0.237)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        found = working.read("SELECT count(*), sum(md5_number_lower(d::VARCHAR)::HUGEINT)::VARCHAR FROM documents d")
        assert found.rows() == held
    working.rewrite()
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


LAYOUT = """
SELECT max(row_group_id) + 1 AS groups,
       list(DISTINCT compression ORDER BY compression) FILTER (column_name = 'id' AND segment_type = 'VARCHAR') AS of_ids
FROM pragma_storage_info('documents')
"""


def test_row_groups_are_small_and_ids_uncompressed_also_after_rewriting(tmp_path: Path) -> None:
    database = IndexDatabase(tmp_path / "working.duckdb")
    write(database, documents(0, 20_000))
    assert database.read(LAYOUT).row(0) == (2, ["Uncompressed"])
    database.rewrite()
    assert database.read(LAYOUT).row(0) == (2, ["Uncompressed"])


VECTORS = """
SELECT DISTINCT compression FROM pragma_storage_info('embeddings') WHERE column_name = 'vector' AND segment_type = 'FLOAT'
"""


def test_vectors_are_stored_as_they_are(tmp_path: Path) -> None:
    database = IndexDatabase(tmp_path / "working.duckdb")
    with database.transaction() as connection:
        connection.execute("INSERT INTO embeddings (id, vector) SELECT i::VARCHAR, [i / 3] FROM range(5_000) t(i)")
    assert database.read(VECTORS).rows() == [("Uncompressed",)]
