"""A batch that is extracted on one machine and committed on another is as one that was indexed by one process."""

import shutil
import uuid

import pytest

from graphrag_assets.errors import InputError, SettingsError, StagingError
from graphrag_assets.extras.purge.purge import purge
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.index_batch import index_batch
from graphrag_assets.indexing.scan import scan, scan_input
from graphrag_assets.indexing.staged_batches import commit_staged, stage_batch, staged_batches, staging_of
from graphrag_assets.settings import Settings
from graphrag_assets.store.staging import Manifest
from tests.cluster.equality import differences, index_in_one_process
from tests.comparison import facts, refresh

TEXT = "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable to Newfoundland."
DOCUMENTS = {"a/one.txt": TEXT, "a/two.md": f"# Cable\n\n{TEXT}", "a/bad.csv": "text\n", "b.txt": TEXT[:44]}


@pytest.fixture
def folder(project, monkeypatch):
    """A folder of two batches, and a staging area; the project's own index folder is the committer's."""
    for path, text in DOCUMENTS.items():
        project.write(path, text)
    monkeypatch.setenv("GRAPHRAG_STAGING", f"memory://{uuid.uuid4().hex}")
    monkeypatch.setenv("GRAPHRAG_INPUT", str(project.input))
    return project


@pytest.fixture
def worker(folder, tmp_path) -> Index:
    """A machine without a working database."""
    return Index(tmp_path / "worker" / "index" / "working.duckdb")


def stage(worker: Index, batch: str, **options: object) -> Manifest:
    own = worker.with_options(options)
    return stage_batch(own, batch, own.models(batch, "staged"), "staged")


@pytest.mark.extended
def test_all_tables_and_publications_are_those_of_one_process(folder, worker, tmp_path):
    for batch in ("b.txt", "a"):
        stage(worker, batch)
    assert staged_batches(folder.index) == {"a", "b.txt"}
    for batch in ("b.txt", "a"):
        indexed = commit_staged(folder.index, batch, "committed")
        assert indexed
        assert indexed.changes["documents"].inserted == indexed.frames["documents"].height
    assert staged_batches(folder.index) == frozenset()
    assert scan(folder.index).changed == []
    refresh(folder.index)
    alone = index_in_one_process(folder.index.database, folder.input, tmp_path / "alone", {})
    assert differences(folder.index.database.parent, alone) == {}
    assert folder.index.working.read("SELECT count(*) FROM index_errors").item() > 0  # they come with their batch
    with folder.index.working.transaction() as connection:
        connection.execute("UPDATE community_reports SET summary = 'another' WHERE community = 0")
    assert differences(folder.index.database.parent, alone) == {"working.duckdb: community_reports": 2}


def test_the_worker_opens_no_working_database(folder, worker):
    stage(worker, "a")
    assert not worker.database.exists()


def test_what_is_staged_twice_is_committed_once(folder, worker):
    stage(worker, "a")
    stage(worker, "a")
    assert commit_staged(folder.index, "a", "run")
    assert commit_staged(folder.index, "a", "run") is None
    stage(worker, "a")  # a run that was slower
    again = commit_staged(folder.index, "a", "run")
    assert again
    assert all(change.inserted == change.deleted == 0 for change in again.changes.values())
    assert folder.index.working.read("SELECT revision FROM batch_state WHERE batch = 'a'").item() == 1


def test_a_committer_killed_before_it_sweeps_commits_the_same_again(folder, worker, monkeypatch):
    stage(worker, "a")
    with monkeypatch.context() as patch:
        patch.setattr(
            "graphrag_assets.store.staging.Staging.discard", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            commit_staged(folder.index, "a", "killed")
    before = facts(folder.index)
    assert staged_batches(folder.index) == {"a"}
    assert commit_staged(folder.index, "a", "run")
    assert facts(folder.index) == before
    assert staged_batches(folder.index) == frozenset()


def test_files_that_changed_after_extraction_are_not_committed_as_they_were(folder, worker):
    stage(worker, "b.txt")
    folder.write("b.txt", TEXT)
    scan_input(folder.index)
    assert commit_staged(folder.index, "b.txt", "run") is None
    assert staged_batches(folder.index) == frozenset()


def test_other_settings_are_refused_by_name(folder, worker):
    own = Index(worker.database, {"tokenizer": "cl100k_base", "id_column": "key"})
    stage(own, "a")
    with pytest.raises(StagingError) as refused:
        commit_staged(folder.index, "a", "run")
    said = str(refused.value)
    assert "chunk_encoding: cl100k_base there, o200k_base here" in said
    assert "id_column: key there, id here" in said
    assert "title_column" not in said
    assert staged_batches(folder.index) == frozenset()
    assert folder.index.working.read("SELECT count(*) FROM documents").item() == 0


def test_settings_given_to_the_batch_travel_with_it(folder, worker):
    stage(worker, "a", chunking="sentences")
    assert commit_staged(folder.index, "a", "run")
    assert folder.index.with_run_options("a").settings.chunking == "sentences"
    assert "a" in scan(folder.index).unchanged


def test_a_revision_with_more_failures_does_not_replace_one_with_fewer(folder, worker):
    staged = stage(worker, "a")
    staging = staging_of(folder.index)
    (good,) = staging.revisions("a")
    frames = staging.read(good)
    assert commit_staged(folder.index, "a", "run")
    before = facts(folder.index)
    errors = frames["index_errors"]
    worse = {**frames, "entity_mentions": frames["entity_mentions"].clear()}
    failed = errors[0].with_columns(error=errors[0]["error"] + ".", source=errors[0]["source"] + ".")
    staging.write({**worse, "index_errors": errors.vstack(failed)}, staged)
    assert commit_staged(folder.index, "a", "run") is None
    assert facts(folder.index) == before


def test_a_batch_that_is_gone_is_not_committed(folder, worker):
    stage(worker, "a")
    assert commit_staged(folder.index, "a", "run")
    stage(worker, "a")
    shutil.rmtree(folder.input / "a")
    scan_input(folder.index)
    assert commit_staged(folder.index, "a", "run") is None
    index_batch(folder.index, "a", folder.index.models("a"), "run")
    assert folder.index.working.read("SELECT count(*) FROM documents WHERE batch = 'a'").item() == 0


def test_an_imported_batch_is_not_replaced(folder, worker):
    stage(worker, "a")
    commit_staged(folder.index, "a", "run")
    stage(worker, "a")
    with folder.index.working.transaction() as connection:
        connection.execute("UPDATE batch_state SET origin = 'elsewhere'")
    with pytest.raises(InputError, match="imported from elsewhere"):
        commit_staged(folder.index, "a", "run")


@pytest.mark.extended
def test_a_purge_leaves_nothing_in_the_staging_area(folder, worker):
    stage(worker, "a")
    folder.index_all()
    (count,) = [removed for removed in purge(folder.index, dry_run=True) if removed.place == "staging"]
    staging = staging_of(folder.index)
    assert count.number == len(staging.files()) == 7  # six tables and a manifest
    purge(folder.index)
    assert staging.files() == []


def test_without_a_staging_area_nothing_is_staged(project, monkeypatch):
    monkeypatch.delenv("GRAPHRAG_STAGING", raising=False)
    assert staging_of(project.index) is None
    assert staged_batches(project.index) == frozenset()
    assert commit_staged(project.index, "a", "run") is None


def test_with_a_model_the_ledger_must_be_shared(monkeypatch):
    monkeypatch.setenv("GRAPHRAG_STAGING", "memory://x")
    monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/none")
    with pytest.raises(SettingsError, match="GRAPHRAG_LEDGER_URL"):
        Settings.load()
    monkeypatch.setenv("GRAPHRAG_LEDGER_URL", "postgresql+psycopg://host/ledger")
    assert Settings.load().staging == "memory://x"
