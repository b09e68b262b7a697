"""Rows of files of facts: what they state, and which of them are errors instead."""

import json

import pytest

from graphrag_assets.pipeline.loading import Loaded, LoadOptions, load_documents
from tests.pipeline.test_loading import WITHOUT_PROCESS, InMemoryFile

RELATIONSHIP, CLAIM = {"source": "Ada", "target": "Acme"}, {"kind": "claim", "title": "Acme", "description": "It grew."}


def load(**files: str | list[dict[str, object]]) -> Loaded:
    """The batch `crm` of files by name, `_` standing for a dot; rows are JSON lines."""
    texts = {name: text if isinstance(text, str) else "\n".join(map(json.dumps, text)) for name, text in files.items()}
    batch = [InMemoryFile(f"crm/{name.replace('_', '.')}", text.encode()) for name, text in texts.items()]
    return load_documents("crm", batch, LoadOptions(), WITHOUT_PROCESS)


def facts(loaded: Loaded) -> list[dict[str, object]]:
    return [json.loads(data)["graphrag_fact"] for data in loaded.documents["raw_data"]]


def errors(loaded: Loaded) -> list[tuple[object, ...]]:
    return loaded.errors.select("source", "row_number", "error").rows()


@pytest.mark.parametrize(
    ("row", "error"),
    [
        *(
            ({**RELATIONSHIP, "strength": value}, f"strength is {value!r}, which is not a number above 0")
            for value in ("nan", "7,5", "0")
        ),
        ({**CLAIM, "status": "maybe"}, "status is 'maybe', which is not TRUE, FALSE or SUSPECTED"),
        ({**CLAIM, "start_date": "soon"}, "start_date is 'soon', which is not a date"),
        ({**CLAIM, "end_date": "03/04/1866"}, "end_date is '03/04/1866', which is not a date"),
        ({"title": "Acme", "not": "denied"}, "not is 'denied', which is not yes or no"),
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
