"""A working database that cannot be used is one sentence with its remedy."""

from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_assets.errors import StoreError
from tests.cli import run_command


def overwrite(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[12288:200_000] = bytes(len(content[12288:200_000]))
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no database": lambda path: path.write_bytes(b"hello" * 5000),
    "a short text": lambda path: path.write_text("hello"),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:20_000]),
    "overwritten": overwrite,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_working_database_is_named_with_the_remedy(project, damage):
    working = project.index.working
    assert working.read("SELECT 1 AS n").item() == 1
    DAMAGES[damage](working.path)
    with pytest.raises(StoreError, match=r"is damaged\. Restore it from a backup\. Or delete it and run"):
        working.read("FROM documents")
    said = run_command("status", status=1)
    assert said.startswith("Error: The working database")
    assert said.count("\n") == 1
    working.path.unlink()
    assert working.read("FROM documents").is_empty()


def test_a_folder_in_the_place_of_the_working_database_is_one_sentence(project):
    project.index.database.mkdir(parents=True)
    with pytest.raises(StoreError, match=r"working\.duckdb is a folder; .* Move it away and run again\."):
        project.index.working.read("FROM documents")


@pytest.mark.parametrize("name", ["index", "index/locks"])
def test_a_file_in_the_place_of_a_folder_is_one_sentence(project, name):
    (project.root / name).parent.mkdir(exist_ok=True)
    (project.root / name).write_text("in the way")
    project.write("one/a.txt", "Cyrus Field met William Thomson in Valentia.")
    with pytest.raises(StoreError, match=rf"{name} is a file; .* Move it away and run again\."):
        project.index_all()
