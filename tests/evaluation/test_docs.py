"""The guide's table is what the command prints, and the guide's questions are those of the file."""

import re

import pytest

from tests.cli import run_command
from tests.test_docs import ROOT

GUIDE = ROOT / "docs/quality.md"


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
