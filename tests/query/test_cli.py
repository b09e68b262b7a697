"""The command `query`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from graphrag_assets.cli.main import main
from graphrag_assets.query import METHODS

QUESTION = "Who commanded the Niagara?"
HUDSON = "Captain William Hudson commanded the Niagara."


def query(index_file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["query", *arguments, "--index", str(index_file)], env={"COLUMNS": "200"})


@pytest.mark.parametrize("method", [*METHODS, "ask"])
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


def test_errors_are_one_line(index_file: Path) -> None:
    for arguments, said in (
        (("basic", QUESTION, "--level", "1"), "community_level"),
        (("local", QUESTION, "--dynamic"), "dynamic"),
        (("local", QUESTION, "--hops", "9"), "equal to 4"),
        (("drift", QUESTION, "--hops", "9"), "equal to 4"),
        (("local", QUESTION, "--filter", "topic"), "KEY=VALUE"),
        (("local", QUESTION, "--history", __file__), "cannot be read as JSON"),
        (("local", " "), "empty"),
    ):
        result = query(index_file, *arguments)
        assert result.exit_code in (1, 2)  # 2: of click, on a value that does not fit
        assert said in result.output
        assert "Traceback" not in result.output
