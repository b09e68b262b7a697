"""No text of a document or a model controls the terminal."""

import io
import json
import re

import polars as pl
import pytest
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from graphrag_assets.cli import terminal
from graphrag_assets.cli.sql import print_texts
from graphrag_assets.cli.terminal import Console
from graphrag_assets.runtime.outgoing import printable
from graphrag_assets.store.publication_reader import Texts

EVIL = {
    "clears the screen": "\x1b[2J",
    "sets the title": "\x1b]0;owned\x07",
    "C1 control": "\x9b31m",
    "backspaces": "safe\b\b\b\b",
    "carriage return": "safe\revil",
    "right to left": "\u202egpj.exe",
    "delete": "\x7f",
    "NUL": "\x00",
}
FORBIDDEN = set("\x00\x07\x08\x0d\x1b\x7f\x9b\u202e")


def forms(text: str) -> list[object]:
    table = Table(text, title=text)
    table.add_row(Text(text))
    return [text, Text(text), Markdown(text), table]


@pytest.mark.parametrize("kind", EVIL)
def test_what_is_printed_has_no_control_characters(kind):
    assert not FORBIDDEN & set(printable(EVIL[kind]))
    for form in forms(f"Name {EVIL[kind]}"):
        output = io.StringIO()
        Console(file=output, width=60).print(form)
        assert not FORBIDDEN & set(output.getvalue())
        assert "Name" in output.getvalue()


@pytest.mark.parametrize("form", ["csv", "json", "table"])
def test_results_on_a_terminal_are_masked_and_csv_in_a_pipe_is_as_it_is(capsys, monkeypatch, form):
    titles = list(EVIL.values())
    found = Texts(["title"], ["varchar"], [(json.dumps(title) if form == "json" else title,) for title in titles])
    monkeypatch.setattr(terminal.sys.stdout, "isatty", lambda: True)
    print_texts(found, form)
    assert not FORBIDDEN & set(re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out))  # without styles of our own
    monkeypatch.setattr(terminal.sys.stdout, "isatty", lambda: False)
    print_texts(found, form)
    printed = capsys.readouterr().out
    if form == "csv":
        assert pl.read_csv(io.StringIO(printed))["title"].to_list() == titles
