"""Random histories of an index: edits, settings, commands and kills in any order, as a Hypothesis state machine.

At the end of each history the index is completed and compared with a fresh index of the same folder.
`IndexHistory` calls the stages within this process.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.publication import publication
from graphrag_assets.assets.scan import scan
from graphrag_assets.errors import GraphRAGError
from graphrag_assets.extras.interop.importer import import_index, remove
from graphrag_assets.extras.purge import purge
from graphrag_assets.query import GraphRAG
from graphrag_assets.store.publications import resolve, roll_back
from tests.comparison import SENTENCES, assert_equal, index_all, index_at, no_settings
from tests.hostile.killing import Killed, killed_at, raise_killed
from tests.interop.small_index import write_small_index

IMPORTED = "imported-small"
OPERATIONS: dict[str, Callable[[Index, Path], object]] = {
    "index": lambda index, _: index_all(index),
    "index one batch": lambda index, _: index_one(index),
    "publish": lambda index, _: publication.update(index, "test"),
    "purge": lambda index, _: purge(index),
    "roll back": lambda index, _: roll_back(index.database.parent, resolve(index.database.parent, "oldest")),
    "compact": lambda index, _: index.working.rewrite(),
    "import": lambda index, small: import_index(index, small),
    "remove the import": lambda index, _: remove(index, IMPORTED),
}
COMPLETE = ("purge", "compact")
"""What is refused unless the index is complete."""
REFUSABLE = ("publish", "roll back", "import", "remove the import")
"""What may be refused: between a batch and its graph, without a second publication, with or without the import."""
SETTINGS = ({}, {"CHUNK_SIZE": "50"}, {"TOKENIZER": "cl100k_base"})
CHANGING = sorted({name for settings in SETTINGS for name in settings})

batches = st.sampled_from(("a", "b"))
files = st.sampled_from(("a/x.txt", "a/y.txt", "b/x.txt", "b/y.txt"))
entries = files | batches
moments = st.none() | st.integers(0, 9) | st.integers(0, 40)
texts = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=8).map(" ".join)


def index_one(index: Index) -> None:
    """Index one of the batches that differ, and nothing else."""
    for batch in scan(index).due[:1]:
        index_batch(index, batch, index.models(batch), "test")


class IndexHistory(RuleBasedStateMachine):
    """What people and crashes do to an index."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="history-"))
        self.small = write_small_index(self.root / "small")
        self.patch = pytest.MonkeyPatch()
        no_settings(self.patch)
        self.index_folder = index_at(self.root, self.patch).database.parent
        self.input = self.root / "input"
        self.patch.setenv("GRAPHRAG_INPUT", str(self.input))
        self.fresh_one: tuple[object, Index] | None = None

    @initialize(documents=st.dictionaries(files, texts, min_size=2))
    def begin(self, documents: dict[str, str]) -> None:
        self.input.mkdir()
        for file, text in documents.items():
            self.write(file, text)

    @rule(file=files, text=texts)
    def write(self, file: str, text: str) -> None:
        (self.input / file).parent.mkdir(exist_ok=True)
        (self.input / file).write_text(text)

    @rule(entry=entries)
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

    @rule(settings=st.sampled_from(SETTINGS))
    def change_settings(self, settings: dict[str, str]) -> None:
        for name in CHANGING:
            self.patch.delenv(f"GRAPHRAG_{name}", raising=False)
        for name, value in settings.items():
            self.patch.setenv(f"GRAPHRAG_{name}", value)

    @rule(operation=st.sampled_from(sorted(OPERATIONS)), killed=moments)
    def perform(self, operation: str, killed: int | None) -> None:
        """Perform an operation, or start and kill it. Whatever happens, readers keep a publication that holds together."""
        if operation in COMPLETE:
            self.complete()
        refusal = self.run(operation, killed)
        assert not refusal or operation in REFUSABLE, (operation, refusal)
        if (self.index_folder / "CURRENT").exists():
            with GraphRAG(self.index_folder) as rag:
                assert rag.sql(DANGLING).item() == 0

    def run(self, operation: str, killed: int | None = None) -> str:
        """Run an operation, killed at the moment `killed` if given. Returns why it was refused, or nothing."""
        try:
            if killed is None:
                OPERATIONS[operation](self.index, self.small)
            else:
                with killed_at(killed, raise_killed):
                    OPERATIONS[operation](self.index, self.small)
        except Killed:
            pass
        except GraphRAGError as refused:
            return str(refused)
        return ""

    @property
    def index(self) -> Index:
        """The index with the present settings."""
        return Index(self.index_folder / "working.duckdb")

    def complete(self) -> None:
        """Index all that is due."""
        assert self.run("index") == ""

    def teardown(self) -> None:
        try:
            if self.input.exists():
                self.finish()
        finally:
            self.patch.undo()
            shutil.rmtree(self.root)

    def finish(self) -> None:
        """The index of a whole history equals a fresh one."""
        self.complete()
        self.compare(self.index)

    def compare(self, made: Index) -> None:
        """The completed index equals a fresh one of the present documents; readers have it after a rollback, too."""
        roll_back(made.database.parent, resolve(made.database.parent, "newest"))
        made.settings  # noqa: B018 - read now, before the other index has its own
        assert_equal(made, self.fresh(made.working.read(IMPORTED_ROWS).item() > 0))
        index_at(self.root, self.patch)

    def fresh(self, imported: bool) -> Index:
        """An index of the present documents that has no history; made once for the same documents and settings."""
        texts = tuple((str(file), file.read_bytes()) for file in sorted(self.input.rglob("*")) if file.is_file())
        state = (texts, tuple(os.environ.get(f"GRAPHRAG_{name}") for name in CHANGING), imported)
        if self.fresh_one is None or self.fresh_one[0] != state:
            fresh = index_at(Path(tempfile.mkdtemp(dir=self.root)), self.patch)
            index_all(fresh)
            if imported:
                import_index(fresh, self.small)
                index_all(fresh)
            self.fresh_one = state, fresh
        return self.fresh_one[1]


IMPORTED_ROWS = f"SELECT count(*) FROM documents WHERE batch = '{IMPORTED}'"
DANGLING = "SELECT count(*) FROM relationships WHERE source_id NOT IN (SELECT id FROM entities)"
