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


@pytest.mark.parametrize("method", ["local", "global", "drift", "basic", "lazy", "ask"])
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


def test_filters_and_the_level_reach_the_search(index_file: Path) -> None:
    def reports(*options: str) -> list[int]:
        answer = json.loads(query(index_file, "global", "What happened?", "--json", *options).stdout)
        return sorted(answer["context"]["reports"])

    assert reports("--level", "0") == [0, 1, 2]
    assert reports("--level", "1") == [1, 2, 3, 4]
    sources = json.loads(query(index_file, "basic", "Niagara", "--json", "--document", "Document 2").stdout)["context"]
    assert set(sources["sources"]) <= {4, 5}


def test_reports_of_local_search_and_drift_end_at_the_level(index_file: Path) -> None:
    for method in ("local", "drift"):
        used = [
            set(json.loads(query(index_file, method, QUESTION, "--json", *options).stdout)["context"]["reports"])
            for options in ((), ("--community-level", "0"))
        ]
        assert 3 in used[0]
        assert used[1] == {0, 1, 2} & used[0]


def test_a_conversation_is_read_from_a_file(index_file: Path, tmp_path: Path) -> None:
    turns = tmp_path / "turns.json"
    turns.write_text(json.dumps([{"role": "user", "content": QUESTION}]))
    alone, after = (
        json.loads(query(index_file, "basic", "Was it there?", "--json", *given).stdout)["answer"]
        for given in ((), ("--history", str(turns)))
    )
    assert "Great Eastern" in alone
    assert "Great Eastern" not in after
    assert HUDSON in after
    turns.write_text(json.dumps({"role": "user"}))
    assert "must be a list of turns" in query(index_file, "local", "And when?", "--history", str(turns)).output


def test_questions_are_suggested(index_file: Path) -> None:
    def asked(*arguments: str) -> list[str]:
        result = CliRunner().invoke(main, ["query", "questions", *arguments, "--index", str(index_file)])
        assert result.exit_code == 0, result.output
        return result.output.splitlines()

    first = asked("--count", "2")
    assert len(first) == 2
    assert all(line.endswith("?") for line in first)
    after = asked(QUESTION, "--count", "3")
    assert after
    assert QUESTION not in after


def test_errors_are_one_line(index_file: Path) -> None:
    for arguments, said in (
        (("basic", QUESTION, "--level", "1"), "community_level"),
        (("local", QUESTION, "--dynamic"), "dynamic"),
        (("local", QUESTION, "--hops", "9"), "from 1 to 4"),
        (("drift", QUESTION, "--hops", "9"), "from 1 to 4"),
        (("local", QUESTION, "--filter", "topic"), "KEY=VALUE"),
        (("local", QUESTION, "--history", __file__), "cannot be read as JSON"),
        (("local", " "), "empty"),
    ):
        result = query(index_file, *arguments)
        assert result.exit_code == 1
        assert said in result.output
        assert "Traceback" not in result.output
