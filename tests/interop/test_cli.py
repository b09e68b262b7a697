"""The commands `import` and `publications export`."""

import pytest
from click.testing import CliRunner

from graphrag_assets.cli.main import main
from tests.interop.small_index import write_small_index


def run(*arguments, status=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], env={"COLUMNS": "150"})
    assert result.exit_code == status, result.output
    return " ".join(result.output.split())


@pytest.mark.extended
def test_an_index_is_imported_published_exported_and_removed(project, tmp_path):
    project.input.rmdir()
    printed = run("import", write_small_index(tmp_path / "theirs"))
    assert "imported-theirs" in printed
    assert "│ entities │ 8 │ 6 │" in printed
    assert "duplicates of a pair, in either direction, merged │ 1 │" in printed
    assert "Published: publication 1" in run("index")
    assert "7 entities" in run("publications", "export", "graphrag", tmp_path / "out")
    removed = run("import", "--remove", "imported-theirs", "--document", "eastern.txt")
    assert "Removed from imported-theirs: 1 documents (eastern.txt)" in removed
    assert "Published: publication 2" in run("index")
