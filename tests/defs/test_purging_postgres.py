"""Purge with Dagster's own storage in PostgreSQL: no row of it tells of a document that is gone."""

import time
from pathlib import Path

import dagster as dg
import psycopg
import pytest

from tests.conftest import Project
from tests.defs.test_purging import WORD, index_and_delete, places, purge, remember_tick
from tests.postgres import cluster

pytestmark = pytest.mark.extended


@pytest.fixture
def recorded(project, monkeypatch):
    """A project whose runs Dagster records in PostgreSQL, their logs below the data folder."""
    pytest.importorskip("dagster_postgres", reason="dagster-postgres is not installed: pip install -e '.[postgres]'")
    home = project.root / "dagster"
    home.mkdir()
    with cluster() as socket:
        url = f"postgresql+psycopg2://postgres@/postgres?host={socket}"
        (home / "dagster.yaml").write_text(
            f"telemetry: {{enabled: false}}\nstorage: {{postgres: {{postgres_url: '{url}'}}}}\n"
        )
        monkeypatch.setenv("DAGSTER_HOME", str(home))
        with dg.DagsterInstance.get() as instance:
            yield Project(project.root, instance), socket


def told(socket) -> dict[str, int]:
    """Rows of each table in which the word occurs."""
    found = {}
    with psycopg.connect(f"postgresql://postgres@/postgres?host={socket}") as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (table,) in tables:
            query = f'SELECT count(*) FROM "{table}" t WHERE t::text ILIKE %s'
            if n := connection.execute(query, [f"%{WORD}%"]).fetchone()[0]:
                found[table] = n
    return found


def files_with_the_word(socket: Path) -> list[Path]:
    """Files of tables, live or deleted rows alike. PostgreSQL's log is not among them: it is overwritten in time."""
    return [
        file
        for file in (socket / "data/base").rglob("*")
        if file.is_file() and WORD.encode() in file.read_bytes().lower()
    ]


def test_no_row_of_a_deleted_document_is_left_and_nothing_is_done_again(recorded):
    project, socket = recorded
    index_and_delete(project)
    project.run("index_batches", f"{WORD}-letters")  # it is gone: a run of nothing, but with its name
    remember_tick(project.instance)
    before = told(socket)
    assert {"asset_keys", "event_logs", "runs", "run_tags", "dynamic_partitions", "job_ticks"} <= set(before)
    assert "would be removed" in purge("--dry-run")
    assert told(socket) == before
    assert "runs" in purge()
    assert told(socket) == {}
    assert places(project.root) == set()
    with psycopg.connect(f"postgresql://postgres@/postgres?host={socket}", autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        assert files_with_the_word(socket)  # bytes of deleted rows
        deadline = time.monotonic() + 60
        while files_with_the_word(socket) and time.monotonic() < deadline:  # an autovacuum may still see the rows
            connection.execute("VACUUM FULL")
            connection.execute("CHECKPOINT")
        assert files_with_the_word(socket) == []
    assert "Nothing to purge" in purge("--dry-run")
    number = project.sql("SELECT number FROM publication")
    project.run("update_index")
    assert project.sql("SELECT number FROM publication") == number
    assert project.instance.get_materialized_partitions(dg.AssetKey("entity_mentions")) == {"kept"}
