"""Rows of files of facts: what they state, and which of them are errors instead."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from graphrag_assets.pipeline.loading import Loaded, LoadOptions, load_documents
from graphrag_assets.pipeline.own_facts import mapping_of
from graphrag_assets.reading.source_records import Problem

RELATIONSHIP, CLAIM = {"source": "Ada", "target": "Acme"}, {"kind": "claim", "title": "Acme", "description": "It grew."}


@dataclass(frozen=True)
class InMemoryFile:
    path: str
    text: str
    modified = refused = None

    @property
    def size(self) -> int:
        return len(self.text)

    def read(self) -> bytes:
        return self.text.encode()


def no_conversion(*_: object) -> list[Any]:
    raise AssertionError


def load(**files: str | list[dict[str, object]]) -> Loaded:
    """The batch `crm` of files by name, `_` standing for a dot; rows are JSON lines."""
    texts = {name: text if isinstance(text, str) else "\n".join(map(json.dumps, text)) for name, text in files.items()}
    batch = [InMemoryFile(f"crm/{name.replace('_', '.')}", text) for name, text in texts.items()]
    return load_documents("crm", batch, LoadOptions(), no_conversion)


def facts(loaded: Loaded) -> list[dict[str, object]]:
    return [fact for data in loaded.documents["raw_data"] for fact in json.loads(data)["graphrag_facts"]]


def errors(loaded: Loaded) -> list[tuple[object, ...]]:
    return loaded.errors.select("source", "row_number", "error").rows()


@pytest.mark.parametrize(
    ("row", "error"),
    [
        *(
            ({**RELATIONSHIP, "strength": value}, f"strength is {value!r}, which is not a number above 0")
            for value in ("nan", "inf", "1e400", "1e308", "7,5", "high", "0", "-4")
        ),
        ({**CLAIM, "status": "maybe"}, "status is 'maybe', which is not TRUE, FALSE or SUSPECTED"),
        ({**CLAIM, "start_date": "soon"}, "start_date is 'soon', which is not a date"),
        ({**CLAIM, "end_date": "2999-99-99"}, "end_date is '2999-99-99', which is not a date"),
        ({**CLAIM, "end_date": "03/04/1866"}, "end_date is '03/04/1866', which is not a date"),
        *(
            ({"title": "Acme", "not": value}, f"not is {value!r}, which is not yes or no")
            for value in ("denied", "wahr")
        ),
        ({"title": "Acme", "kind": "customer"}, "kind is 'customer', which is not one of entity, relationship"),
        ({"source": "Ada", "type": "PERSON"}, "the row states no fact"),
    ],
)
def test_a_wrong_value_is_an_error_of_its_row(row: dict[str, object], error: str) -> None:
    loaded = load(a_facts_jsonl=[row, {"title": "Birch"}])
    assert facts(loaded) == [{"kind": "entity", "title": "Birch"}]
    ((source, number, text),) = errors(loaded)
    assert (source, number) == ("crm/a.facts.jsonl", 1)
    assert text.startswith(error)


@pytest.mark.parametrize(
    ("row", "fact"),
    [
        ({**RELATIONSHIP, "strength": " 7.5 "}, {"kind": "relationship", **RELATIONSHIP, "strength": 7.5}),
        ({**CLAIM, "status": "suspected"}, {**CLAIM, "status": "SUSPECTED"}),
        ({**CLAIM, "start_date": "1866-07", "end_date": 1867}, {**CLAIM, "start_date": "1866-07", "end_date": "1867"}),
        ({**CLAIM, "end_date": "1867-01-02T00:00:00"}, {**CLAIM, "end_date": "1867-01-02"}),
        *(
            ({"title": "Acme", "not": v}, {"kind": "entity", "title": "Acme", "not": True})
            for v in ("y", 1.0, "T", True)
        ),
        *(({"title": "Acme", "not": v}, {"kind": "entity", "title": "Acme"}) for v in ("no", "N", 0, 0.0, False)),
        ({"title": "Acme", "source": "annual report"}, {"kind": "entity", "title": "Acme"}),
        ({"title": "Acme", "status": "active", "strength": "high"}, {"kind": "entity", "title": "Acme"}),
        ({"source": 0, "target": 1}, {"kind": "relationship", "source": "0", "target": "1"}),
    ],
)
def test_values_are_read_as_people_write_them(row: dict[str, object], fact: dict[str, object]) -> None:
    loaded = load(a_facts_jsonl=[row])
    assert (facts(loaded), errors(loaded)) == ([fact], [])


def test_a_column_of_any_name_stays_in_raw_data() -> None:
    (data,) = load(a_facts_jsonl=[{"title": "Acme", "facts": "many"}]).documents["raw_data"]
    assert json.loads(data)["facts"] == "many"


def test_a_mapping_writes_zero_and_false() -> None:
    mapping = 'claims:\n  - {title: "{Firm}", description: "{n} employees", type: "{b}"}\n'
    loaded = load(a_facts_jsonl=[{"Firm": "Acme", "n": 0, "b": False}], a_facts_yaml=mapping)
    assert facts(loaded) == [{"kind": "claim", "title": "Acme", "description": "0 employees", "type": "False"}]


def test_a_column_that_no_row_has_is_named() -> None:
    mapping = 'entities:\n  - {title: "{Firm}"}\nrelationships:\n  - {source: "{firm}", target: "{Owner}"}\n'
    rows: list[dict[str, object]] = [{"Firm": "Acme"}, {"Firm": "Birch", "Owner": "Ada"}]
    loaded = load(a_facts_jsonl=rows, a_facts_yaml=mapping)
    assert [fact["title"] for fact in facts(loaded)] == ["Acme", "Birch"]
    assert errors(loaded) == [("crm/a.facts.jsonl", None, "no row has a value in {firm} of the mapping")]


@pytest.mark.parametrize("table", [{}, {"a_csv": "title\nAcme\n"}, {"b_facts_csv": "title\nAcme\n"}])
def test_a_mapping_without_its_table_is_an_error(table: dict[str, str]) -> None:
    loaded = load(a_facts_yaml='entities:\n  - {title: "{Firm}"}\n', **table)
    assert errors(loaded) == [("crm/a.facts.yaml", None, "no table of the batch uses the mapping")]
    assert loaded.documents.height == len(table)


def test_the_second_mapping_of_a_table_is_an_error() -> None:
    table: list[dict[str, object]] = [{"Firm": "Acme"}]
    mapping = 'entities:\n  - {title: "{Firm}"}\n'
    loaded = load(a_facts_jsonl=table, a_FACTS_yaml=mapping, a_facts_yml=mapping.replace("{Firm}", "Other"))
    assert [fact["title"] for fact in facts(loaded)] == ["Acme"]
    assert errors(loaded) == [("crm/a.facts.yml", None, "a.facts has a mapping already")]


@pytest.mark.parametrize(
    ("mapping", "error"),
    [
        ("entities:\n  - {title: Acme, type: 2021-13-45}", None),
        ("entities:\n  - {title: Acme, not: yes}", None),
        ("entities:\n  - {title: {Firm}}", "entities: title is no text"),
        ("entities:\n  - {title: Acme, strength: 3}", "entities: each needs title, and may have title, type"),
        ("[" * 5_000, "the mapping is no YAML"),
        ("\0", "the mapping is no YAML"),
        ("{", "the mapping is no YAML"),
    ],
)
def test_a_mapping_is_texts_and_anything_else_is_a_problem(mapping: str, error: str | None) -> None:
    read = mapping_of(mapping.encode())
    if error is None:
        assert not isinstance(read, Problem)
        assert all(isinstance(text, str) for text in read["entities"][0].values())
    else:
        assert isinstance(read, Problem)
        assert read.error.startswith(error)
