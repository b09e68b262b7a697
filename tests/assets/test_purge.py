"""Purge: nothing of a deleted document stays in the index folder and the ledger, and nothing that is needed goes."""

import asyncio
import sqlite3
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from graphrag_assets.cli import main
from graphrag_assets.errors import StoreError
from graphrag_assets.extras.explorer.page import write_page
from graphrag_assets.extras.purge import purge, purge_answers
from graphrag_assets.llm.ledger import Entry, Ledger
from graphrag_assets.query import GraphRAG
from graphrag_assets.store.index_files import kept_publications
from tests.assets.test_language_models import use
from tests.openai_server import running

WORD = "zyxquorv"
TEXT = "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable to Newfoundland.\n"
SECRET = (
    "Zyxquorv Blackwood met Cyrus Field in London in 1866. Zyxquorv Blackwood sailed with the Great Eastern. "
    "William Thomson wrote to Zyxquorv Blackwood.\n"
)


@pytest.fixture
def indexed(start_with):
    return start_with({"a/one.txt": TEXT})


@pytest.fixture
def server():
    with running() as server:
        yield server


def index_and_delete(project) -> None:
    """A document of its own batch, one in a batch that stays, and a sentence in a document that stays: all gone."""
    project.write("kept/cable.txt", TEXT)
    project.write("kept/zyxquorv.txt", SECRET)
    project.write("kept/edited.txt", "Robert Halpin sailed to Newfoundland. He knew Zyxquorv Grey and Cyrus Field.\n")
    project.write("zyxquorv-letters/letter.txt", SECRET + "Zyxquorv Blackwood lived in Valentia.\n")
    project.index_all()
    GraphRAG(project.root / "index").local("Who was Zyxquorv Blackwood?")
    write_page(project.root / "index")
    (project.input / "kept/zyxquorv.txt").unlink()
    (project.input / "zyxquorv-letters/letter.txt").unlink()
    (project.input / "zyxquorv-letters").rmdir()
    project.write("kept/edited.txt", "Robert Halpin sailed to Newfoundland. He knew Cyrus Field.\n")
    project.index_all()


def places(folder: Path) -> set[str]:
    """Where the word occurs: names and bytes of files, and values in databases, where it may be compressed."""
    found = set()
    for file in (file for file in folder.rglob("*") if file.is_file()):
        name = str(file.relative_to(folder))
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
        if file.suffix == ".sqlite":
            with sqlite3.connect(file) as connection:
                if any(WORD in line.lower() for line in connection.iterdump()):
                    found.add(f"{name}: rows")
    return found


def run_purge(*options: str) -> str:
    result = CliRunner(env={"COLUMNS": "180"}).invoke(main, ["publications", "purge", *options])
    assert result.exit_code == 0, result.output
    return result.output


def test_no_byte_of_a_deleted_document_is_left(project, server, monkeypatch):
    use(monkeypatch, server)
    index_and_delete(project)
    folder = project.root / "index"
    before = places(folder)
    assert {
        "publications/graphrag-1.duckdb: text_units",
        "working.duckdb: batch_state",
        "ledger.sqlite: rows",
    } <= before
    assert "explorer.html" in {file.name for file in folder.iterdir()}
    assert "would be removed" in run_purge("--dry-run")
    assert places(folder) == before
    spent = project.sql("SELECT sum(prompt_tokens) FROM llm_calls")
    assert "answers, names of batches and text units" in run_purge()
    assert places(folder) == set()
    assert kept_publications(folder) == [3]
    assert project.sql("SELECT sum(prompt_tokens) FROM llm_calls") == spent
    sent = len(server.requests)
    project.index_all()
    assert len(server.requests) == sent
    assert kept_publications(folder) == [3]
    (folder / "working.duckdb").unlink()
    project.index_all()
    asked = [request.task for request in server.chats][sent:]
    assert "ExtractGraphWithClaims" not in asked


@pytest.mark.extended
def test_after_a_purge_nothing_is_done_again_and_numbers_are_not_given_twice(indexed):
    indexed.write("a/secret.txt", SECRET)
    indexed.index_all()
    (indexed.input / "a/secret.txt").unlink()
    indexed.index_all()
    query = "SELECT max(human_readable_id) FROM numbers WHERE table_name = 'entities'"
    highest = indexed.index.working.read(query).item()
    purge(indexed.index)
    number = indexed.sql("SELECT number FROM publication")
    indexed.index_all()
    assert indexed.sql("SELECT number FROM publication") == number
    indexed.write("new/new.txt", "Samuel Canning sailed with Daniel Gooch to Valentia.\n")
    indexed.index_all()
    assert indexed.sql("SELECT min(human_readable_id) FROM entities WHERE title = 'Samuel Canning'")[0][0] > highest


def test_a_shared_ledger_is_purged_only_when_asked_for(indexed, monkeypatch, tmp_path):
    import asyncio

    from graphrag_assets.llm.ledger import Entry, Ledger

    url = f"sqlite:///{tmp_path}/shared.sqlite"
    ledger = Ledger(url)
    asyncio.run(ledger.put(Entry("k", "chat", "t", "openai", "m", "{}", response=WORD)))
    ledger.close()
    monkeypatch.setenv("GRAPHRAG_LEDGER_URL", url)
    assert "is not purged: it may serve other indexes too" in run_purge()
    assert "shared.sqlite" in places(tmp_path)
    assert "not purged: it may" not in run_purge("--shared-ledger")
    assert places(tmp_path) == set()


def test_purge_refuses_an_index_that_is_empty_or_differs_from_the_input(project):
    with pytest.raises(StoreError, match="Nothing is indexed yet"):
        purge(project.index)
    project.write("a/one.txt", TEXT)
    project.index_all()
    (project.input / "a/one.txt").unlink()
    with pytest.raises(StoreError, match=r"Batches differ from the input folder: a. Run `graphrag-assets index`"):
        purge(project.index)


def test_answers_on_a_unit_of_several_runs_go_and_those_of_one_stay(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    rows = {"old": ("u1", "r1"), "new": ("u1", "r2"), "once": ("u2", "r1"), "gone": ("u3", "r1")}
    for key, (unit, run_id) in rows.items():
        entry = Entry(key, "chat", "t", "openai", "m", "{}", response=key, batch="b", unit=unit, run_id=run_id)
        asyncio.run(ledger.put(entry))
    assert purge_answers(ledger, ["b"], ["u1", "u2"]) == 3
    assert asyncio.run(ledger.get_many(list(rows))).keys() == {"once"}
    ledger.close()
