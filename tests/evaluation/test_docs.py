"""The guide's table is what the command prints, and the guide's questions are those of the file."""

import json
import re

import pytest

from graphrag_assets.extras.evaluation.questions import load_questions
from tests.cli import run_command
from tests.test_docs import ROOT

GUIDE = ROOT / "docs/evaluation.md"


def test_the_questions_shown_are_lines_of_the_file():
    file = ROOT / "docs/questions.jsonl"
    (shown,) = re.findall(r"```json\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert set(map(json.dumps, map(json.loads, shown.splitlines()))) <= set(
        map(json.dumps, map(json.loads, file.read_text(encoding="utf-8").splitlines()))
    )
    loaded = load_questions(file)
    assert len(loaded.questions) == 20
    assert loaded.problems == []


@pytest.mark.extended
def test_the_table_shown_is_what_the_command_prints(sample_index):
    (shown,) = re.findall(
        r"```console\n\$ graphrag-assets (evaluate docs.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL
    )
    command, _, table = shown.partition("\n")
    printed = run_command(
        *command.replace("docs/", f"{ROOT}/docs/").split(), COLUMNS="100", GRAPHRAG_DATA=str(sample_index.root)
    )
    assert [line.rstrip() for line in printed.splitlines()] == table.splitlines()
