"""Whatever happens to an index, completing it gives the index of the present documents.

Random histories: edits, settings, commands and kills in any order, as a Hypothesis state machine.
"""

import functools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.publication import publication
from graphrag_assets.assets.scan import scan
from graphrag_assets.errors import GraphRAGError
from graphrag_assets.extras.purge import purge
from graphrag_assets.query import GraphRAG
from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.publications import resolve, roll_back
from tests.comparison import SENTENCES, assert_equal, index_all, index_at, no_settings

OPERATIONS: dict[str, Callable[[Index], object]] = {
    "index": lambda index: index_all(index),
    "index one batch": lambda index: index_one(index),
    "publish": lambda index: publication.update(index, "test"),
    "purge": lambda index: purge(index),
    "roll back": lambda index: roll_back(index.database.parent, resolve(index.database.parent, "oldest")),
    "compact": lambda index: index.working.rewrite(),
}
COMPLETE = ("purge", "compact")
"""What is refused unless the index is complete."""
REFUSABLE = ("publish", "roll back")
"""What may be refused: between a batch and its graph, without a second publication."""
DANGLING = "SELECT count(*) FROM relationships WHERE source_id NOT IN (SELECT id FROM entities)"

batches = st.sampled_from(("a", "b"))
files = st.sampled_from(("a/x.txt", "a/y.txt", "b/x.txt", "b/y.txt"))
moments = st.none() | st.integers(0, 9) | st.integers(0, 40)
texts = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=8).map(" ".join)


def index_one(index: Index) -> None:
    """Index one of the batches that differ, and nothing else."""
    for batch in scan(index).due[:1]:
        index_batch(index, batch, index.models(batch), "test")


class Killed(BaseException):
    """Stands for kill -9 within this process. No handler of errors catches it."""


@contextmanager
def killed_at(moment: int) -> Iterator[None]:
    """Within the block, raise `Killed` at the change number `moment` of files, and at all later ones.

    Each change has a moment before it and one after it.
    """
    passed = 0

    def pass_moment() -> None:
        nonlocal passed
        passed += 1
        if passed > moment:
            raise Killed

    @contextmanager
    def transaction(working: IndexDatabase) -> Iterator[duckdb.DuckDBPyConnection]:
        with committed(working) as connection:
            yield connection
            pass_moment()
        pass_moment()

    with pytest.MonkeyPatch.context() as patch:
        committed = IndexDatabase.transaction
        patch.setattr(IndexDatabase, "transaction", transaction)
        for name in ("replace", "unlink", "symlink_to"):
            patch.setattr(Path, name, _between(pass_moment, getattr(Path, name)))
        yield


def _between(pass_moment: Callable[[], None], change: Callable) -> Callable:
    @functools.wraps(change)
    def changed(*args: object, **more: object) -> object:
        pass_moment()
        result = change(*args, **more)
        pass_moment()
        return result

    return changed


class IndexHistory(RuleBasedStateMachine):
    """What people and crashes do to an index."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="history-"))
        self.patch = pytest.MonkeyPatch()
        no_settings(self.patch)
        self.index_folder = index_at(self.root, self.patch).database.parent
        self.input = self.root / "input"
        self.patch.setenv("GRAPHRAG_INPUT", str(self.input))

    @initialize(documents=st.dictionaries(files, texts, min_size=2))
    def begin(self, documents: dict[str, str]) -> None:
        self.input.mkdir()
        for file, text in documents.items():
            self.write(file, text)

    @rule(file=files, text=texts)
    def write(self, file: str, text: str) -> None:
        (self.input / file).parent.mkdir(exist_ok=True)
        (self.input / file).write_text(text)

    @rule(entry=files | batches)
    def delete(self, entry: str) -> None:
        if (self.input / entry).is_dir():
            shutil.rmtree(self.input / entry)
        else:
            (self.input / entry).unlink(missing_ok=True)

    @rule(names=st.tuples(files, files) | st.tuples(batches, batches))
    def rename(self, names: tuple[str, str]) -> None:
        before, after = (self.input / name for name in names)
        if before.exists() and not after.exists():
            after.parent.mkdir(exist_ok=True)
            before.rename(after)

    @rule(size=st.sampled_from(("1200", "50")))
    def change_a_setting(self, size: str) -> None:
        self.patch.setenv("GRAPHRAG_CHUNK_SIZE", size)

    @rule(operation=st.sampled_from(sorted(OPERATIONS)), killed=moments)
    def perform(self, operation: str, killed: int | None) -> None:
        """Perform an operation, or start and kill it. Whatever happens, readers keep a publication that holds together."""
        if operation in COMPLETE:
            assert self.run("index") == ""
        refusal = self.run(operation, killed)
        assert not refusal or operation in REFUSABLE, (operation, refusal)
        if (self.index_folder / "graphrag.duckdb").exists():
            with GraphRAG(self.index_folder) as rag:
                assert rag.sql(DANGLING).item() == 0

    def run(self, operation: str, killed: int | None = None) -> str:
        """Run an operation, killed at the moment `killed` if given. Returns why it was refused, or nothing."""
        try:
            with killed_at(killed) if killed is not None else nullcontext():
                OPERATIONS[operation](self.index)
        except Killed:
            pass
        except GraphRAGError as refused:
            return str(refused)
        return ""

    @property
    def index(self) -> Index:
        """The index with the present settings."""
        return Index(self.index_folder / "working.duckdb")

    def teardown(self) -> None:
        try:
            if self.input.exists():
                self.compare()
        finally:
            self.patch.undo()
            shutil.rmtree(self.root)

    def compare(self) -> None:
        """The index of a whole history equals a fresh one; readers have it after a rollback, too."""
        assert self.run("index") == ""
        made = self.index
        roll_back(self.index_folder, resolve(self.index_folder, "newest"))
        made.settings  # noqa: B018 - read now, before the other index has its own
        fresh = index_at(Path(tempfile.mkdtemp(dir=self.root)), self.patch)
        index_all(fresh)
        assert_equal(made, fresh)


LIMITS = settings(
    max_examples=1, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


def test_a_short_history_ends_in_the_index_of_the_present_documents():
    run_state_machine_as_test(IndexHistory, settings=settings(LIMITS, stateful_step_count=3))


@pytest.mark.long
def test_any_history_ends_in_the_index_of_the_present_documents():
    run_state_machine_as_test(IndexHistory, settings=settings(LIMITS, max_examples=2, stateful_step_count=8))
