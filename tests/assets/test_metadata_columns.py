"""GRAPHRAG_METADATA_COLUMNS: columns of a row stand before the text of its text units, and are no part of it."""

import json

import pytest

from tests.comparison import facts, index_at
from tests.conftest import Project

TEXT = "James Anderson commanded the Great Eastern."


def row(**others: object) -> str:
    return json.dumps({"title": "The log", "text": TEXT, **others}) + "\n"


@pytest.mark.extended
def test_columns_are_in_the_context_and_quotes_stay_in_the_text(
    project: Project, monkeypatch, tmp_path_factory
) -> None:
    monkeypatch.setenv("GRAPHRAG_METADATA_COLUMNS", "ship, year")
    project.write("b/a.jsonl", row(ship="Great Eastern", year=1866, port="Valentia"))
    project.index_all()
    ((context, text, start, end),) = project.sql("SELECT context, text, start_char, end_char FROM text_units")
    assert context == "The log (ship: Great Eastern; year: 1866)"
    assert text == TEXT[start:end]
    project.write("b/a.jsonl", row(ship="Great Eastern", year=1865))
    project.index_all()
    assert project.sql("SELECT context FROM text_units") == [("The log (ship: Great Eastern; year: 1865)",)]
    edited = facts(project.index)
    fresh = Project(tmp_path_factory.mktemp("fresh"), project.instance)
    fresh.write("b/a.jsonl", row(ship="Great Eastern", year=1865))
    index_at(fresh.root, monkeypatch)
    fresh.index_all()
    assert edited == facts(fresh.index)
