"""`deploy/` works: the commands of the units, with PostgreSQL, up to an answered question."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
import yaml
from dotenv import dotenv_values

from graphrag_assets.query import GraphRAG
from tests.postgres import as_postgres, cluster, program

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
INSTALLED = "/opt/graphrag_assets/.venv/bin"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def exec_start(unit: Path) -> list[str]:
    (line,) = [line for line in unit.read_text().splitlines() if line.startswith("ExecStart=")]
    return line.removeprefix("ExecStart=").split()


def environment_files(unit: Path) -> list[str]:
    lines = [line for line in unit.read_text().splitlines() if line.startswith("EnvironmentFile=")]
    return [line.rpartition("/")[2] for line in lines]


def test_only_what_calls_models_gets_the_secrets():
    read = {unit.stem.removeprefix("graphrag-"): environment_files(unit) for unit in UNITS}
    both = [".env", ".env.secrets"]
    assert read == {"code": both, "daemon": [".env"], "webserver": [".env"], "server": both}
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    given = {name: service.get("env_file", []) for name, service in services.items()}
    calling = {name: ["../.env", "../.env.secrets"] for name in ("code", "server")}
    assert given == calling | {name: [] for name in ("postgres", "webserver", "daemon", "open-webui")}
    services = yaml.safe_load((DEPLOY / "cluster" / "compose.yaml").read_text())["services"]
    calling = {name for name, service in services.items() if "secrets" in str(service.get("env_file"))}
    assert calling == {"worker", "writer", "daemon"}


def test_the_documented_command_removes_the_logs_of_old_runs_alone(tmp_path):
    page = (ROOT / "docs/dagster.md").read_text()
    (line,) = [line for line in page.splitlines() if line.startswith("sudo -u graphrag find ")]
    for run in ("old", "new"):
        (tmp_path / run / "compute_logs").mkdir(parents=True)
        (tmp_path / run / "compute_logs/a.err").touch()
    now = time.time()
    for run, days in {"old": 92, "new": 88}.items():
        os.utime(tmp_path / run, (now, now - days * 86_400))
    here = line.removeprefix("sudo -u graphrag ").replace("/var/lib/graphrag/dagster/storage", str(tmp_path))
    subprocess.run(["sh", "-c", here], check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


@contextmanager
def started(command: list[str], log: Path, **how) -> Iterator[subprocess.Popen]:
    with log.open("w") as file:
        process = subprocess.Popen(
            command,
            stdout=file,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            **how,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def wait_for(what: Callable[[], object], logs: Path) -> object:
    """The first true value; minutes are allowed, for the machine may be busy."""
    until = time.monotonic() + 240
    while time.monotonic() < until:
        try:
            if found := what():
                return found
        except OSError:
            pass
        time.sleep(0.5)
    tails = [f"{log.name}:\n{log.read_text()[-3000:]}" for log in sorted(logs.glob("*.log"))]
    raise TimeoutError("\n\n".join(tails))


@pytest.mark.extended
def test_documents_are_indexed(tmp_path):
    pytest.importorskip("dagster_postgres", reason="dagster-postgres is not installed: pip install -e '.[postgres]'")
    home, documents = tmp_path / "dagster", tmp_path / "input"
    for folder in (home, documents / "letters"):
        folder.mkdir(parents=True)
    shutil.copy(DEPLOY / "dagster.yaml", home)
    (documents / "letters/a.txt").write_text("Cyrus Field met William Thomson in Valentia in 1865.")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    run_folder = tempfile.mkdtemp(prefix="graphrag-")  # the path of a socket has at most 107 bytes
    workspace = (DEPLOY / "workspace.yaml").read_text()
    assert "/run/graphrag/" in workspace
    (tmp_path / "workspace.yaml").write_text(workspace.replace("/run/graphrag", run_folder))
    moved = {
        f"{INSTALLED}/": f"{Path(sys.executable).parent}/",
        "/run/graphrag/": f"{run_folder}/",
        "3000": str(port),
        "deploy/workspace.yaml": str(tmp_path / "workspace.yaml"),
    }

    def command(unit: Path) -> list[str]:
        line = " ".join(exec_start(unit))
        for old, new in moved.items():
            line = line.replace(old, new)
        return line.split()

    with ExitStack() as stack:
        socket_folder = stack.enter_context(cluster())
        for name in ("createuser graphrag", "createdb --owner graphrag dagster"):
            as_postgres(program(name.split()[0]), "-h", socket_folder, "-U", "postgres", *name.split()[1:])
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHRAG_")}
        environment |= {name: str(value) for name, value in dotenv_values(DEPLOY / ".env.example").items()}
        url = environment["DAGSTER_POSTGRES_URL"].replace("/var/run/postgresql", str(socket_folder))
        environment |= {
            "GRAPHRAG_DATA": str(tmp_path),
            "DAGSTER_HOME": str(home),
            "DAGSTER_POSTGRES_URL": url,
            "GRAPHRAG_AUTOMATION": "off",  # what it does is tested elsewhere
        }
        for unit in UNITS:
            how = {"env": environment, "cwd": tmp_path}
            stack.enter_context(started(command(unit), tmp_path / f"{unit.stem}.log", **how))
        stack.callback(shutil.rmtree, run_folder)
        launch = [f"{Path(sys.executable).parent}/dagster", "job", "launch", "--job", "update_index"]
        launch += ["--workspace", str(tmp_path / "workspace.yaml")]
        wait_for(lambda: subprocess.run(launch, capture_output=True, **how).returncode == 0, tmp_path)
        succeeded = "SELECT 1 FROM runs WHERE status = 'SUCCESS' AND pipeline_name = 'update_index'"
        with psycopg.connect(url.replace("+psycopg2", ""), autocommit=True) as connection:
            wait_for(lambda: connection.execute(succeeded).fetchone(), tmp_path)
        wait_for(lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info"), tmp_path)
        assert "Valentia" in GraphRAG(tmp_path / "index").local("Where did Cyrus Field meet William Thomson?").answer
        subprocess.run(
            [f"{moved[f'{INSTALLED}/']}dagster", "instance", "migrate"], check=True, capture_output=True, **how
        )
    assert "T0secret" not in "".join(log.read_text() for log in tmp_path.glob("*.log"))
