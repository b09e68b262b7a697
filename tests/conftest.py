"""Fixtures shared by all tests: a project per test, and indexes that are built once and read or copied by many tests."""

import contextlib
import functools
import gc
import hashlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import duckdb
import pytest
from filelock import FileLock
from hypothesis import settings

from graphrag_assets.assets import run_in_process
from graphrag_assets.assets.corpus import register_batches
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.index_names import BATCH_ASSETS, IndexNames
from graphrag_assets.assets.scan import Scan, scan_input
from graphrag_assets.definitions import defs
from graphrag_assets.extras.interop.importer import import_index
from graphrag_assets.runtime import outgoing
from graphrag_assets.testing import refresh

TEST_DATA = Path(__file__).parent / "data"
SHARED_DATA = Path(__file__).resolve().parents[1] / "../shared/data"  # what may not be copied; optional
SAMPLE_INPUT = Path(__file__).resolve().parents[1] / "data" / "input"

# `make test-long` asks for the thorough profile. No deadlines: the first example of a test loads models and tokenizers.
settings.register_profile("fast", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=50, deadline=None)
settings.load_profile("fast")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow tests: at the end, one would keep the other processes waiting.

    Each process begins with an equal part of all tests, in order. So every part begins with its share of slow modules.
    """
    n = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    slow, quick = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        (slow if any(map(item.get_closest_marker, ("extended", "long"))) else quick).append(item)
    modules = list(dict.fromkeys(item.path for item in slow))
    items.clear()
    for place in range(n):
        own = set(modules[place::n])
        items += [item for item in slow if item.path in own]
        items += quick[place * len(quick) // n : (place + 1) * len(quick) // n]


def pytest_collection_finish() -> None:
    """Modules and collected tests stay: garbage collection need not look at them again."""
    gc.freeze()


@pytest.fixture(autouse=True)
def secrets_of_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets given in code are masked from then on: in this test, not in those after it."""
    monkeypatch.setattr(outgoing, "_secrets_of_code", set())


@dataclass
class IndexFolder:
    """A data folder, and the stages on it, without Dagster."""

    root: Path

    @property
    def input(self) -> Path:
        return self.root / "input"

    @property
    def index(self) -> Index:
        return Index(self.root / "index" / "working.duckdb")

    def write(self, path: str, content: str | bytes) -> None:
        file = self.input / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    def index_all(self, *batches: str) -> None:
        """Scan, index the batches (default: all that are known), refresh."""
        index, run_id = self.index, uuid.uuid4().hex
        known = self.known_batches(scan_input(index))
        for batch in batches or known:
            index_batch(index, batch, index.models(batch, run_id), run_id)
        self.refresh(run_id)

    def refresh(self, run_id: str = "refresh") -> None:
        """Everything after the batches."""
        refresh(self.index, run_id)

    def known_batches(self, found: Scan) -> Sequence[str]:
        """The batches that a scan has found, here or in the index."""
        return found.batches

    def sql(self, query: str) -> list[tuple]:
        """Rows of the publication."""
        with duckdb.connect(str(self.root / "index" / "graphrag.duckdb"), read_only=True) as connection:
            return connection.execute(query).fetchall()


@dataclass
class Project(IndexFolder):
    """A data folder, a Dagster instance, and the runs of the jobs on them.

    `index_all` takes less than half the time of `run_all`. It registers partitions, and records no run.
    """

    instance: dg.DagsterInstance

    def known_batches(self, found: Scan) -> Sequence[str]:
        """All registered batches; those of the scan are registered before."""
        self.instance.add_dynamic_partitions("document_batches", found.batches)
        return self.instance.get_dynamic_partitions("document_batches")

    def run(
        self, job: str, partition: str | None = None, succeed: bool = True, ops: dict | None = None, **more
    ) -> dg.ExecuteInProcessResult:
        result = (
            repository()
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

    def run_batch(self, batch: str, succeed: bool = True) -> dg.ExecuteInProcessResult:
        """Materialize the assets of a batch, as from their page."""
        job = repository().get_job("__ASSET_JOB").get_subset(asset_selection=frozenset(map(dg.AssetKey, BATCH_ASSETS)))
        result = job.execute_in_process(
            instance=self.instance, partition_key=batch, raise_on_error=succeed, run_config=QUIET
        )
        assert result.success == succeed
        return result

    def run_global(self, succeed: bool = True, ops: dict | None = None, **more) -> dg.ExecuteInProcessResult:
        """Everything after the batches, by the job update_index."""
        nothing = {} if more else {"batch_state": {"config": {"which": "NOTHING"}}}
        return self.run("update_index", succeed=succeed, ops={**nothing, **(ops or {})}, **more)

    def register(self) -> None:
        """Register the batches of the input folder as partitions."""
        register_batches(IndexNames(), self.instance, scan_input(self.index).batches)

    def check(self, *keys: dg.AssetCheckKey) -> dg.ExecuteInProcessResult:
        """Run checks, as *Execute* does in the UI."""
        job = repository().get_job("__ASSET_JOB")
        checks = job.get_subset(asset_selection=frozenset(), asset_check_selection=set(keys))
        return checks.execute_in_process(instance=self.instance, raise_on_error=False, run_config=QUIET)

    def run_all(self, *batches: str) -> dg.ExecuteInProcessResult:
        """Scan, index the batches (default: all registered), refresh: as Dagster runs."""
        self.register()
        for batch in batches or self.instance.get_dynamic_partitions("document_batches"):
            self.run_batch(batch)
        return self.run_global()


@functools.cache
def repository() -> dg.RepositoryDefinition:
    """The code location, loaded once, without settings. Runs get the present ones, see `Project.run`."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
            patch.delenv(name)
        return defs().get_repository_def()


QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@pytest.fixture(scope="session")
def dagster_instance() -> Iterator[dg.DagsterInstance]:
    """An instance in memory. Opening one, which reads all migrations, takes ten times as long as emptying it."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dagster_instance: dg.DagsterInstance) -> Iterator[Project]:
    """An empty project; nothing of the caller's environment reaches it."""
    default_settings(tmp_path, monkeypatch)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").mkdir()
    # Making a Dagster home takes longer than `index`. Tests of homes undo this.
    monkeypatch.setattr(run_in_process, "dagster_instance", lambda _: contextlib.nullcontext(dagster_instance))
    yield Project(tmp_path, dagster_instance)
    dagster_instance.wipe()


def default_settings(root: Path, patch: pytest.MonkeyPatch) -> None:
    """The default settings, with the data folder `root`."""
    for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
        patch.delenv(name)
    patch.setenv("GRAPHRAG_DATA", str(root))


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this test session share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


def build_once(folder: Path, build: Callable[[Path], object]) -> Path:
    """A folder built by the first process that needs it; the others wait."""
    with FileLock(f"{folder}.lock"):
        if not (folder / ".built").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            build(folder)
            (folder / ".built").touch()
    return folder


@contextlib.contextmanager
def indexed(root: Path, documents: Path) -> Iterator[IndexFolder]:
    """The index of a folder of documents, made in `root` with the default settings."""
    with pytest.MonkeyPatch.context() as patch:
        default_settings(root, patch)
        patch.setenv("GRAPHRAG_INPUT", str(documents))
        made = IndexFolder(root)
        made.index_all()
        yield made


def index_once(folder: Path, documents: Path) -> Path:
    """A data folder with the index of a folder of documents; built as by `build_once`."""

    def build(root: Path) -> None:
        with indexed(root, documents):
            pass

    return build_once(folder, build)


def import_once(folder: Path, source: Path) -> Path:
    """A data folder with the index that the import of `source` makes; built as by `build_once`."""

    def build(root: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            default_settings(root, patch)
            import_index(Index.from_environment(), source)
            IndexFolder(root).refresh()

    return build_once(folder, build)


@pytest.fixture(scope="session")
def sample_index(shared_folder: Path) -> Iterator[Project]:
    """The sample corpus of data/input, indexed by Dagster runs, once for all tests that only read it."""
    with pytest.MonkeyPatch.context() as patch:
        root = shared_folder / "sample"
        default_settings(root, patch)
        patch.setenv("GRAPHRAG_INPUT", str(SAMPLE_INPUT))

        def build(root: Path) -> None:
            with dg.DagsterInstance.local_temp(str(root)) as instance:
                Project(root, instance).run_all()

        with dg.DagsterInstance.local_temp(str(build_once(root, build))) as instance:
            yield Project(root, instance)


@pytest.fixture
def start_with(project: Project, shared_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Project]:
    """Gives the project documents, by path, and a copy of their index, built once with these settings."""

    def start(documents: dict[str, str | bytes], **settings: str) -> Project:
        variables = {f"GRAPHRAG_{name.upper()}": value for name, value in settings.items()}

        def build(root: Path) -> None:
            with pytest.MonkeyPatch.context() as patch:
                default_settings(root, patch)
                for name, value in variables.items():
                    patch.setenv(name, value)
                built = IndexFolder(root)
                for path, content in documents.items():
                    built.write(path, content)
                built.index_all()

        name = hashlib.sha256(repr((sorted(documents.items()), variables)).encode()).hexdigest()[:16]
        shutil.copytree(build_once(shared_folder / name, build), project.root, symlinks=True, dirs_exist_ok=True)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        batches = sorted({path.partition("/")[0] for path in documents})
        project.instance.add_dynamic_partitions("document_batches", batches)
        return project

    return start
