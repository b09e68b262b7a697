import contextlib
from pathlib import Path

import duckdb
import polars as pl
import pytest
from filelock import FileLock

from graphrag_assets.errors import StoreError
from graphrag_assets.store.index_files import STABLE_NAME, lock_file, publication_file
from graphrag_assets.store.publication_writer import create_tables
from graphrag_assets.store.publications import compare, roll_back
from tests.contention import waiting_for


def published(path: Path, communities: dict[str, str], level: int = 0) -> Path:
    """A published file with communities: id to the letters that name their members."""
    with duckdb.connect(str(path)) as connection:
        create_tables(connection, 1)
        for number, (id_, members) in enumerate(communities.items()):
            connection.execute(
                "INSERT INTO communities BY NAME "
                "SELECT $id AS id, $n AS community, $level AS level, $id AS title, $members AS entity_ids",
                {"id": id_, "n": number, "level": level, "members": list(members)},
            )
            connection.execute(
                "INSERT INTO community_reports BY NAME SELECT 'r' || $id AS id, $n AS community, "
                "'On ' || $members AS title, $members AS fingerprint, $members AS full_content",
                {"id": id_, "n": number, "members": members},
            )
    return path


def events(before: dict[str, str], after: dict[str, str], folder: Path, level: int = 0) -> list[tuple]:
    found = compare(published(folder / "b.duckdb", before), published(folder / "a.duckdb", after, level))
    return found["changed_communities"].select("change", "id").sort(pl.all()).rows()


def test_communities_are_born_die_and_change(tmp_path):
    found = events({"x": "abcd", "y": "ef", "z": "gh"}, {"x": "abcdef", "w": "i", "z": "gh"}, tmp_path)
    assert found == [("born", "w"), ("changed", "x"), ("died", "y")]


def test_a_report_is_kept_or_written_or_rewritten_or_removed(tmp_path):
    before = published(tmp_path / "b.duckdb", {"x": "abc", "y": "de", "z": "fg"})
    after = published(tmp_path / "a.duckdb", {"x": "abc", "y": "deh", "w": "i"})
    found = compare(before, after)
    assert found["changed_reports"].select("change", "id").sort("change").rows() == [
        ("removed", "rz"),
        ("rewritten", "ry"),
        ("written", "rw"),
    ]
    assert found["change_counts"].filter(what="reports", change="kept")["n"].item() == 1


def test_invalid_publication_is_a_clear_error(tmp_path):
    file = published(tmp_path / "a.duckdb", {"x": "abc"})
    with pytest.raises(StoreError, match="does not exist"):
        compare(file, tmp_path / "none.duckdb")
    (tmp_path / "text.duckdb").write_text("not a database")
    with pytest.raises(StoreError, match="Cannot open the publication"):
        compare(file, tmp_path / "text.duckdb")


def test_rollback_to_publication_deleted_meanwhile_is_refused(start_with):
    project = start_with({"a/one.txt": "Cyrus Field met William Thomson in Valentia."})
    project.write("a/one.txt", "Cyrus Field met John Pender in Valentia.")
    project.index_all()
    folder = project.index.database.parent
    with contextlib.ExitStack() as stack, FileLock(lock_file(folder, "publishing")):
        rollback = stack.enter_context(waiting_for("publishing", lambda: roll_back(folder, 1)))
        publication_file(folder, 1).unlink()  # as a process that publishes does
    assert (folder / STABLE_NAME).is_file()
    with pytest.raises(StoreError, match=r"There is no publication '1'\. Kept are 2"):
        rollback.result()
