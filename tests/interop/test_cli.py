"""The commands `import` and `publications export`."""

import json

import pytest
from click.testing import CliRunner

from graphrag_assets.cli.main import main
from tests.interop.small_index import write_small_index


def run(*arguments, status=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], env={"COLUMNS": "150"})
    assert result.exit_code == status, result.output
    return " ".join(result.output.split())


@pytest.mark.extended
def test_import_is_listed_removed_and_exported(project, tmp_path):
    folder = write_small_index(tmp_path / "theirs")
    assert "Nothing is imported" in run("import")
    printed = run("import", folder)
    assert "imported-theirs: GraphRAG 3" in printed
    assert "│ entities │ 8 │ 7 │" in printed
    assert "missing endpoints of relationships, added │ 1 │" in printed
    assert f"From {folder}" in run("import")
    assert "7 entities" in run("publications", "export", "graphrag", tmp_path / "out")
    assert "1 community_reports" in run("publications", "export", "reports", tmp_path / "r.jsonl", "--community", 1)
    assert json.loads((tmp_path / "r.jsonl").read_text())["community"] == 1
    assert "theirs/agamemnon.txt" in run("import", "--hand-over", "imported-theirs", "--document", "agamemnon.txt")
    assert (project.input / "theirs" / "agamemnon.txt").exists()
    assert "Removed from imported-theirs: 1 documents (eastern.txt)" in run("import", "--remove", "imported-theirs")
    assert "Nothing is imported" in run("import")


@pytest.mark.parametrize("arguments", [("--remove", "a", "--hand-over", "b"), (".", "--remove", "a")])
def test_options_of_import_exclude_each_other(project, arguments):
    assert "Give one of SOURCE, --remove and --hand-over" in run("import", *arguments, status=2)
