"""What the guide shows is what happens."""

import os
import re
import subprocess
import sys

import pytest

from tests.interop.test_real_indexes import ROWS, name_of
from tests.test_docs import ROOT, blocks

GUIDE = "docs/interop.md"


@pytest.mark.extended
def test_the_guides_commands_print_what_it_shows(sample_index, tmp_path):
    (tmp_path / "graph").mkdir()
    for name, rows in zip(("entities", "relationships"), blocks(GUIDE, "csv"), strict=True):
        (tmp_path / "graph" / f"{name}.csv").write_text(rows)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHRAG_")}
    environment |= {"COLUMNS": "100", "GRAPHRAG_DATA": str(sample_index.root), "PYTHONPATH": str(ROOT)}
    for block in blocks(GUIDE, "console"):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            if command.startswith("export "):
                name, value = command.removeprefix("export ").split("=")
                environment[name] = value
                continue
            arguments = re.findall(r'"[^"]*"|\S+', command.removeprefix("python "))
            done = subprocess.run(
                [sys.executable, *(argument.strip('"') for argument in arguments)],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            printed = iter([line.strip() for line in done.stdout.splitlines()])
            for line in (line.strip() for line in shown.splitlines() if line.strip() not in ("", "…")):
                assert line in printed, f"{command}: {line!r} is not in\n{done.stdout}"


def test_the_guides_table_of_generations_is_what_the_tests_find():
    text = (ROOT / GUIDE).read_text(encoding="utf-8")
    for folder, (read, written) in ROWS.items():
        name = f"{folder.parent.name}/{folder.name}"
        lines = [
            f"| {name} | in | {' | '.join(map(str, read))} |\n| | out | {' | '.join(map(str, written))} |",
        ]
        assert lines[0] in text, name_of(folder)


def test_the_guide_has_every_format_and_option():
    from graphrag_assets.cli.main import EXPORTS, export, import_

    text = (ROOT / GUIDE).read_text(encoding="utf-8")
    assert [kind for kind in EXPORTS if f"| `{kind}` |" not in text] == []
    options = {
        name for command in (export, import_) for p in command.params for name in p.opts if name.startswith("--")
    }
    assert [option for option in sorted(options) if option not in text] == []
