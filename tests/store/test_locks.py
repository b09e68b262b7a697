"""Lock files are in one folder, and do not become more with the batches."""

import multiprocessing

from filelock import FileLock, Timeout

from graphrag_assets.store.locks import BATCH_LOCKS, batch_lock, batch_locks, lock_file
from graphrag_assets.store.working import WorkingDatabase


def test_all_batches_share_a_fixed_number_of_locks():
    names = {batch_lock(f"batch {n}") for n in range(2_000)}
    assert names == set(batch_locks())
    assert len(names) == BATCH_LOCKS


def test_lock_files_are_in_their_folder_only(tmp_path):
    working = WorkingDatabase(tmp_path / "index" / "working.duckdb")
    with working.transaction() as connection, working.exclusive("knowledge_graph"):
        connection.execute("SELECT 1")
    with working.exclusive(batch_lock("a")):
        pass
    found = sorted(
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.lock") if "drafts" not in path.parts
    )
    assert found == [f"index/locks/{name}.lock" for name in sorted((batch_lock("a"), "knowledge_graph", "working"))]


def _try_to_hold(path: str, result) -> None:
    try:
        FileLock(path, timeout=0).acquire()
        result.put("held")
    except Timeout:
        result.put("refused")


def test_another_process_finds_the_lock_held(tmp_path):
    context = multiprocessing.get_context("spawn")
    result = context.Queue()
    working = WorkingDatabase(tmp_path / "working.duckdb")
    answers = []
    for _ in range(2):
        with working.exclusive("refresh") if not answers else working.exclusive("publication"):
            process = context.Process(target=_try_to_hold, args=(str(lock_file(tmp_path, "refresh")), result))
            process.start()
            answers.append(result.get(timeout=60))
            process.join(60)
    assert answers == ["refused", "held"]
