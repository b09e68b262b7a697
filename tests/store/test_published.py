"""Reading publications: which file is opened, and what a reader may do."""

from pathlib import Path

import duckdb
import pytest

from graphrag_assets.errors import StoreError
from graphrag_assets.store.published import PublishedIndex
from graphrag_assets.store.published_schema import PUBLISHED
from graphrag_assets.store.working import CONNECTION_CONFIG


def publish(folder: Path, number: int) -> Path:
    """An empty publication with that number, made the current one."""
    path = folder / "publications" / f"graphrag-{number}.duckdb"
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(path), config=CONNECTION_CONFIG) as connection:
        for table in PUBLISHED:
            connection.execute(table.ddl().replace("{dimensions}", "4"))
        connection.execute("INSERT INTO publication VALUES ($n, now()::TIMESTAMP, '', '')", {"n": number})
    (folder / "CURRENT").write_text(f"publications/{path.name}\n")
    return path


def test_the_file_that_current_names_is_opened(tmp_path: Path) -> None:
    publish(tmp_path, 1)
    second = publish(tmp_path, 2)
    reader = PublishedIndex(tmp_path).reader()
    assert (reader.path, reader.publication) == (second, 2)


def test_a_reader_stays_as_it_is_and_the_next_one_is_new(tmp_path: Path) -> None:
    publish(tmp_path, 1)
    index = PublishedIndex(tmp_path)
    first = index.reader()
    assert index.reader() is first
    publish(tmp_path, 2)
    second = index.reader()
    (tmp_path / "publications/graphrag-1.duckdb").unlink()
    assert [r.rows("SELECT number FROM publication").item() for r in (first, second)] == [1, 2]


def test_a_plain_file_or_link_is_opened_as_it_is(tmp_path: Path) -> None:
    path = publish(tmp_path, 3)
    link = tmp_path / "graphrag.duckdb"
    link.symlink_to(path)
    assert PublishedIndex(path).reader().publication == 3
    assert PublishedIndex(str(link)).reader().path == path


def test_without_current_the_stable_name_counts(tmp_path: Path) -> None:
    (tmp_path / "graphrag.duckdb").symlink_to(publish(tmp_path, 1))
    (tmp_path / "CURRENT").unlink()
    assert PublishedIndex(tmp_path).reader().publication == 1


def test_the_default_is_the_index_folder_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path / "index", 4)
    monkeypatch.setenv("GRAPHRAG_DATA", str(tmp_path))
    assert PublishedIndex().reader().publication == 4


def test_nothing_published_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="python -m graphrag_assets index"):
        PublishedIndex(tmp_path).reader()


def test_a_current_that_names_a_missing_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "CURRENT").write_text("publications/graphrag-9.duckdb")
    with pytest.raises(StoreError, match=r"graphrag-9\.duckdb is gone"):
        PublishedIndex(tmp_path).reader()


def test_a_file_that_is_no_publication_is_refused(tmp_path: Path) -> None:
    other, text = tmp_path / "other.duckdb", tmp_path / "notes.duckdb"
    duckdb.connect(str(other)).close()
    text.write_text("not a database, but long enough to be taken for a file of one " * 10)
    with pytest.raises(StoreError, match="not a published index"):
        PublishedIndex(other).reader()
    with pytest.raises(StoreError, match="Cannot open"):
        PublishedIndex(text).reader()


def test_readers_do_not_write(tmp_path: Path) -> None:
    reader = PublishedIndex(publish(tmp_path, 1)).reader()
    for query in (
        "INSERT INTO publication VALUES (2, now()::TIMESTAMP, '', '')",
        "CREATE TABLE other (number INT)",
        "DROP TABLE publication",
        "FROM nowhere",
    ):
        with pytest.raises(StoreError, match="Cannot run the query"):
            reader.rows(query)


@pytest.mark.parametrize("reader_first", [True, False])
@pytest.mark.parametrize("stable_name", [True, False])
def test_a_plain_connection_and_a_reader_live_in_one_process(
    tmp_path: Path, reader_first: bool, stable_name: bool
) -> None:
    path = publish(tmp_path, 1)
    link = tmp_path / "graphrag.duckdb"
    link.symlink_to(path)
    first = PublishedIndex(tmp_path).reader() if reader_first else None
    with duckdb.connect(str(link if stable_name else path), read_only=True) as connection:
        reader = first or PublishedIndex(tmp_path).reader()
        assert connection.execute("SELECT number FROM publication").fetchall() == [(1,)]
        assert reader.publication == 1
        # The reader has set nothing that would bind the user: other files can be read and written.
        connection.execute(f"COPY publication TO '{tmp_path / 'publication.csv'}'")
        assert connection.execute(f"SELECT number FROM '{tmp_path / 'publication.csv'}'").fetchall() == [(1,)]
    assert reader.rows("SELECT number FROM publication").item() == 1


def test_a_file_open_with_another_configuration_is_reported_with_the_cure(tmp_path: Path) -> None:
    path = publish(tmp_path, 1)
    for options in ({"read_only": False}, {"read_only": True, "config": {"threads": 1}}):
        with (
            duckdb.connect(str(path), **options),
            pytest.raises(StoreError, match=r"Close that connection, or .*read_only=True\) without config"),
        ):
            PublishedIndex(path).reader()


def test_an_index_without_embeddings_says_so(tmp_path: Path) -> None:
    reader = PublishedIndex(publish(tmp_path, 1)).reader()
    assert reader.embedding is None
    assert reader.posting_statistics == {}
