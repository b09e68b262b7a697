"""An interrupted import is shown as unfinished and can be repeated as a first import."""

import pytest
from click.testing import CliRunner

from graphrag_assets.cli.main import main
from graphrag_assets.errors import GraphRAGError
from graphrag_assets.extras.interop import importer as importing
from graphrag_assets.extras.interop.imported_batches import remove
from graphrag_assets.extras.interop.importer import import_index
from graphrag_assets.indexing.checks import failed_blocking_checks
from graphrag_assets.store import schema
from graphrag_assets.store.imports import counts_of, unfinished
from graphrag_assets.store.invariants import Check
from tests.interop.small_index import write_small_index

BATCH = "imported-small"
TABLES = [table.name for table in (*schema.BATCH_TABLES, *schema.GLOBAL_TABLES) if table.name != "community_history"]


def contents(project):
    return {name: project.index.working.read(f"SELECT * FROM {name} ORDER BY ALL").to_dicts() for name in TABLES}


def import_records(project):
    queries = (
        "SELECT batch, generation, modularity_loss FROM imports",
        "SELECT * FROM import_counts ORDER BY ALL",
        "SELECT * FROM imported_ids ORDER BY ALL",
    )
    return [project.index.working.read(query).rows() for query in queries]


def interrupt(monkeypatch, step, work):
    def killed(*args, **more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(importing.imports if step == "record_counts" else importing, step, killed)
        with pytest.raises(KeyboardInterrupt):
            work()


STEPS = ["merge_graph", "update_communities", "update_embeddings"]


@pytest.mark.long
@pytest.mark.parametrize("step", [*STEPS, "record_counts"])
def test_interrupted_import_is_repeated_as_a_first_import(project, small, import_small, monkeypatch, step):
    interrupt(monkeypatch, step, import_small)
    assert unfinished(project.index.working)["batch"].to_list() == [BATCH]
    import_small()
    assert contents(project) == contents(small)
    assert import_records(project) == import_records(small)
    assert unfinished(project.index.working).is_empty()


@pytest.mark.long
def test_interrupted_repetition_of_an_import_is_repeated(project, small, import_small, monkeypatch):
    interrupt(monkeypatch, "update_embeddings", import_small)
    interrupt(monkeypatch, "merge_graph", import_small)
    import_small()
    assert contents(project) == contents(small)


@pytest.mark.extended
def test_removed_import_is_imported_again_without_a_run_between(imported, small, import_small):
    remove(imported.index, BATCH)
    import_small()
    assert contents(imported) == contents(small)


@pytest.mark.long
def test_other_batches_stay_as_they_were(start_with, import_small, monkeypatch):
    text = "Samuel Canning met Robert Halpin in London. Robert Halpin paid Samuel Canning."
    project = start_with({"mine.md": text})
    interrupt(monkeypatch, "record_counts", import_small)
    import_small()
    reports = project.sql("SELECT model, count(*) FROM community_reports GROUP BY ALL ORDER BY ALL")
    assert dict(reports)["imported"] == 3
    assert project.sql("SELECT batch, count(*) FROM documents GROUP BY ALL ORDER BY 1") == [(BATCH, 2), ("mine.md", 1)]
    assert failed_blocking_checks(project.index) == []


@pytest.mark.long
def test_commands_report_an_unfinished_import(project, monkeypatch):
    folder = write_small_index(project.root / "small")
    interrupt(monkeypatch, "write_structure", lambda: import_index(project.index, folder))

    def run(*arguments):
        result = CliRunner().invoke(main, [*map(str, arguments)], env={"COLUMNS": "150"})
        return result.exit_code, " ".join(result.output.split())

    status, said = run("import")
    assert status == 0
    assert f"{BATCH}: unfinished: run the same import again (from {folder})" in said
    status, said = run("index")
    assert status != 0
    assert "was interrupted. Run the same import again" in said
    assert run("import", "--remove", BATCH)[0] == 0
    assert run("index")[0] == 0


def test_failed_check_after_an_import_is_reported_with_its_reason(project, import_small, monkeypatch):
    broken = Check("odd", "entities", True, "A row is odd.", "", "Fix it.")
    monkeypatch.setattr("graphrag_assets.indexing.publish.failed_blocking_checks", lambda index: [broken])
    with pytest.raises(
        GraphRAGError, match=r"'imported-small' is imported. Not published. Check failed: A row is odd. Fix it."
    ):
        import_small()
    assert counts_of(project.index.working, BATCH).height
