"""A purge and what other threads do meanwhile."""

import contextlib

import pytest
from filelock import FileLock

from graphrag_assets.errors import StoreError
from graphrag_assets.extras.purge.index_rows import purge_rows
from graphrag_assets.extras.purge.purge import Removed, purge
from graphrag_assets.indexing.index_batch import index_batch
from graphrag_assets.indexing.scan import scan
from graphrag_assets.store.locks import batch_lock, lock_file
from graphrag_assets.store.publication_files import STABLE_NAME, current_number, kept_publications, point_to
from tests.contention import waiting_for

TEXT = "Cyrus Field met William Thomson in Valentia."


@pytest.fixture
def indexed(start_with, monkeypatch):
    monkeypatch.setattr("graphrag_assets.indexing.index.MAX_FILE_BYTES", 1_000)
    return start_with({"a/one.txt": TEXT})


def test_batch_indexed_during_purge_is_kept(indexed):
    indexed.write("late/good.txt", TEXT)
    indexed.write("late/large.txt", TEXT * 50)  # which becomes a row of index_errors
    (indexed.input / "late").rename(indexed.root / "late")
    own = indexed.index.with_options({"chunk_size": 100})

    def index_late() -> None:
        index_batch(own, "late", own.models("late", "run"), "run")

    with contextlib.ExitStack() as stack:

        def arrive(last_removal: float, batches: list[str]) -> Removed:
            """The batch appears after the purge has read the input folder."""
            (indexed.root / "late").rename(indexed.input / "late")
            stack.enter_context(waiting_for(batch_lock("late"), index_late))
            return Removed("", "", 0)

        purge(indexed.index, purge_history=arrive)
    read = indexed.index.working.read
    assert scan(indexed.index).unchanged == ["a", "late"]
    assert read("SELECT count(*) FROM index_runs WHERE batch = 'late'").item() == 1
    assert read("SELECT count(*) FROM index_errors WHERE batch = 'late'").item() == 1
    assert read("SELECT value FROM index_options WHERE batch = 'late'").item() == "100"


def test_rows_of_batch_missing_in_list_are_kept(indexed):
    removed = purge_rows(indexed.index.working, [])
    assert removed["batch_state"] == removed["index_runs"] == 0


@pytest.mark.parametrize("lock", ["refresh", "prompt_profile", "publication", batch_lock("a")])
def test_purge_is_refused_while_another_process_writes(indexed, lock):
    with (
        indexed.index.working.exclusive(lock),
        pytest.raises(StoreError, match=f"A run that holds {lock} is in progress"),
    ):
        purge(indexed.index)


def test_rollback_during_purge_leads_to_existing_publication(indexed):
    indexed.write("a/one.txt", TEXT.replace("Thomson", "Pender"))
    indexed.index_all()
    folder = indexed.index.database.parent
    assert kept_publications(folder) == [1, 2]
    with contextlib.ExitStack() as stack, FileLock(lock_file(folder, "publishing")):
        stack.enter_context(waiting_for("publishing", lambda: purge(indexed.index)))
        point_to(folder, 1)  # as a rollback does that has looked it up before
    assert kept_publications(folder) == [2]
    assert current_number(folder) == 2
    assert (folder / STABLE_NAME).is_file()
