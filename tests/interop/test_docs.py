"""The commands of the guide."""

import os
import re
import shlex

import pytest

from tests.cli import run_command
from tests.test_docs import blocks

GUIDE = "docs/exchange.md"


@pytest.mark.extended
def test_commands_of_the_guide_print_the_output_it_shows(sample_index, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GRAPHRAG_DATA", str(sample_index.root))
    monkeypatch.chdir(tmp_path)
    for block in blocks(GUIDE, "console"):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            if command.startswith("export "):
                name, value = command.removeprefix("export ").split("=")
                monkeypatch.setenv(name, value)
                continue
            output = run_command(*shlex.split(command.removeprefix("graphrag-assets ")), COLUMNS="100")
            printed = iter([line.strip() for line in output.splitlines()])
            for line in (line.strip() for line in shown.splitlines() if line.strip() not in ("", "…")):
                assert line in printed, f"{command}: {line!r} is not in\n{output}"
