"""Damage to what is stored: readers see the newest whole publication, and each error is one sentence with its remedy."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_assets.assets.publication import publication
from graphrag_assets.errors import StoreError
from graphrag_assets.query import GraphRAG
from graphrag_assets.store.index_files import current_number, kept_publications, point_to
from graphrag_assets.store.publications import list_publications, roll_back
from tests.cli import run_command
from tests.conftest import IndexFolder, Project, build_once, default_settings

TEXT = "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable to Newfoundland."


def link_to_nothing(index: Path) -> None:
    (index / "graphrag.duckdb").unlink()
    (index / "graphrag.duckdb").symlink_to(Path("publications", "graphrag-99.duckdb"))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no link": lambda index: (index / "graphrag.duckdb").unlink(),
    "link to nothing": link_to_nothing,
    "truncated file": lambda index: os.truncate(index / "publications" / "graphrag-2.duckdb", 5000),
    "no file": lambda index: (index / "publications" / "graphrag-2.duckdb").unlink(),
}


@pytest.fixture
def published(project, shared_folder) -> Project:
    """An index with two publications, made once and copied."""

    def build(root: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            default_settings(root, patch)
            built = IndexFolder(root)
            for name, text in (("a", TEXT), ("b", "Robert Halpin sailed with Daniel Gooch.")):
                built.write(f"one/{name}.txt", text)
                built.index_all()

    copied = build_once(shared_folder / "two-publications", build)
    shutil.copytree(copied, project.root, symlinks=True, dirs_exist_ok=True)
    return project


@pytest.mark.extended
@pytest.mark.parametrize("damage", DAMAGES)
def test_readers_go_on_and_the_next_index_mends_it(published, damage):
    index = published.root / "index"
    DAMAGES[damage](index)
    with GraphRAG(index) as rag:
        assert rag.sql("SELECT count(*) FROM documents").item() in (1, 2)
    publication.update(published.index, "again")  # the stage of `index` that is left where nothing has changed
    with GraphRAG(index) as rag:
        assert rag.sql("SELECT count(*) FROM documents").item() == 2
    assert current_number(index) == max(kept_publications(index))
    assert published.sql("SELECT count(*) FROM documents") == [(2,)]  # by the link


def test_publications_that_are_none_are_not_listed(published):
    index = published.root / "index"
    for name in ("graphrag-x.duckdb", "graphrag-3.duckdb.tmp", "notes.txt", "graphrag-98.duckdb"):
        (index / "publications" / name).write_text("not a publication")
    (index / "publications" / "graphrag-99.duckdb").mkdir()
    assert [kept.number for kept in list_publications(index)] == [1, 2]


def test_a_damaged_publication_by_hand_is_left_for_the_newest(published):
    index = published.root / "index"
    roll_back(index, 1)
    (index / "publications" / "graphrag-1.duckdb").write_bytes(b"damaged")
    publication.update(published.index, "again")
    assert current_number(index) == 2
    with pytest.raises(StoreError, match="graphrag-1"):
        roll_back(index, 1)
    assert current_number(index) == 2


def test_a_folder_in_the_place_of_the_link_is_one_sentence(tmp_path):
    (tmp_path / "graphrag.duckdb" / "something").mkdir(parents=True)
    with pytest.raises(StoreError, match=r"graphrag.duckdb is a folder; .* Move it away and run again\."):
        point_to(tmp_path, 1)
    (tmp_path / "graphrag.duckdb").rename(tmp_path / "away")
    point_to(tmp_path, 1)
    assert current_number(tmp_path) == 1
    assert (tmp_path / "graphrag.duckdb").readlink() == Path("publications/graphrag-1.duckdb")
    assert not list(tmp_path.rglob(".draft-*"))


def overwrite(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[12288:200_000] = bytes(len(content[12288:200_000]))
    path.write_bytes(content)


DATABASE_DAMAGES: dict[str, Callable[[Path], object]] = {
    "no database": lambda path: path.write_bytes(b"hello" * 5000),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:20_000]),
    "overwritten": overwrite,
}


@pytest.mark.parametrize("damage", DATABASE_DAMAGES)
def test_a_damaged_working_database_is_named_with_the_remedy(project, damage):
    working = project.index.working
    assert working.read("SELECT 1 AS n").item() == 1
    DATABASE_DAMAGES[damage](working.path)
    with pytest.raises(StoreError, match=r"is damaged\. Restore it from a backup\. Or delete it and run"):
        working.read("FROM documents")
    said = run_command("status", status=1)
    assert said.startswith("Error: The working database")
    assert said.count("\n") == 1
    working.path.unlink()
    assert working.read("FROM documents").is_empty()
