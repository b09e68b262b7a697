"""Reading publications: which file is opened, and what a reader may do."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import polars as pl
import pytest

from graphrag_assets.errors import StoreError
from graphrag_assets.store.connections import CONNECTION_CONFIG
from graphrag_assets.store.index_files import point_to
from graphrag_assets.store.publication_reader import CurrentPublication
from graphrag_assets.store.schema import PUBLISHED, SCHEMA_VERSION


def publish(folder: Path, number: int) -> Path:
    """An empty publication with that number, made the current one."""
    path = folder / "publications" / f"graphrag-{number}.duckdb"
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(path), config=CONNECTION_CONFIG) as connection:
        for table in PUBLISHED:
            connection.execute(table.ddl().replace("{dimensions}", "4"))
        row = "SELECT $n AS number, $version AS schema_version"
        connection.execute(f"INSERT INTO publication BY NAME {row}", {"n": number, "version": SCHEMA_VERSION})
    point_to(folder, number)
    return path


def test_a_reader_stays_as_it_is_and_the_next_one_is_new(tmp_path: Path) -> None:
    publish(tmp_path, 1)
    index = CurrentPublication(tmp_path)
    first = index.reader()
    assert index.reader() is first
    publish(tmp_path, 2)
    second = index.reader()
    (tmp_path / "publications/graphrag-1.duckdb").unlink()
    assert [r.rows("SELECT number FROM publication").item() for r in (first, second)] == [1, 2]


def test_the_data_folder_is_enough_without_the_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "index"
    publish(folder, 1)
    (folder / "graphrag.duckdb").unlink()
    monkeypatch.setenv("GRAPHRAG_DATA", str(tmp_path))
    for path in (None, tmp_path, folder):
        assert CurrentPublication(path).reader().publication == 1


def test_a_data_folder_without_an_index_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("GRAPHRAG_DATA", str(tmp_path))
    for path in (None, tmp_path, tmp_path / "index"):
        with pytest.raises(StoreError, match=f"Nothing is published in {tmp_path / 'index'} yet"):
            CurrentPublication(path).reader()


def test_a_file_that_is_no_publication_is_refused(tmp_path: Path) -> None:
    other, text = tmp_path / "other.duckdb", tmp_path / "notes.duckdb"
    duckdb.connect(str(other)).close()
    text.write_text("not a database, but long enough to be taken for a file of one " * 10)
    with pytest.raises(StoreError, match="not a publication"):
        CurrentPublication(other).reader()
    with pytest.raises(StoreError, match="Cannot open"):
        CurrentPublication(text).reader()


@pytest.mark.parametrize("reader_first", [True, False])
def test_a_plain_connection_and_a_reader_live_in_one_process(tmp_path: Path, reader_first: bool) -> None:
    path = publish(tmp_path, 1)
    first = CurrentPublication(tmp_path).reader() if reader_first else None
    with duckdb.connect(path, read_only=True, config={"threads": 1}) as connection:
        reader = first or CurrentPublication(tmp_path).reader()
        # The reader has set nothing that would bind the user: other files can be read and written.
        connection.execute(f"COPY publication TO '{tmp_path / 'publication.csv'}'")
        assert connection.execute(f"SELECT number FROM '{tmp_path / 'publication.csv'}'").fetchall() == [(1,)]
        assert reader.publication == 1


def test_file_open_for_writing_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    path = publish(tmp_path, 1)
    with duckdb.connect(str(path)), pytest.raises(StoreError, match=r"open for writing\. Close that .*read_only=True"):
        CurrentPublication(path).reader()


OUTSIDE = [
    "FROM read_text('/etc/passwd')",
    "FROM glob('/etc/*')",
    "COPY publication TO '{folder}/copy.csv'",
    "COPY publication FROM '/etc/passwd'",
    "ATTACH '{folder}/other.duckdb'",
    "INSTALL httpfs",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "FROM frame_of_the_program",
]


@pytest.mark.parametrize("query", OUTSIDE)
def test_nothing_outside_the_file_can_be_reached(tmp_path: Path, query: str) -> None:
    frame_of_the_program = pl.DataFrame({"secret": [1]})
    assert frame_of_the_program.height
    index = CurrentPublication(publish(tmp_path, 1))
    before = sorted(tmp_path.rglob("*"))
    for ask in (index.reader().rows, index.reader().query):
        with pytest.raises(StoreError, match="Cannot run the query"):
            ask(query.format(folder=tmp_path))
    assert sorted(tmp_path.rglob("*")) == before
    assert index.reader().publication == 1


@pytest.mark.parametrize(
    "query",
    [
        "USE memory; DETACH published",
        "CREATE TEMP TABLE publication AS SELECT 7 AS number",
        "SELECT 1; SELECT 2",
        "PREPARE it AS SELECT 1",
        "",
    ],
)
def test_a_query_is_one_select_and_changes_nothing_for_the_next(tmp_path: Path, query: str) -> None:
    reader = CurrentPublication(publish(tmp_path, 1)).reader()
    with pytest.raises(StoreError, match="must be one SELECT"):
        reader.query(query)
    assert reader.query("SELECT number FROM publication").item() == 1


def test_any_kind_of_reading_query_runs(tmp_path: Path) -> None:
    reader = CurrentPublication(publish(tmp_path, 1)).reader()
    for query in ("FROM publication", "DESCRIBE publication", "SHOW TABLES", "EXPLAIN FROM publication"):
        assert reader.query(query).height
    assert reader.query("PIVOT (SELECT 'a' AS name, 2 AS n) ON name USING sum(n)").to_dicts() == [{"a": 2}]
    assert reader.query("SELECT $n + 1 AS n", {"n": 4}).item() == 5


def test_many_threads_share_a_reader(tmp_path: Path) -> None:
    reader = CurrentPublication(publish(tmp_path, 1)).reader()
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda n: reader.numbers("SELECT number + $n FROM publication", {"n": n}), range(200))
        assert [numbers for (numbers,) in found] == list(range(1, 201))
