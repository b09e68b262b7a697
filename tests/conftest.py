"""Fixtures shared by all tests: a project of its own per test, and the index it makes."""

import contextlib
import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from graphrag_assets.definitions import defs
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.indexing.index import Index

SHARED_DATA = Path(__file__).resolve().parents[1] / "../shared/data"
SAMPLE_INPUT = Path(__file__).resolve().parents[1] / "data" / "input"


@dataclass
class Project:
    """A data folder, a Dagster instance, and the runs of the jobs on them."""

    root: Path
    instance: dg.DagsterInstance

    @property
    def input(self) -> Path:
        return self.root / "input"

    @property
    def index(self) -> Index:
        return Index(self.root / "index" / "working.duckdb")

    @property
    def resource(self) -> GraphIndex:
        return GraphIndex(database=str(self.index.database))

    def write(self, path: str, content: str | bytes) -> None:
        file = self.input / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    def run(
        self, job: str, partition: str | None = None, succeed: bool = True, ops: dict | None = None, **more
    ) -> dg.ExecuteInProcessResult:
        result = (
            defs()
            .get_repository_def()
            .get_job(job)
            .execute_in_process(
                instance=self.instance,
                partition_key=partition,
                raise_on_error=succeed,
                run_config={**QUIET, **({"ops": ops} if ops else {})},
                **more,
            )
        )
        assert result.success == succeed
        return result

    def index_all(self, *batches: str) -> dg.ExecuteInProcessResult:
        """Scan, index the batches (default: all registered), refresh."""
        self.run("scan_input")
        for batch in batches or self.instance.get_dynamic_partitions("document_batches"):
            self.run("index_batches", batch)
        return self.run("refresh_graph")

    def sql(self, query: str) -> list[tuple]:
        """Rows of the published index."""
        with duckdb.connect(str(self.root / "index" / "graphrag.duckdb"), read_only=True) as connection:
            return connection.execute(query).fetchall()


@functools.cache
def _repository(root: Path) -> dg.RepositoryDefinition:
    """The code location as loaded with GRAPHRAG_DATA at `root`."""
    return defs().get_repository_def()


QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """An empty project; nothing of the caller's environment reaches it."""
    for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GRAPHRAG_DATA", str(tmp_path))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").mkdir()
    with dg.DagsterInstance.ephemeral() as instance:
        yield Project(tmp_path, instance)


@contextlib.contextmanager
def indexed(root: Path, folder: Path) -> Iterator[Project]:
    """The index of a folder of documents, made in `root` with the default settings."""
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as instance:
        for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
            patch.delenv(name)
        patch.setenv("GRAPHRAG_DATA", str(root))
        patch.setenv("GRAPHRAG_INPUT", str(folder))
        project = Project(root, instance)
        project.index_all()
        yield project


@pytest.fixture(scope="session")
def sample_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The sample corpus of data/input, indexed once for all tests that only read it."""
    with indexed(tmp_path_factory.mktemp("sample"), SAMPLE_INPUT) as project:
        yield project
