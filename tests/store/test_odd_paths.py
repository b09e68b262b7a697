"""Data folders with names that DuckDB, SQLAlchemy or polars could take for something else than a path."""

import asyncio
from pathlib import Path

import pytest

from graphrag_assets.errors import StoreError
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.publication_reader import CurrentPublication
from graphrag_assets.store.publication_writer import publish

NAMES = ["ab:c", "s3:", "http:x", "a#b", "a%20b", "it's", 'a"b', "[x*]", "ünï 東", "a\nb", "~{x};$"]


@pytest.fixture
def relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path()


@pytest.mark.parametrize("name", NAMES)
def test_an_index_is_written_and_read_in_a_folder_of_any_name(relative: Path, name: str) -> None:
    folder = relative / name / "index"
    working = IndexDatabase(folder / "working.duckdb")
    assert publish(working, folder).path.is_file()
    for path in (relative / name, str(folder), folder / "graphrag.duckdb"):
        assert CurrentPublication(path).reader().publication == 1
    assert asyncio.run(Ledger(folder / "ledger.sqlite").get("no such key")) is None
    assert (folder / "ledger.sqlite").is_file()
    assert [path.name for path in relative.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a?b", "a?b=c&d", "a\\b"])
def test_a_name_that_duckdb_cannot_write_is_refused(relative: Path, name: str) -> None:
    with pytest.raises(StoreError, match=r"the path has the character .*Rename the folder, or set GRAPHRAG_DATA"):
        IndexDatabase(relative / name / "index" / "working.duckdb").read("SELECT 1")
    assert not (relative / name / "index" / "working.duckdb").exists()
