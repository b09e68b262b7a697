import contextlib
from pathlib import Path

import duckdb
import pytest
from filelock import FileLock

from graphrag_assets.errors import StoreError
from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.index_files import kept_publications, lock_file, publication_file
from graphrag_assets.store.publication_writer import create_tables, publish
from graphrag_assets.store.publications import comparison_sql, count_changes, resolve, roll_back
from tests.contention import waiting_for


def published_file(path: Path, communities: dict[str, str], **texts: str) -> Path:
    """A published file with communities: id to the letters that name their members; and with documents: id to text."""
    with duckdb.connect(str(path)) as connection:
        create_tables(connection, 1)
        for id_, text in texts.items():
            connection.execute(
                "INSERT INTO documents BY NAME SELECT $id AS id, $id AS source, $text AS text, md5($text) AS content_hash",
                {"id": id_, "text": text},
            )
        for number, (id_, members) in enumerate(communities.items()):
            connection.execute(
                "INSERT INTO communities BY NAME "
                "SELECT $id AS id, $n AS community, 0 AS level, $id AS title, $members AS entity_ids",
                {"id": id_, "n": number, "members": list(members)},
            )
            connection.execute(
                "INSERT INTO community_reports BY NAME SELECT 'r' || $id AS id, $n AS community, "
                "'On ' || $members AS title, $members AS fingerprint, $members AS full_content",
                {"id": id_, "n": number, "members": members},
            )
    return path


def changes(view: str, before: Path, after: Path) -> list[tuple]:
    with duckdb.connect() as connection:
        connection.execute(comparison_sql(before, after))
        return connection.execute(f"SELECT change, id FROM {view} ORDER BY ALL").fetchall()


def test_communities_are_born_die_and_change_and_so_are_reports(tmp_path):
    before = published_file(tmp_path / "b.duckdb", {"x": "abc", "y": "de", "z": "fg"})
    after = published_file(tmp_path / "a.duckdb", {"x": "abc", "y": "deh", "w": "i"})
    assert changes("changed_communities", before, after) == [("born", "w"), ("changed", "y"), ("died", "z")]
    assert changes("changed_reports", before, after) == [("removed", "rz"), ("rewritten", "ry"), ("written", "rw")]
    assert count_changes(before, after).filter(what="reports", change="kept")["n"].item() == 1


def test_documents_are_edited_moved_added_and_removed(tmp_path):
    before = published_file(tmp_path / "b.duckdb", {}, same="1", edited="2", old="3", twin="3", removed="4")
    after = published_file(tmp_path / "a.duckdb", {}, same="1", edited="5", new="3", twin="3", added="6")
    edits = [("added", "added"), ("edited", "edited"), ("moved", "new"), ("removed", "removed")]
    assert changes("changed_documents", before, after) == edits
    counts = count_changes(before, after).filter(what="documents").select("change", "n")
    assert dict(counts.iter_rows()) == {change: 1 for change, _ in edits} | {"kept": 2}


def test_invalid_publication_is_a_clear_error(tmp_path):
    file = published_file(tmp_path / "a.duckdb", {"x": "abc"})
    with pytest.raises(StoreError, match="does not exist"):
        count_changes(file, tmp_path / "none.duckdb")
    (tmp_path / "text.duckdb").write_text("not a database")
    with pytest.raises(StoreError, match="Cannot open the publication"):
        count_changes(file, tmp_path / "text.duckdb")


def test_publishing_and_rolling_back_wait_for_each_other(tmp_path):
    working = IndexDatabase(tmp_path / "working.duckdb")
    for _ in range(2):
        publish(working, tmp_path, always=True)
    with contextlib.ExitStack() as stack, FileLock(lock_file(tmp_path, "publishing")):
        rollback = stack.enter_context(waiting_for("publishing", lambda: roll_back(tmp_path, 1)))
        publication_file(tmp_path, 1).unlink()  # as a process that publishes does
    with pytest.raises(StoreError, match=r"There is no publication '1'\. Kept are 2"):
        rollback.result()
    with contextlib.ExitStack() as stack, FileLock(lock_file(tmp_path, "publishing")):
        published = stack.enter_context(waiting_for("publishing", lambda: publish(working, tmp_path, always=True)))
        assert kept_publications(tmp_path) == [2]
    assert published.result().number == 3
    publish(working, tmp_path, always=True)
    numbers = [resolve(tmp_path, name) for name in ("oldest", "previous", "current", "newest", "3")]
    assert numbers == [2, 3, 4, 4, 3]
