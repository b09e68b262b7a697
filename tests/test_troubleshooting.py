"""The messages in the guide are the ones raised."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from graphrag_assets.definitions import defs
from tests.test_docs import ROOT

MESSAGES = re.findall(r"^- `([^`]+)`", (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE)


def pattern(message: str) -> str:
    return ".*".join(re.escape(part) for part in message.split("…"))


def literal(node: ast.AST) -> str | None:
    """A text as in code, with … for inserted values."""
    if isinstance(node, ast.JoinedStr):
        return "".join(value.value if isinstance(value, ast.Constant) else "…" for value in node.values)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%[sd]", "…", node.value)
    return None


@cache
def literals(*files: Path) -> list[str]:
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in files)
    return [text for tree in trees for node in ast.walk(tree) if (text := literal(node))]


def ours() -> list[str]:
    return literals(*sorted((ROOT / "graphrag_assets").rglob("*.py")))


def in_module(name: str, message: str) -> bool:
    """Whether a module of Dagster has the message; its cheap stand-in where raising it needs servers."""
    return any(re.search(pattern(message), text) for text in literals(Path(find_spec(name).origin)))


# Messages that are put together from several texts, or are other programs': each is brought about.


def bad_setting(monkeypatch, tmp_path):
    from graphrag_assets.settings import Settings

    monkeypatch.setenv("GRAPHRAG_CHUNK_SIZE", "many")
    Settings.load()


def wrong_key(monkeypatch, tmp_path):
    from graphrag_assets.llm.model_options import ChatOptions
    from graphrag_assets.llm.provider import Failure
    from graphrag_assets.llm.rate_limits import Limits
    from graphrag_assets.llm.retry import raise_for

    options = ChatOptions("openai/gpt-4.1-mini")
    raise_for(Failure("fatal", 401, "Incorrect API key."), options, Limits(), "extract", 1)


def unknown_placeholder(monkeypatch, tmp_path):
    from graphrag_assets.llm.prompts import Prompts

    (tmp_path / "basic_search.jinja").write_text(
        "{% block user %}{{ context }} {{ question }} {{ mood }}{% endblock %}"
    )
    Prompts(tmp_path)


def run_under_way(monkeypatch, tmp_path):
    from graphrag_assets.extras.purge import dagster_records as dagster_cleanup
    from graphrag_assets.indexing.index import Index

    (tmp_path / "working.duckdb").touch()
    with dg.DagsterInstance.ephemeral() as instance:
        instance.create_run_for_job(defs().get_repository_def().get_job("refresh_graph"))
        dagster_cleanup.purge_with_history(Index(tmp_path / "working.duckdb"), instance)


def lock_held(monkeypatch, tmp_path):
    file = tmp_path / "held.duckdb"
    holder = f"import duckdb; c = duckdb.connect({str(file)!r}); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            duckdb.connect(str(file))
        finally:
            process.communicate(b"\n")


def unregistered_partition(monkeypatch, tmp_path):
    with dg.DagsterInstance.ephemeral() as instance:
        job = defs().get_repository_def().get_job("index_batches")
        job.execute_in_process(partition_key="nowhere", instance=instance)


def no_home(monkeypatch, tmp_path):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    dg.DagsterInstance.get()


def relative_home(monkeypatch, tmp_path):
    monkeypatch.setenv("DAGSTER_HOME", "here")
    dg.DagsterInstance.get()


def unset_variable(monkeypatch, tmp_path):
    monkeypatch.delenv("DAGSTER_POSTGRES_URL", raising=False)
    from dagster._config.source import _ensure_env_variable

    _ensure_env_variable("DAGSTER_POSTGRES_URL")


BROUGHT_ABOUT: dict[str, Callable] = {
    "Bad setting. …": bad_setting,
    "… cannot be called: HTTP 401: …": wrong_key,
    "…: unknown placeholder ….": unknown_placeholder,
    "Run … is in progress. Purge when it has finished": run_under_way,
    "Could not set lock on file …: Conflicting lock is held in …": lock_held,
    "Could not find a partition with key …": unregistered_partition,
    "The environment variable $DAGSTER_HOME is not set.": no_home,
    "$DAGSTER_HOME … must be an absolute path.": relative_home,
    "You have attempted to fetch the environment variable …": unset_variable,
}
IN_MODULES = {
    "Another … daemon is still sending heartbeats.": "dagster._daemon.daemon",
    "Found a dagster instance configuration value (…) in the current folder, but your DAGSTER_HOME environment "
    "variable is set to …": "dagster._cli.dev",
    "too many retries for DB connection": "dagster_postgres.utils",
}
IN_BINARY = {
    "nanobind: leaked …",
    "Trying to read a database file with storage version number …, but we can only read storage versions …",
}


def test_the_guide_has_messages_and_each_once():
    assert len(MESSAGES) > 50
    assert len(set(MESSAGES)) == len(MESSAGES)
    assert not ({*BROUGHT_ABOUT, *IN_MODULES, *IN_BINARY} - {*MESSAGES})


@pytest.mark.parametrize("message", [m for m in MESSAGES if m not in {*BROUGHT_ABOUT, *IN_MODULES, *IN_BINARY}])
def test_message_is_in_the_code(message):
    assert max(map(len, message.split("…"))) >= 10, "too little of it to be found by"
    assert [text for text in ours() if re.search(pattern(message), text, re.DOTALL)]


@pytest.mark.parametrize("message", BROUGHT_ABOUT)
def test_message_is_raised(message, monkeypatch, tmp_path):
    with pytest.raises(Exception, match=pattern(message)):
        BROUGHT_ABOUT[message](monkeypatch, tmp_path)


@pytest.mark.parametrize("message", IN_MODULES)
def test_the_message_is_dagsters(message):
    pytest.importorskip(IN_MODULES[message].partition(".")[0])
    assert in_module(IN_MODULES[message], message)


@pytest.mark.parametrize("message", sorted(IN_BINARY))
def test_the_message_is_in_duckdbs_library(message):
    (library,) = Path(duckdb.__file__).parents[1].glob("_duckdb*.so")
    content = library.read_bytes()
    assert [part for part in message.split("…") if part.encode() not in content] == []
