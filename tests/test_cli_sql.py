"""`graphrag-assets sql`: one query, a pipe, DuckDB's shell."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from graphrag_assets.cli import main
from graphrag_assets.store.publication_reader import CurrentPublication
from tests.cli import run_command

COUNT = "SELECT count(*) AS n FROM documents"


@pytest.fixture
def index(sample_index) -> Path:
    return sample_index.root / "index"


def run(index: Path, *arguments: str, piped: str = "", status: int = 0):
    result = CliRunner(env={"COLUMNS": "100"}).invoke(main, ["sql", "--index", str(index), *arguments], input=piped)
    assert result.exit_code == status, result.output
    return result


def test_query_prints_csv_without_a_terminal(index):
    assert run(index, COUNT).stdout == "n\n20\n"


@pytest.mark.parametrize("comment", ["-- how many", "--how many"])
def test_query_may_begin_with_a_comment(index, comment):
    assert run(index, f"{comment}\n{COUNT}", "--format", "csv").stdout == "n\n20\n"


def test_a_data_folder_stands_for_its_index(index):
    assert run(index.parent, COUNT).stdout == "n\n20\n"


def test_query_prints_a_table_with_the_option(index):
    printed = run(index, "--format", "table", "SELECT title, 0.5 AS half FROM entities WHERE title = 'Cyrus Field'")
    lines = printed.stdout.splitlines()
    assert lines[1].split() == ["┃", "title", "┃", "half", "┃"]
    assert lines[3].split() == ["│", "Cyrus", "Field", "│", "0.5", "│"]
    assert lines[-1] == "1 row"


def test_row_of_a_table_is_one_line_and_json_has_complete_values(index):
    query = "SELECT title, text FROM documents LIMIT 1"
    assert len(run(index, "--format", "table", query).stdout.splitlines()) == 6
    ((title, text),) = CurrentPublication(index).reader().query(query).rows()
    assert json.loads(run(index, "--format", "json", query).stdout) == [{"title": title, "text": text}]


def test_nested_values_are_json_in_csv(index):
    printed = run(index, "SELECT [1, 2] AS numbers, {'a': 'é'} AS named, NULL::INT[] AS nothing").stdout
    assert printed == 'numbers,named,nothing\n"[1, 2]","{""a"": ""é""}",\n'


def test_long_table_reports_the_number_of_omitted_rows(index):
    printed = run(index, "--format", "table", "SELECT * FROM range(1234)").stdout
    assert "1,234 rows, 200 shown; --format csv gives all" in printed
    assert len(run(index, "SELECT * FROM range(1234)").stdout.splitlines()) == 1235


def test_piped_queries_run_in_turn_up_to_the_first_that_fails(index):
    result = run(index, piped="SELECT 1 AS a;\nSELECT nothing FROM nowhere;\nSELECT 2 AS b;", status=1)
    assert result.stdout == "a\n1\n"
    assert "nowhere does not exist" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("query", ["DROP TABLE entities", "SELECT 'open", "COPY entities TO 'x.csv'"])
def test_invalid_query_exits_with_status_1_and_the_reason(index, query):
    result = run(index, query, status=1)
    assert (result.stdout, result.stderr.startswith("Error: Cannot")) == ("", True)


def test_missing_index_is_an_error(tmp_path):
    result = CliRunner().invoke(main, ["sql", "--index", str(tmp_path), "SELECT 1"])
    assert result.exit_code == 1
    assert "Nothing is published" in result.stderr


def on_a_terminal(index: Path, path: str) -> tuple[str, int]:
    """What the command prints on a terminal, and its status."""
    pty = pytest.importorskip("pty")
    here, there = pty.openpty()
    command = [sys.executable, "-m", "graphrag_assets", "sql", "--index", str(index)]
    process = subprocess.Popen(
        command, stdin=there, stdout=there, stderr=there, env={**os.environ, "PATH": path, "TERM": "dumb"}
    )
    os.close(there)
    printed = b""
    try:
        while part := os.read(here, 4096):
            printed += part
    except OSError:  # the other end is closed
        pass
    os.close(here)
    return printed.decode(), process.wait()


def test_on_a_terminal_without_a_query_duckdbs_shell_is_named(index, tmp_path):
    printed, status = on_a_terminal(index, str(tmp_path))
    assert status == 1
    assert f"duckdb -readonly {CurrentPublication(index).reader().path}" in " ".join(printed.split())


def test_on_a_terminal_without_a_query_duckdbs_shell_is_opened(index, tmp_path):
    shell = tmp_path / "duckdb"
    shell.write_text("#!/bin/sh\necho the shell of DuckDB: $1 $2\n")
    shell.chmod(0o755)
    printed, status = on_a_terminal(index, str(tmp_path))
    assert status == 0
    assert f"the shell of DuckDB: -readonly {CurrentPublication(index).reader().path}" in printed


def test_half_a_character_in_a_query_is_one_sentence(sample_index):
    printed = run_command("sql", "--index", str(sample_index.root / "index"), "SELECT '\udcff'", status=1)
    assert "Character 9 of the query is half of a character" in printed
    assert "Traceback" not in printed
