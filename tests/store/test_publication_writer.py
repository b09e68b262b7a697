import multiprocessing
import shutil
from pathlib import Path

import duckdb
import pytest

from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.index_files import STABLE_NAME, replacing
from graphrag_assets.store.publication_reader import CurrentPublication
from graphrag_assets.store.publication_writer import publish
from graphrag_assets.store.schema import PUBLISHED

ROWS = """
INSERT INTO documents BY NAME SELECT 'd' AS id, 'd' AS title, 'Ada met Ben. Ben met Eve.' AS text, 'en' AS language;
INSERT INTO text_units BY NAME SELECT * FROM (
    VALUES ('u0', 'd', 0, 0, 12, 'Ada met Ben.'), ('u1', 'd', 1, 13, 25, 'Ben met Eve.')
) t(id, document_id, ordinal, start_char, end_char, text);
INSERT INTO entities BY NAME SELECT *, 'PERSON' AS type, 'Somebody.' AS description, lower(title) AS title_key FROM (
    VALUES ('ada', 0, 'Ada', ['u0'], 1), ('ben', 1, 'Ben', ['u0', 'u1'], 2), ('eve', 2, 'Eve', ['u1'], 1)
) t(id, human_readable_id, title, text_unit_ids, degree);
INSERT INTO relationships BY NAME SELECT *, 'met' AS description FROM (
    VALUES ('ab', 0, 'Ada', 'Ben', 1.5, ['u0'], 'ada', 'ben'), ('be', 1, 'Ben', 'Eve', 2.5, ['u1'], 'ben', 'eve')
) t(id, human_readable_id, source, target, weight, text_unit_ids, source_id, target_id);
INSERT INTO embeddings BY NAME
SELECT 'entity' AS kind, unnest(['ada', 'ben', 'eve']) AS id, 'm' AS model, [1.0, 0.0] AS vector;
INSERT INTO numbers BY NAME SELECT 'documents' AS table_name, 'd' AS id, 0 AS human_readable_id;
INSERT INTO numbers BY NAME SELECT 'text_units' AS table_name, unnest(['u0', 'u1']) AS id, unnest([0, 1]) AS human_readable_id;
"""


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
        connection.execute(ROWS)
    return database


def rows(folder: Path, query: str) -> list[tuple]:
    with duckdb.connect(str(folder / STABLE_NAME), read_only=True) as connection:
        return connection.execute(query).fetchall()


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


def test_only_the_last_publications_are_kept_and_the_link_leads_to_the_newest(working, tmp_path):
    for n in range(3):
        with working.transaction() as connection:
            connection.execute("UPDATE documents SET title = $n", {"n": str(n)})
        publish(working, tmp_path, keep=2)
    kept = sorted(path.name for path in (tmp_path / "publications").iterdir())
    assert kept == ["graphrag-2.duckdb", "graphrag-3.duckdb"]
    assert (tmp_path / STABLE_NAME).readlink() == Path("publications/graphrag-3.duckdb")
    assert rows(tmp_path, "SELECT title FROM documents") == [("2",)]
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
