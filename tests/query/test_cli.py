"""The command `query`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from graphrag_assets.cli.main import main

QUESTION = "Who commanded the Niagara?"
HUDSON = "Captain William Hudson commanded the Niagara."


def query(index_file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["query", *arguments, "--index", str(index_file)], env={"COLUMNS": "200"})


@pytest.mark.parametrize("method", ["local", "global", "drift", "basic", "ask"])
def test_every_method_prints_its_answer_and_where_it_stands(index_file: Path, method: str) -> None:
    printed = query(index_file, method, QUESTION).output
    assert HUDSON in printed
    assert "b/document-0.txt" in printed
    assert ("Chosen: local search" in printed) is (method == "ask")


def test_the_answer_can_be_printed_as_it_comes(index_file: Path) -> None:
    printed = query(index_file, "basic", QUESTION, "--stream").output
    assert printed.startswith(f"{HUDSON} [Data: Sources (0)]\n")
    assert printed.count("[Data: Sources (0)]") == 1
    assert "characters 61-106" in printed


def test_json_has_the_answer_with_all_it_rests_on(index_file: Path) -> None:
    answer = json.loads(query(index_file, "local", QUESTION, "--json").stdout)
    assert HUDSON in answer["answer"]
    assert answer["citations"][0]["quote"] == HUDSON
    assert answer["citations"][0]["rows"][0] == {"table": "Sources", "number": 0, "id": "t0", "title": "Document 0"}
    assert 0 in answer["context"]["sources"]
    assert answer["usage"]["response"]["calls"] == 0


def test_the_context_alone_can_be_shown(index_file: Path) -> None:
    assert query(index_file, "basic", QUESTION, "--context").output.startswith("-----Sources-----\nid|context|text\n0|")


def test_filters_and_the_level_reach_the_search(index_file: Path) -> None:
    def reports(*options: str) -> list[int]:
        answer = json.loads(query(index_file, "global", "What happened?", "--json", *options).stdout)
        return sorted(answer["context"]["reports"])

    assert reports("--level", "0") == [0, 1, 2]
    assert reports("--level", "1") == [1, 2, 3, 4]
    sources = json.loads(query(index_file, "basic", "Niagara", "--json", "--document", "Document 2").stdout)["context"]
    assert set(sources["sources"]) <= {4, 5}


def test_errors_are_one_line(index_file: Path) -> None:
    for arguments, said in (
        (("basic", QUESTION, "--batch", "nope"), "nope"),
        (("local", QUESTION, "--level", "1"), "community_level"),
        (("local", " "), "empty"),
    ):
        result = query(index_file, *arguments)
        assert result.exit_code == 1
        assert said in result.output
        assert "Traceback" not in result.output
