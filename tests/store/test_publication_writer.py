import multiprocessing
import shutil
from pathlib import Path

import duckdb
import polars as pl
import pytest

from graphrag_assets.store import schema
from graphrag_assets.store.index_database import IndexDatabase, assign_numbers, replace_table
from graphrag_assets.store.index_files import STABLE_NAME, replacing
from graphrag_assets.store.publication_reader import CurrentPublication
from graphrag_assets.store.publication_writer import publish
from graphrag_assets.store.schema import PUBLISHED

UNITS = pl.DataFrame(
    {
        "id": ["u0", "u1"],
        "batch": "b",
        "document_id": "d",
        "ordinal": [0, 1],
        "start_char": [0, 13],
        "end_char": [12, 25],
        "text": ["Ada met Ben.", "Ben met Eve."],
        "headings": [["d"], ["d"]],
        "context": "d",
        "page": None,
        "sheet": None,
        "time": None,
        "n_tokens": [4, 4],
        "n_sentences": [1, 1],
        "extractor": "x",
    }
)
DOCUMENTS = pl.DataFrame(
    {
        "id": ["d"],
        "batch": "b",
        "source": "b/d.txt",
        "row_number": None,
        "title": "d",
        "text": "Ada met Ben. Ben met Eve.",
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
ENTITIES = pl.DataFrame(
    {
        "id": ["ada", "ben", "eve"],
        "human_readable_id": [0, 1, 2],
        "title": ["Ada", "Ben", "Eve"],
        "type": "PERSON",
        "description": "Somebody.",
        "text_unit_ids": [["u0"], ["u0", "u1"], ["u1"]],
        "frequency": [1, 2, 1],
        "degree": [1, 2, 1],
        "n_sentences": [1, 2, 1],
        "title_key": ["ada", "ben", "eve"],
        "types": [[{"type": "PERSON", "n": 1}]] * 3,
    }
)
RELATIONSHIPS = pl.DataFrame(
    {
        "id": ["ab", "be"],
        "human_readable_id": [0, 1],
        "source": ["Ada", "Ben"],
        "target": ["Ben", "Eve"],
        "description": "met",
        "weight": [1.5, 2.5],
        "text_unit_ids": [["u0"], ["u1"]],
        "source_id": ["ada", "ben"],
        "target_id": ["ben", "eve"],
        "type": "",
        "types": [[{"type": "MET", "n": 1}]] * 2,
        "relations": None,
    }
)
EMBEDDINGS = pl.DataFrame(
    {
        "kind": "entity",
        "id": ["ada", "ben", "eve"],
        "fingerprint": "f",
        "model": "m",
        "vector": [[1.0, 0.0]] * 3,
    }
)


@pytest.fixture
def working(tmp_path: Path) -> IndexDatabase:
    return write_database(tmp_path)


@pytest.fixture
def published(tmp_path: Path, shared_folder: Path) -> IndexDatabase:
    """The same database, published: a copy."""
    from tests.conftest import build_once  # not above: processes that import this module need no Dagster

    folder = build_once(shared_folder / "published", lambda folder: publish(write_database(folder), folder))
    shutil.copytree(folder, tmp_path, symlinks=True, dirs_exist_ok=True)
    return IndexDatabase(tmp_path / "working.duckdb")


def write_database(folder: Path) -> IndexDatabase:
    database = IndexDatabase(folder / "working.duckdb")
    with database.transaction() as connection:
        replace_table(connection, schema.DOCUMENTS, DOCUMENTS)
        replace_table(connection, schema.TEXT_UNITS, UNITS)
        replace_table(connection, schema.ENTITIES, ENTITIES)
        replace_table(connection, schema.RELATIONSHIPS, RELATIONSHIPS)
        replace_table(connection, schema.EMBEDDINGS, EMBEDDINGS)
        assign_numbers(connection, "documents", DOCUMENTS.select("id"))
        assign_numbers(connection, "text_units", UNITS.select("id"))
    return database


def rows(folder: Path, query: str) -> list[tuple]:
    with duckdb.connect(str(folder / STABLE_NAME), read_only=True) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.extended
def test_the_published_file_links_rows_by_number(published, tmp_path):
    assert rows(tmp_path, "FROM search.edges ORDER BY ALL") == [
        (0, 1, 0, 1.5, 3),
        (1, 0, 0, 1.5, 3),
        (1, 2, 1, 2.5, 3),
        (2, 1, 1, 2.5, 3),
    ]
    assert rows(tmp_path, "FROM search.entity_text_units") == [(0, 0, 1), (1, 0, 1), (1, 1, 1), (2, 1, 1)]
    assert rows(tmp_path, "FROM search.relationship_text_units") == [(0, 0), (1, 1)]
    assert rows(tmp_path, "SELECT entity_ids, relationship_ids, covariate_ids FROM text_units") == [
        (["ada", "ben"], ["ab"], []),
        (["ben", "eve"], ["be"], []),
    ]
    assert rows(tmp_path, "SELECT text_unit_ids FROM documents") == [(["u0", "u1"],)]
    assert rows(tmp_path, "SELECT typeof(vector) FROM embeddings LIMIT 1") == [("FLOAT[2]",)]


def test_every_published_table_and_column_has_its_comment(published, tmp_path):
    tables = "SELECT table_name FROM duckdb_tables() WHERE NOT internal"
    query = (
        "SELECT table_name, column_name, comment FROM duckdb_columns() "
        f"WHERE schema_name <> 'graphrag_v3' AND table_name IN ({tables})"
    )
    found = set(rows(tmp_path, query))
    declared = {(t.name, c.name, c.comment) for t in PUBLISHED for c in t.columns}
    assert found == declared


def test_rows_of_every_published_table_are_in_its_reading_order(index):
    for table in PUBLISHED:
        columns = "*" if table.order == "ALL" else table.order.replace(" DESC", "")
        stored = index.execute(f"SELECT {columns} FROM {table.sql_name}").fetchall()
        ordered = index.execute(f"SELECT {columns} FROM {table.sql_name} ORDER BY {table.order}").fetchall()
        assert stored == ordered, table.name


@pytest.mark.parametrize(
    ("change", "is_new"),
    [
        ("UPDATE entities SET description = 'Ada.' WHERE id = 'ada'", True),
        ("UPDATE numbers SET human_readable_id = 7 WHERE id = 'u0'", True),
        ("UPDATE embeddings SET vector = [1.0, 1e-7] WHERE id = 'eve'", True),
        ("INSERT INTO index_runs (run_id, stage) VALUES ('r', 's')", False),
    ],
)
def test_only_published_content_makes_a_new_publication(published, tmp_path, change, is_new):
    with published.transaction() as connection:
        connection.execute(change)
    assert publish(published, tmp_path).is_new == is_new
    assert not publish(published, tmp_path).is_new


@pytest.mark.long
def test_only_the_last_publications_are_kept_and_the_link_leads_to_the_newest(working, tmp_path):
    for n in range(5):
        with working.transaction() as connection:
            replace_table(connection, schema.DOCUMENTS, DOCUMENTS.with_columns(title=pl.lit(str(n))))
        publish(working, tmp_path, keep=2)
    kept = sorted(path.name for path in (tmp_path / "publications").iterdir())
    assert kept == ["graphrag-4.duckdb", "graphrag-5.duckdb"]
    assert (tmp_path / STABLE_NAME).readlink() == Path("publications/graphrag-5.duckdb")
    assert rows(tmp_path, "SELECT title FROM documents") == [("4",)]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_failed_publication_leaves_the_present_one(published, tmp_path):
    with published.transaction() as connection:
        connection.execute("UPDATE embeddings SET vector = [1.0] WHERE id = 'eve'")  # not of the others' length
    with pytest.raises(duckdb.Error):
        publish(published, tmp_path)
    assert rows(tmp_path, "SELECT count(*) FROM embeddings") == [(3,)]
    assert [path.name for path in (tmp_path / "publications").iterdir()] == ["graphrag-1.duckdb"]


def _publish_often(path: Path, folder: Path) -> None:
    for _ in range(10):
        publish(IndexDatabase(path), folder, keep=1, always=True)


@pytest.mark.extended
def test_readers_meet_no_deleted_file_when_one_publication_is_kept(published, tmp_path):
    writer = multiprocessing.get_context("spawn").Process(target=_publish_often, args=(published.path, tmp_path))
    writer.start()
    seen = set()
    while writer.exitcode is None:
        writer.join(0.02)  # a reader that never waits would take half of the processors
        reader = CurrentPublication(tmp_path).reader()  # as each question asks for it
        seen.add(reader.query("SELECT number FROM publication").item())
        assert reader.query("SELECT count(*) FROM entities").item() == 3
    assert writer.exitcode == 0
    assert len(seen) > 5


def test_drafts_of_a_killed_process_are_removed_by_the_next_and_those_of_living_ones_stay(working, tmp_path):
    (tmp_path / "publications").mkdir()
    (tmp_path / "publications" / ".draft-2999999-graphrag-1.duckdb").write_text("half a copy")
    (tmp_path / ".draft-abc").write_text("half a copy")
    with replacing(tmp_path / "working.duckdb") as living:
        living.write_text("a copy in the making")
        publish(working, tmp_path)
        assert list(tmp_path.rglob(".draft-*")) == [living]
    assert not list(tmp_path.rglob(".draft-*"))
