"""An index or a publication of another version: an error that names the remedy, and `index` derives it again."""

from pathlib import Path

import duckdb
import pytest

from graphrag_assets.errors import OtherVersionError
from graphrag_assets.query import GraphRAG
from graphrag_assets.store.index_files import current_number, kept_publications
from tests.assets.test_language_models import use
from tests.cli import run_command
from tests.conftest import Project
from tests.openai_server import running

TEXTS = {
    "one/a.txt": "Captain James Anderson commanded the Great Eastern in 1865. Cyrus Field sailed in the Great Eastern too.",
    "two/b.txt": "Robert Halpin met Daniel Gooch in Valentia. The Great Eastern carried the cable to Newfoundland.",
}
REMEDY = r"was made by another version of graphrag-assets, which has other tables\. Run `graphrag-assets index`"


def set_version(file: Path, table: str, statement: str = "UPDATE {} SET schema_version = 'another'") -> None:
    with duckdb.connect(str(file)) as connection:
        connection.execute(statement.format(table))


def of_another_version(project: Project) -> None:
    """As another version of the package leaves an index: with other tables."""
    index = project.root / "index"
    set_version(index / "working.duckdb", "text_units", "ALTER TABLE {} DROP COLUMN headings")
    set_version(index / "working.duckdb", "index_state")
    for number in kept_publications(index):
        set_version(index / f"publications/graphrag-{number}.duckdb", "publication")


def test_an_index_of_another_version_is_derived_again_without_a_model_call(project, monkeypatch, caplog):
    for path, text in TEXTS.items():
        project.write(path, text)
    with running() as server:
        use(monkeypatch, server)
        project.index_all()
        # What is added by a later run has later numbers, and prompts have these numbers.
        project.write("one/c.txt", "Ansel Berg wrote to Cyrus Field from Hamburg.")
        project.index_all()
        before = {name: rows_of(project, name) for name in ("entities", "community_reports", "documents")}
        of_another_version(project)
        with pytest.raises(OtherVersionError, match=REMEDY):
            GraphRAG(project.root / "index")
        for command in (["status"], ["publications", "rollback", "previous"], ["sql", "FROM documents"]):
            assert "Run `graphrag-assets index`" in run_command(*command, status=1)
        server.requests.clear()
        run_command("index")
        assert server.requests == []
    assert "It is derived again from its input; paid answers come from the ledger." in caplog.text
    assert current_number(project.root / "index") == 3
    assert {name: rows_of(project, name) for name in before} == before
    assert (project.root / "index" / "outdated.duckdb").stat().st_size > 0
    assert "0 indexed, 2 unchanged" in run_command("index")
    run_command("publications", "purge")
    assert not (project.root / "index" / "outdated.duckdb").exists()


def rows_of(project: Project, table: str) -> list[tuple[object, ...]]:
    columns = {"documents": "id, human_readable_id, text", "entities": "id, human_readable_id, title, description"}
    return project.sql(f"SELECT {columns.get(table, 'title, summary, full_content')} FROM {table} ORDER BY ALL")
