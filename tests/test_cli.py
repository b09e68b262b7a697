"""The commands on real files."""

import json

import pytest

from tests.cli import run_command
from tests.evaluation.test_comparison import CAPTAINS, CAPTAINS_FOUND, NAMES

TEXT = "Captain James Anderson commanded the Great Eastern in 1865. Cyrus Field sailed in the Great Eastern too.\n"


def test_empty_input_folder_is_reported(project):
    assert f"The input folder {project.input} is empty. Nothing is published. Put documents" in run_command("index")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("index", "--input", "nowhere"), "nowhere"),
        (("index", "--batch", "nope"), "No batch 'nope'"),
        (("query", "local", "Who?"), "Nothing is published"),
        (("resolve", "judge"), "Run `graphrag-assets index`"),
        (("query", "local", "Who?", "--index", "nowhere"), "nowhere does not exist. Give the data folder"),
    ],
)
def test_errors_are_one_clear_line_without_a_traceback(project, arguments, message):
    output = run_command(*arguments, status=1)
    assert message in output
    assert "Traceback" not in output


def test_a_bad_setting_names_the_variable(project):
    output = run_command("index", status=1, GRAPHRAG_CHUNK_SIZE="many")
    assert "GRAPHRAG_CHUNK_SIZE='many'" in output
    assert "Traceback" not in output


def test_an_unknown_variable_gives_one_warning_with_the_similar_setting(project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(
        "GRAPHRAG_CHUNKSIZE=300\nGRAPHRAG_API_KEY=a\nGRAPHRAG_CHAT_API_KEY=${GRAPHRAG_API_KEY}\n"
    )
    output = run_command(
        "status", GRAPHRAG_CHAT_MODLE="openai/gpt", GRAPHRAG_WHATEVER="sk-planted", GRAPHRAG_MEMORY="8g"
    )
    warnings = [line for line in output.splitlines() if line.startswith("Warning:")]
    assert warnings == [
        "Warning: GRAPHRAG_CHAT_MODLE is not a setting and is ignored. Did you mean GRAPHRAG_CHAT_MODEL?",
        "Warning: GRAPHRAG_WHATEVER is not a setting and is ignored. docs/models.md lists the settings.",
        "Warning: GRAPHRAG_CHUNKSIZE is not a setting and is ignored. Did you mean GRAPHRAG_CHUNK_SIZE?",
    ]


def test_status_counts_and_shows_what_was_skipped(project):
    project.write("one/a.txt", "Ada bought a caf\xe9 in Zürich and the Café Müller in Köln.".encode() + b" \xe9\n")
    project.write("one/b.jsonl", '{"text": "no end')
    assert "`graphrag-assets status` shows the rows of index_errors" in run_command("index")
    status = run_command("status")
    (row,) = [line.split() for line in status.splitlines() if line.startswith("│ one ")]
    assert row[-2] == "1"  # a file that was indexed is not counted
    assert "1 skipped, 1 other problem:" in status
    assert "malformed JSON: Unterminated string starting at column 10." in status


def test_index_warns_of_a_publication_in_which_searches_find_less(start_with):
    project = start_with(CAPTAINS)
    (project.root / "questions.jsonl").write_text("\n".join(map(json.dumps, CAPTAINS_FOUND)), encoding="utf-8")
    for name in NAMES:
        for number in range(6):
            project.write(f"more/{name}{number}.txt", f"Who commanded the {name}star? Who commanded the {name}star?")
    printed = run_command("index")
    assert "Warning: Worse than publication 1: recall@5 by " in printed
    assert "`graphrag-assets publications rollback previous` gives readers the earlier publication." in printed
    assert "Published: publication 2" in printed
