"""`index` with nothing due: found out without a run of Dagster; and everything that makes something due again."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from graphrag_assets.assets.knowledge_graph import knowledge_graph
from graphrag_assets.assets.publication import publication, up_to_date
from graphrag_assets.assets.scan import scan_input
from graphrag_assets.assets.stage import CODE_VERSIONS
from graphrag_assets.contracts.usage import Usage, UsageMeter
from graphrag_assets.store.decisions import Decision, changing_decisions
from graphrag_assets.store.index_files import current_number, point_to, publication_file
from tests.cli import run_command

TEXT = "Captain James Anderson commanded the Great Eastern in 1865. Cyrus Field sailed in the Great Eastern too.\n"
LOADED = """
import sys
from graphrag_assets.cli import main
try:
    main(["index"])
finally:
    print("loaded", sorted({"dagster", "litellm", "nltk"} & set(sys.modules)))
"""


@pytest.fixture
def done(project, start_with):
    project = start_with({"one/a.txt": TEXT, "two/b.txt": TEXT})
    assert is_up_to_date(project)
    return project


def is_up_to_date(project) -> bool:
    return up_to_date(project.index, scan_input(project.index)) is not None


def runs(project) -> int:
    return project.index.working.read("SELECT count(DISTINCT run_id) FROM index_runs").item()


@pytest.mark.extended
def test_nothing_due_imports_no_dagster_and_records_no_run(done):
    before = runs(done)
    printed = subprocess.run(
        [sys.executable, "-c", LOADED], env=os.environ | {"COLUMNS": "200"}, capture_output=True, text=True, check=True
    ).stdout
    assert "0 indexed, 2 unchanged" in printed
    assert "Up to date: publication 1" in printed
    assert "loaded []" in printed
    assert runs(done) == before


def edit_decision(project, _):
    with changing_decisions(project.index.settings.index_folder) as decisions:
        made = Decision("accept", "great eastern", "cyrus field")
        decisions[made.key] = made


def other_cluster_size(_, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_MAX_CLUSTER_SIZE", "3")


def damaged_publication(project, _):
    publication_file(project.index.settings.index_folder, 1).write_bytes(b"no database")


def another_revision(project, _):
    with project.index.working.transaction() as connection:
        connection.execute("UPDATE index_state SET revision = revision + 1")


def another_version_of_a_stage(_, monkeypatch):
    monkeypatch.setitem(CODE_VERSIONS, "community_reports", "another")


CHANGES = [edit_decision, other_cluster_size, damaged_publication, another_revision, another_version_of_a_stage]


@pytest.mark.parametrize("change", CHANGES)
def test_what_makes_a_run_due(done, monkeypatch, change):
    change(done, monkeypatch)
    assert not is_up_to_date(done)


def test_a_run_in_which_an_answer_failed_is_followed_by_another(done):
    meter, index = UsageMeter(), done.index
    meter.add("summarize", Usage(failures=1))
    for run_id, meters in (("failed", (meter,)), ("again", ())):
        knowledge_graph.update(index, run_id, replace(index.models(), meters=meters))
        publication.update(index, run_id)
        assert is_up_to_date(done) == (run_id == "again")


def test_a_run_that_dies_after_a_stage_has_written_is_followed_by_another(done, monkeypatch):
    def die(*_):
        raise SystemExit

    monkeypatch.setattr("graphrag_assets.assets.stage.record_stage", die)
    with pytest.raises(SystemExit):
        knowledge_graph.update(done.index, "died")
    assert not is_up_to_date(done)


@pytest.mark.parametrize("target", ["publications/graphrag-99.duckdb", "/nowhere/publications/graphrag-1.duckdb"])
def test_a_link_that_leads_elsewhere_is_mended(done, target):
    link = done.index.settings.index_folder / "graphrag.duckdb"
    link.unlink()
    link.symlink_to(target)
    assert is_up_to_date(done)
    assert link.readlink() == publication_file(Path(), 1)


@pytest.mark.extended
def test_the_link_is_mended_and_a_rollback_stays(done):
    done.write("two/b.txt", TEXT + "Robert Halpin was his chief officer.\n")
    run_command("index")
    folder = done.index.settings.index_folder
    (folder / "graphrag.duckdb").unlink()
    assert "Up to date: publication 2" in run_command("index")
    with duckdb.connect(str(folder / "graphrag.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT number FROM publication").fetchall() == [(2,)]
    assert current_number(folder) == 2
    point_to(folder, 1)
    assert "readers have publication 1 since a rollback" in run_command("index")
    assert current_number(folder) == 1
