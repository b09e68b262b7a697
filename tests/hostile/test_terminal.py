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
from graphrag_assets.store.publication_reader import Texts

EVIL = ["\x1b[2J", "\x1b]0;owned\x07", "\x9b31m", "safe\b\b\b\b", "safe\revil", "\u202egpj.exe", "\x7f", "\x00"]
FORBIDDEN = set("\x00\x07\x08\x0d\x1b\x7f\x9b\u202e")


@pytest.mark.parametrize("evil", EVIL)
def test_what_is_printed_has_no_control_characters(evil):
    name = f"Name {evil}"
    table = Table(name, title=name)
    table.add_row(Text(name))
    for form in (name, Text(name), Markdown(name), table):
        output = io.StringIO()
        Console(file=output, width=60).print(form)
        assert not FORBIDDEN & set(output.getvalue())
        assert "Name" in output.getvalue()


@pytest.mark.parametrize("form", ["csv", "json", "table"])
def test_results_on_a_terminal_are_masked_and_csv_in_a_pipe_is_as_it_is(capsys, monkeypatch, form):
    found = Texts(["title"], ["varchar"], [(json.dumps(title) if form == "json" else title,) for title in EVIL])
    monkeypatch.setattr(terminal.sys.stdout, "isatty", lambda: True)
    print_texts(found, form)
    assert not FORBIDDEN & set(re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out))  # without styles of our own
    monkeypatch.setattr(terminal.sys.stdout, "isatty", lambda: False)
    print_texts(found, form)
    printed = capsys.readouterr().out
    if form == "csv":
        assert pl.read_csv(io.StringIO(printed))["title"].to_list() == EVIL
