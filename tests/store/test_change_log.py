"""The change log: readers derive what changed since their mark, or everything."""

from pathlib import Path

import polars as pl
import pytest

from graphrag_assets.store import schema
from graphrag_assets.store.change_log import changes_since_mark, last_revision, remove_marks, set_mark
from graphrag_assets.store.working import WorkingDatabase, replace_table


@pytest.fixture
def working(tmp_path: Path) -> WorkingDatabase:
    return WorkingDatabase(tmp_path / "working.duckdb")


def members(*ids: str, community: int = 0) -> pl.DataFrame:
    return pl.DataFrame({"community": [community] * len(ids), "level": [0] * len(ids), "entity_id": list(ids)})


def write(working: WorkingDatabase, frame: pl.DataFrame) -> None:
    with working.transaction() as connection:
        replace_table(connection, schema.COMMUNITY_MEMBERS, frame)


def mark(working: WorkingDatabase, reader: str = "reader", made_with: str = "") -> None:
    with working.transaction() as connection:
        set_mark(connection, reader, ["community_members"], last_revision(connection), made_with)


def changed(working: WorkingDatabase, reader: str = "reader", made_with: str = "") -> list[str] | None:
    with working.connect() as connection:
        found = changes_since_mark(connection, reader, ["community_members"], made_with)
    return None if found is None else sorted(found.ids("community_members"))


def test_a_reader_without_a_mark_derives_everything(working: WorkingDatabase) -> None:
    write(working, members("a"))
    assert changed(working) is None
    assert working.read("SELECT count(*) FROM changed_rows").item() == 0  # nobody reads them


def test_changed_new_and_deleted_rows_are_logged_and_equal_ones_are_not(working: WorkingDatabase) -> None:
    write(working, members("same", "moved", "deleted"))
    mark(working)
    write(working, pl.concat([members("same", "new"), members("moved", community=1)]))
    assert changed(working) == ["deleted", "moved", "new"]


def test_readers_have_marks_of_their_own_and_what_all_have_seen_is_deleted(working: WorkingDatabase) -> None:
    mark(working, "first")
    mark(working, "second")
    write(working, members("a"))
    mark(working, "first")
    write(working, members("a", "b"))
    assert (changed(working, "first"), changed(working, "second")) == (["b"], ["a", "b"])
    mark(working, "second")
    mark(working, "first")
    assert working.read("SELECT count(*) FROM changed_rows").item() == 0
    assert changed(working, "first") == []


def test_other_settings_or_removed_marks_derive_everything(working: WorkingDatabase) -> None:
    mark(working, made_with="old")
    assert changed(working, made_with="old") == []
    assert changed(working, made_with="new") is None
    with working.transaction() as connection:
        remove_marks(connection)
    assert changed(working, made_with="old") is None


def test_a_change_of_most_of_a_large_table_derives_everything(working: WorkingDatabase) -> None:
    ids = [f"{n:05}" for n in range(6_000)]
    write(working, members(*ids))
    mark(working)
    write(working, pl.concat([members(*ids[1_100:]), members(*ids[:1_100], community=1)]))
    assert changed(working) == ids[:1_100]
    write(working, members(*ids, community=2))
    assert changed(working) is None
    assert working.read("SELECT count(*) FROM changed_rows WHERE id IS NULL").item() == 1


def write_and_crash(working: WorkingDatabase) -> None:
    with working.transaction() as connection:
        replace_table(connection, schema.COMMUNITY_MEMBERS, members("a"))
        raise RuntimeError("crash")


def test_a_write_that_is_rolled_back_is_not_logged(working: WorkingDatabase) -> None:
    mark(working)
    with pytest.raises(RuntimeError, match="crash"):
        write_and_crash(working)
    assert changed(working) == []
