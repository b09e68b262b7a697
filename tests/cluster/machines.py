"""A cluster on this machine: services, one committer, and workers in network namespaces of their own.

Where namespaces cannot be made (no root), workers are plain processes, and no network can be cut.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import fsspec
import psutil
import psycopg
import pytest

from tests.postgres import cluster as postgres

ROOT = Path(__file__).resolve().parents[2]
NETWORK = "10.77.0.0/16"
HOST = "10.77.0.1"
BUCKET = "staging"
DEADLINE = 420.0


def wait_for(what: str, look: Callable[[], object], seconds: float = DEADLINE) -> object:
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.5)
    return found


@dataclass
class Machine:
    """A machine of the cluster: its folder, its network namespace (None: that of this machine), its processes."""

    cluster: "Cluster"
    name: str
    namespace: str | None = None
    clock: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.cluster.root / self.name

    def environment(self) -> dict[str, str]:
        return {
            **self.cluster.environment,
            "GRAPHRAG_DATA": str(self.root),
            "DAGSTER_HOME": str(self.root / "dagster"),
            **({"FAKETIME": self.clock, "FAKETIME_DONT_FAKE_MONOTONIC": "1"} if self.clock else {}),
        }

    def start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a program that is installed beside this Python."""
        (self.root / "dagster").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "deploy/cluster/dagster.yaml", self.root / "dagster")
        within = ["ip", "netns", "exec", self.namespace] if self.namespace else []
        faked = [shutil.which("faketime") or "faketime", "-f", self.clock] if self.clock else []
        log = (self.root / f"{program}-{len(self.processes)}.log").open("wb")
        with log:
            process = subprocess.Popen(
                [*within, *faked, str(Path(sys.executable).parent / program), *arguments],
                cwd=self.root,
                env=self.environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def work(self, queue: str, at_once: int = 1) -> subprocess.Popen[bytes]:
        """A Celery worker of a queue."""
        return self.start(
            *("celery", "--app", "dagster_celery.app", "worker", "--loglevel", "info", "--disable-prefetch"),
            *("--queues", queue, "--concurrency", str(at_once), "--hostname", f"{queue}@{self.name}"),
        )

    def n_logged(self, words: str) -> int:
        """How many lines of this machine's logs have the words."""
        return sum(
            words in line for log in self.root.glob("*.log") for line in log.read_text(errors="replace").splitlines()
        )

    def kill(self) -> None:
        """Kill everything on this machine, as a power cut does."""
        for process in self.processes:
            if process.poll() is not None:
                continue
            with contextlib.suppress(psutil.NoSuchProcess):
                found = psutil.Process(process.pid)
                for one in [found, *found.children(recursive=True)]:
                    one.kill()
            process.wait()

    def connected(self, yes: bool) -> None:
        """Cut the network of this machine, or mend it."""
        assert self.namespace
        _ip("link", "set", f"{self.namespace}h", "up" if yes else "down")


@dataclass
class Cluster:
    """The services, and the machines by name."""

    root: Path
    environment: dict[str, str]
    namespaces: bool
    address: str
    machines: dict[str, Machine] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)

    @property
    def input(self) -> Path:
        return self.root / "input"

    def machine(self, name: str, apart: bool = True, clock: str = "") -> Machine:
        """A new machine; `apart`: in a network namespace of its own."""
        namespace = None
        if apart and self.namespaces:
            namespace = f"gr{os.getpid() % 10000}{len(self._names)}"
            self._names.append(namespace)
            number = len(self._names)
            _ip("netns", "add", namespace)
            _ip("link", "add", f"{namespace}h", "type", "veth", "peer", "name", "eth0", "netns", namespace)
            _ip("addr", "add", f"10.77.{number}.1/24", "dev", f"{namespace}h")
            _ip("link", "set", f"{namespace}h", "up")
            for command in (
                f"addr add 10.77.{number}.2/24 dev eth0",
                "link set eth0 up",
                "link set lo up",
                f"route add default via 10.77.{number}.1",
            ):
                _ip("-n", namespace, *command.split())
        machine = self.machines[name] = Machine(self, name, namespace, clock)
        return machine

    def start(self, workers: int = 2, clock: str = "") -> None:
        """The committer with its daemon, and the workers; the clock of the last worker may be another one."""
        committer = self.machine("committer", apart=False)
        committer.work("commit")
        self.daemon(committer)
        for number in range(workers):
            self.machine(f"worker{number}", clock=clock if number == workers - 1 else "").work("extract")

    def daemon(self, machine: Machine) -> subprocess.Popen[bytes]:
        """The daemon, which evaluates the sensors and hands runs to Celery."""
        return machine.start("dagster-daemon", "run", "--module-name", "graphrag_assets.definitions")

    @property
    def database(self) -> Path:
        return self.root / "committer" / "index" / "working.duckdb"

    def runs(self, job: str, *statuses: str) -> int:
        """How many runs of a job have one of these statuses."""
        with psycopg.connect(self.environment["DAGSTER_POSTGRES_URL"].replace("+psycopg2", "")) as connection:
            query = "SELECT count(*) FROM runs WHERE pipeline_name = %s AND status = ANY(%s)"
            try:
                return connection.execute(query, (job, list(statuses))).fetchone()[0]
            except psycopg.errors.UndefinedTable:
                return 0

    def staged(self) -> list[str]:
        """The manifests in the staging area."""
        files, root = fsspec.url_to_fs(self.environment["GRAPHRAG_STAGING"])
        files.invalidate_cache()
        return sorted(files.glob(f"{root}/*/*/manifest.json"))

    def published(self, batches: int) -> bool:
        """Whether there is a publication with so many batches, and nothing is left to do."""
        file = self.root / "committer" / "index" / "graphrag.duckdb"
        if not file.exists():
            return False
        with duckdb.connect(str(file.resolve()), read_only=True) as connection:
            (n,) = connection.execute("SELECT count(DISTINCT batch) FROM documents").fetchone()
        busy = ("NOT_STARTED", "QUEUED", "STARTING", "STARTED", "CANCELING")
        jobs = ("extract_batches", "index_batches", "refresh_graph")
        return n == batches and not any(self.runs(job, *busy) for job in jobs)

    def logged(self, word: str) -> list[str]:
        """The lines of all logs that have the word."""
        lines = (line for log in self.root.glob("*/*.log") for line in log.read_text(errors="replace").splitlines())
        return [line for line in lines if word in line]

    def stop_machines(self) -> None:
        for machine in self.machines.values():
            machine.kill()

    def stop(self) -> None:
        self.stop_machines()
        for name in self._names:
            subprocess.run(["ip", "netns", "del", name], check=False)


@contextlib.contextmanager
def running(root: Path, settings: dict[str, str]) -> Iterator[Cluster]:
    """PostgreSQL, Redis and an S3 server, for machines that are started later; all end with it."""
    for package in ("dagster_celery", "dagster_postgres", "moto.server", "s3fs"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install -e '.[dev]'")
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed: apt-get install redis-server")
    namespaces = _can_make_namespaces()
    address = HOST if namespaces else "127.0.0.1"
    with contextlib.ExitStack() as stack:
        if namespaces:
            _ip("addr", "add", f"{HOST}/32", "dev", "lo")
            stack.callback(_ip, "addr", "del", f"{HOST}/32", "dev", "lo")
        socket_folder = stack.enter_context(postgres(address, NETWORK if namespaces else ""))
        for name in ("dagster", "ledger"):
            with psycopg.connect(host=str(socket_folder), user="postgres", autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}")
        redis, s3 = _free_port(), _free_port()
        stack.enter_context(
            _service("redis-server", "--bind", address, "--port", str(redis), "--protected-mode", "no", "--save", "")
        )
        stack.enter_context(_service(sys.executable, "-m", "moto.server", "-H", address, "-p", str(s3)))
        wait_for("the S3 server", lambda: _answers(f"http://{address}:{s3}/"))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHRAG_")}
        environment |= {
            "DAGSTER_POSTGRES_URL": f"postgresql+psycopg2://postgres@{address}/dagster",
            "CELERY_BROKER_URL": f"redis://{address}:{redis}/0",
            "CELERY_RESULT_BACKEND": f"redis://{address}:{redis}/1",
            "GRAPHRAG_LEDGER_URL": f"postgresql+psycopg://postgres@{address}/ledger",
            "GRAPHRAG_STAGING": f"s3://{BUCKET}/index",
            "GRAPHRAG_INPUT": str(root / "input"),
            "GRAPHRAG_AUTOMATION": "on",
            "GRAPHRAG_EXTRACT_TAGS": '{"dagster-celery/queue": "extract"}',
            "AWS_ENDPOINT_URL": f"http://{address}:{s3}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "PYTHONWARNINGS": "ignore",
            **settings,
        }
        with pytest.MonkeyPatch.context() as patch:
            for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
                patch.setenv(name, environment[name])
            fsspec.get_filesystem_class("s3").clear_instance_cache()  # which knows an earlier server
            fsspec.filesystem("s3").mkdir(BUCKET)
            cluster = Cluster(root, environment, namespaces, address)
            cluster.input.mkdir(parents=True)
            stack.callback(cluster.stop)
            yield cluster


def _ip(*command: str) -> None:
    done = subprocess.run(["ip", *command], capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)


def _can_make_namespaces() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"grtry{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    if made:
        _ip("netns", "del", name)
    return made


@contextlib.contextmanager
def _service(*command: str) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
