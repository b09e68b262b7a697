"""`publications`, `diff` and `rollback` on a real index that changes."""

import shutil

import duckdb
import pytest
from click.testing import CliRunner

from graphrag_assets.cli import main
from graphrag_assets.query import GraphRAG
from tests.conftest import IndexFolder, build_once, default_settings

ANDERSON = "Captain James Anderson commanded the Great Eastern in 1865. Cyrus Field sailed in the Great Eastern too.\n"
THOMSON = "William Thomson invented the mirror galvanometer. Cyrus Field met William Thomson in Valentia.\n"
GLASS = "Richard Glass made the cable in Greenwich. Daniel Gooch owned the Great Eastern.\n"


@pytest.fixture
def changed(project, shared_folder):
    """Two publications: one document added, one edited, one removed, one moved. A copy of an index built once."""

    def build(root):
        with pytest.MonkeyPatch.context() as patch:
            default_settings(root, patch)
            publish_twice(IndexFolder(root))

    shutil.copytree(build_once(shared_folder / "changed", build), project.root, symlinks=True, dirs_exist_ok=True)
    return project


def publish_twice(project):
    project.write("a/anderson.txt", ANDERSON)
    project.write("a/glass.txt", GLASS)
    project.write("b/thomson.txt", THOMSON)
    project.write("c/moved.txt", "Samuel Canning sailed with Robert Halpin to Newfoundland.\n")
    project.index_all()
    (project.input / "b/thomson.txt").unlink()
    (project.input / "a/elsewhere").mkdir()
    (project.input / "c/moved.txt").rename(project.input / "a/elsewhere/moved.txt")
    project.write("a/anderson.txt", ANDERSON + "Robert Halpin was the chief officer of James Anderson.\n")
    project.write("d/new.txt", "Isambard Brunel designed the Great Eastern. John Russell built the Great Eastern.\n")
    project.index_all()


def call(*arguments: str, status: int = 0) -> str:
    result = CliRunner(env={"COLUMNS": "160"}).invoke(main, list(arguments))
    assert result.exit_code == status, result.output
    return result.output


@pytest.mark.extended
def test_diff_counts_and_as_sql_runs_in_a_plain_connection(changed):
    assert "Documents: 1 added, 1 edited, 1 moved, 1 removed, 1 unchanged" in call("publications", "diff")
    with duckdb.connect() as connection:
        connection.execute(call("publications", "diff", "--sql"))
        documents = connection.execute(
            "SELECT change, before.source, after.source FROM changed_documents ORDER BY change"
        ).fetchall()
        assert documents == [
            ("added", None, "d/new.txt"),
            ("edited", "a/anderson.txt", "a/anderson.txt"),
            ("moved", "c/moved.txt", "a/elsewhere/moved.txt"),
            ("removed", "b/thomson.txt", None),
        ]
        for view in ("entities", "relationships", "communities", "reports"):
            columns = [row[0] for row in connection.execute(f"DESCRIBE changed_{view}").fetchall()]
            assert columns[:3] == ["change", "id", "title"]
            assert connection.execute(f"SELECT count(*) FROM changed_{view}").fetchone() > (0,)


@pytest.mark.extended
def test_rollback_switches_readers_until_a_new_publication(changed):
    rag = GraphRAG(changed.root / "index")
    assert rag.sql("SELECT count(*) FROM entities WHERE title = 'William Thomson'").item() == 0
    assert "Readers see publication 1" in call("publications", "rollback", "previous")
    assert rag.sql("SELECT count(*) FROM entities WHERE title = 'William Thomson'").item() == 1
    said = call("index")  # nothing is new: readers stay at publication 1
    assert "Nothing is new since publication 2, but readers have publication 1 since a rollback." in said
    assert "`graphrag-assets publications rollback newest` goes forward again" in said
    assert "is the current one already" in call("publications", "rollback", "1")
    assert "Readers see publication 2" in call("publications", "rollback", "newest")
