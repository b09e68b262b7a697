"""Purge: no byte of a deleted document stays below the data folder, and nothing that is needed goes."""

import asyncio
import base64
import contextlib
import gzip
import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import duckdb
import pytest
from click.testing import CliRunner
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteInstigatorOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    InstigatorType,
    SensorInstigatorData,
    TickData,
    TickStatus,
)

from graphrag_assets.cli import main
from graphrag_assets.extras.purge.dagster_records import purge_with_history
from graphrag_assets.extras.purge.proof import places_of, removed_words
from graphrag_assets.query import GraphRAG
from tests.conftest import Project, build_once, repository
from tests.contention import waiting_for
from tests.defs.test_language_models import use
from tests.openai_server import running

WORD = "zyxquorv"
KEPT = "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable to Newfoundland.\n"
SECRET = (
    "Zyxquorv Blackwood met Cyrus Field in London in 1866. Zyxquorv Blackwood sailed with the Great Eastern. "
    "William Thomson wrote to Zyxquorv Blackwood.\n"
)


@contextmanager
def _recorded(project: Project) -> Iterator[Project]:
    """The same with an instance that keeps its records below the data folder."""
    home = project.root / "dagster"
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(home))
        with dg.DagsterInstance.get() as instance:
            yield Project(project.root, instance)


@pytest.fixture
def recorded(project):
    """A project whose runs Dagster records below the data folder."""
    with _recorded(project) as project:
        yield project


@pytest.fixture
def deleted(project, shared_folder, monkeypatch):
    """The same after `index_and_delete`, which is done once and copied."""

    def build(root: Path) -> None:
        monkeypatch.setenv("GRAPHRAG_DATA", str(root))
        with _recorded(Project(root, project.instance)) as built:
            index_and_delete(built)
        monkeypatch.setenv("GRAPHRAG_DATA", str(project.root))

    copied = build_once(shared_folder / "index-and-delete", build)
    shutil.copytree(copied, project.root, symlinks=True, dirs_exist_ok=True)
    with _recorded(project) as project:
        yield project


def index_and_delete(project: Project) -> None:
    """A document of its own batch, one in a batch that stays, and a sentence in a document that stays: all gone."""
    project.write("kept/cable.txt", KEPT)
    project.write("kept/zyxquorv.txt", SECRET)
    project.write("kept/edited.txt", "Robert Halpin sailed to Newfoundland. He knew Zyxquorv Grey and Cyrus Field.\n")
    project.write("zyxquorv-letters/letter.txt", SECRET + "Zyxquorv Blackwood lived in Valentia.\n")
    project.run("update_index", ops={"batch_state": {"config": {"chunk_size": 400}}})
    (project.input / "kept/zyxquorv.txt").unlink()
    (project.input / "zyxquorv-letters/letter.txt").unlink()
    (project.input / "zyxquorv-letters").rmdir()
    project.write("kept/edited.txt", "Robert Halpin sailed to Newfoundland. He knew Cyrus Field.\n")
    project.run("update_index")


def places(root: Path) -> set[str]:
    """Where the word occurs: names and bytes of files, and values in databases, where it may be compressed."""
    found = set()
    for file in (file for file in root.rglob("*") if file.is_file()):
        name = str(file.relative_to(root))
        if WORD in name.lower() or WORD.encode() in file.read_bytes().lower():
            found.add(name)
        if file.suffix == ".duckdb":
            with duckdb.connect(str(file), read_only=True) as connection:
                tables = connection.execute(
                    "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE NOT internal"
                ).fetchall()
                for (table,) in tables:
                    query = f"SELECT count(*) FROM {table} t WHERE contains(lower(t::VARCHAR), ?)"
                    if connection.execute(query, [WORD]).fetchone() != (0,):
                        found.add(f"{name}: {table.removeprefix('main.')}")
        if file.suffix in (".sqlite", ".db"):
            with sqlite3.connect(file) as connection:
                if any(WORD in line.lower() for line in connection.iterdump()):
                    found.add(f"{name}: rows")
    return found


# SQLite's second copy of the events that have no run: Dagster has no call that deletes it.
WITHOUT_RUN = {"dagster/history/runs/.db"}


def purge(*options: str, status: int = 0) -> str:
    result = CliRunner(env={"COLUMNS": "180"}).invoke(main, ["publications", "purge", *options])
    assert result.exit_code == status, result.output
    return result.output


@pytest.mark.extended
def test_no_byte_of_a_deleted_document_is_left_and_the_index_answers(deleted):
    before = places(deleted.root)
    assert {"index/publications/graphrag-1.duckdb: text_units", "index/working.duckdb: batch_state"} <= before
    assert any(place.startswith("dagster") for place in before)
    shown = purge("--dry-run")
    assert "would be removed" in shown
    assert "graphrag-1.duckdb" in shown
    assert "Dry run: nothing was removed" in shown
    assert places(deleted.root) == before
    told = purge()
    assert "graphrag-1.duckdb, graphrag-2.duckdb" in told
    assert "batch_state" in told
    assert places(deleted.root) <= WITHOUT_RUN
    assert "Cyrus Field" in GraphRAG(deleted.root / "index").local("Who met William Thomson in Valentia?").answer


@pytest.mark.long
def test_a_purge_names_the_files_in_which_it_finds_words_of_removed_texts(deleted):
    words = removed_words(deleted.index)
    assert WORD in words
    assert "newfoundland" not in words  # a document that stays has it
    (deleted.root / "index" / "notes.txt").write_text(f"Remember {WORD.title()} Blackwood.")
    with duckdb.connect(str(deleted.root / "copy.duckdb")) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 'Zyxquorv' AS name FROM range(10000)")
    page = base64.b64encode(gzip.compress(f'{{"title": "{WORD}"}}'.encode()))
    (deleted.root / "page.html").write_bytes(b"<script>" + page + b"</script>")
    (deleted.root / "index" / "drafts" / "left.html").write_bytes(page)
    told = " ".join(purge().split())
    assert all(place in told for place in ("copy.duckdb: kept", "index/notes.txt", "page.html"))


@pytest.mark.long
def test_after_a_purge_nothing_is_done_again_and_numbers_are_not_given_twice(deleted):
    highest = deleted.index.working.read(
        "SELECT max(human_readable_id) FROM numbers WHERE table_name = 'entities'"
    ).item()
    purge()
    number = deleted.sql("SELECT number FROM publication")
    deleted.run("update_index")
    assert deleted.sql("SELECT number FROM publication") == number
    assert "Nothing to purge" in purge("--dry-run")
    assert deleted.instance.get_materialized_partitions(dg.AssetKey("entity_mentions")) == {"kept"}
    deleted.write("new/new.txt", "Samuel Canning sailed with Daniel Gooch to Valentia.\n")
    deleted.index_all()
    assert deleted.sql("SELECT min(human_readable_id) FROM entities WHERE title = 'Samuel Canning'")[0][0] > highest


def remember_tick(instance: dg.DagsterInstance) -> None:
    """A tick of the sensor that names the word, as the daemon leaves it."""
    location = RegisteredCodeLocationOrigin("graphrag_assets")
    repository = RemoteRepositoryOrigin(code_location_origin=location, repository_name="__repository__")
    origin = RemoteInstigatorOrigin(repository_origin=repository, instigator_name="document_batches_sensor")
    state = InstigatorState(origin, InstigatorType.SENSOR, InstigatorStatus.RUNNING, SensorInstigatorData())
    instance.add_instigator_state(state)
    tick = TickData(
        instigator_origin_id=origin.get_id(),
        instigator_name=origin.instigator_name,
        instigator_type=InstigatorType.SENSOR,
        status=TickStatus.SKIPPED,
        timestamp=time.time(),
        selector_id=state.selector_id,
        skip_reason=WORD,
    )
    instance.create_tick(tick)


def remember_backfill(instance: dg.DagsterInstance) -> None:
    """A backfill that names the word."""
    instance.add_backfill(
        PartitionBackfill(
            backfill_id="b1",
            status=BulkActionStatus.COMPLETED_SUCCESS,
            from_failure=False,
            tags={"note": WORD},
            backfill_timestamp=time.time() - 3600,
            asset_selection=[dg.AssetKey("documents")],
        )
    )


@pytest.mark.long
def test_ticks_that_name_batches_go_too_by_a_second_purge_and_backfills_are_counted(deleted, monkeypatch):
    remember_tick(deleted.instance)
    remember_backfill(deleted.instance)
    assert "dagster/schedules/schedules.db: rows" in places(deleted.root)
    monkeypatch.setenv("DAGSTER_HOME", "")
    configuration = (deleted.root / "dagster" / "dagster.yaml").rename(deleted.root / "dagster.yaml")
    assert "no Dagster storage was purged" in " ".join(purge().split())
    configuration.rename(deleted.root / "dagster" / "dagster.yaml")
    assert {place.partition("/")[0] for place in places(deleted.root)} == {"dagster"}
    monkeypatch.setenv("DAGSTER_HOME", str(deleted.root / "dagster"))
    assert "1 backfills stay: only `dagster run wipe` deletes them" in " ".join(purge().split())
    assert places(deleted.root) <= {"dagster/history/runs.db", "dagster/history/runs.db: rows", *WITHOUT_RUN}


@pytest.mark.long
def test_purge_empties_the_ledger_of_what_the_index_does_not_rest_on(recorded, monkeypatch):
    with running() as server:
        use(monkeypatch, server)
        index_and_delete(recorded)
        GraphRAG(recorded.root / "index").local("Who was Zyxquorv Blackwood?")
        ledger = recorded.root / "index/ledger.sqlite"
        assert "index/ledger.sqlite: rows" in places(recorded.root)
        spent = recorded.sql("SELECT sum(prompt_tokens) FROM llm_calls")
        told = purge()
        assert "answers that the index does not use" in told
        assert places(recorded.root) <= WITHOUT_RUN
        with sqlite3.connect(ledger) as connection:
            assert connection.execute("SELECT count(*) FROM llm_calls WHERE kind = 'purged'").fetchone() > (0,)
            assert connection.execute("SELECT count(*) FROM llm_calls WHERE kind = 'chat'").fetchone() > (0,)
        assert recorded.sql("SELECT sum(prompt_tokens) FROM llm_calls") >= spent  # what was paid stays in the ledger
        sent = len(server.requests)
        recorded.index_all()
        assert len(server.requests) == sent
        contents = recorded.sql("SELECT community, full_content FROM community_reports ORDER BY ALL")
        with recorded.index.working.transaction() as connection:  # everything that models wrote is lost
            connection.execute("UPDATE text_units SET extractor = NULL")
            for table in ("entity_mentions", "relationship_mentions", "covariates", "entities", "relationships"):
                connection.execute(f"DELETE FROM {table}")
            connection.execute("DELETE FROM community_reports; DELETE FROM embeddings")
        recorded.index_all()
        assert len(server.requests) == sent
        assert recorded.sql("SELECT community, full_content FROM community_reports ORDER BY ALL") == contents
        assert GraphRAG(recorded.root / "index").local("Who met William Thomson?").model == "openai/test-chat"


def test_run_and_partition_that_appear_during_purge_are_kept(recorded):
    recorded.write("a/one.txt", KEPT)
    recorded.index_all()
    index, instance, late = recorded.index, recorded.instance, []

    def begin() -> None:
        """While the purge waits, the sensor registers a batch and a person launches its run."""
        instance.add_dynamic_partitions("document_batches", ["late"])
        job = repository().get_job("index_batches")
        late.append(instance.create_run_for_job(job, tags={"dagster/partition": "late"}).run_id)

    with contextlib.ExitStack() as stack, index.working.lock():
        stack.enter_context(waiting_for("working", lambda: purge_with_history(index, instance)))
        begin()
    assert instance.get_dynamic_partitions("document_batches") == ["a", "late"]
    assert instance.get_run_by_id(late[0]) is not None


def test_purge_of_an_empty_project_is_refused(recorded):
    assert "Nothing is indexed yet" in purge(status=1)


@pytest.mark.long
def test_purge_refuses_what_it_cannot_judge(deleted, monkeypatch):
    (deleted.input / "kept/cable.txt").unlink()
    assert "Batches differ from the input folder: kept. Run `graphrag-assets index`" in purge(status=1)
    deleted.write("kept/cable.txt", KEPT)
    monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/test-chat")
    assert "made with other models" in purge(status=1)
    monkeypatch.delenv("GRAPHRAG_CHAT_MODEL")
    monkeypatch.setenv("GRAPHRAG_SUMMARY_MODEL", "openai/test-chat")
    assert "made with other models" in purge(status=1)
    monkeypatch.delenv("GRAPHRAG_SUMMARY_MODEL")
    with deleted.index.working.exclusive("knowledge_graph"):
        assert "A run that holds knowledge_graph is in progress" in purge(status=1)


@pytest.mark.long
def test_a_shared_ledger_is_purged_only_when_asked_for(deleted, monkeypatch, tmp_path):
    from graphrag_assets.llm.ledger import Entry, Ledger

    url = f"sqlite:///{tmp_path}/shared.sqlite"
    entry = Entry("k", "chat", "t", "openai", "m", "{}", response=WORD)
    ledger = Ledger(url)
    asyncio.run(ledger.put(entry))
    ledger.close()
    monkeypatch.setenv("GRAPHRAG_LEDGER_URL", url)
    assert "is not purged: it may serve other indexes too" in purge()
    assert "shared.sqlite" in places(tmp_path)
    assert "others that use it will pay again" in purge("--shared-ledger")
    assert places(tmp_path) <= WITHOUT_RUN


@pytest.mark.parametrize("content", ["von ÅNGSTRÖMSSON an", "Иванченко", json.dumps("von Ångströmsson")])
def test_words_of_any_alphabet_are_found_in_any_case_and_in_json(project, content):
    project.root.joinpath("leftover.log").write_text(content)
    assert places_of(["ångströmsson", "иванченко"], project.index) == ["leftover.log"]


@pytest.mark.parametrize("name", ["notes.db", "notes.sqlite", "notes.duckdb"])
def test_what_is_no_database_in_spite_of_its_name_is_searched_as_bytes(project, name):
    for content in ("Иванченко", "nothing"):
        project.root.joinpath(name).write_text(content)
        assert places_of(["иванченко"], project.index) == ([name] if content == "Иванченко" else [])
