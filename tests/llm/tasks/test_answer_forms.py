"""Answers in the forms that real models give: coerced if that is safe, else rejected."""

import json

import pytest

from graphrag_assets.llm.structured_output import parse, strict_schema
from graphrag_assets.llm.tasks.answer_forms import as_text, on_scale
from graphrag_assets.llm.tasks.extract_graph import ExtractGraph, ExtractGraphWithClaims
from graphrag_assets.llm.tasks.question_forms import DriftAnswer, MapAnswer, Questions
from graphrag_assets.llm.tasks.summarize_descriptions import Summary
from graphrag_assets.llm.tasks.verdicts import CommunityRatings
from graphrag_assets.llm.tasks.write_report import CommunityReport

FORMS = [
    ExtractGraph,
    ExtractGraphWithClaims,
    Summary,
    CommunityReport,
    MapAnswer,
    DriftAnswer,
    Questions,
    CommunityRatings,
]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (7, 7),
        ("7,5", 7.5),
        ("8/10", 8),
        ("4 out of 5", 8),
        ("about 6", 6),
        (0, 1),
        (99, 10),
        (float("inf"), 10),
        (float("nan"), None),
        (True, None),
        ("high", None),
        ("3/0", 3),
    ],
)
def test_a_strength_is_a_number_from_1_to_10(said: object, meant: float | None):
    assert on_scale(said, 1, 10) == meant


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("  Ebenezer\nScrooge ", "Ebenezer\nScrooge"),
        (None, ""),
        (1843, "1843"),
        (["a", None, "b", 3], "a, b, 3"),
        ("zero\x00 and half a pair \ud83d", "zero and half a pair"),
        ("whole 😀", "whole 😀"),
    ],
)
def test_text_fields_are_coerced(said: object, text: str):
    assert as_text(said) == text
    assert as_text(said).encode().decode() == text


def test_renamed_fields_and_wrapped_answers_are_parsed():
    graph = parse(
        '{"result": {"entities": [{"entity_name": "A", "entity_type": "PERSON"}], '
        '"relationships": {"source_entity": "A", "target_entity": "B", "relationship_strength": "3"}}}',
        ExtractGraph,
    ).parsed
    assert graph.entities[0].name == "A"
    assert (graph.relationships[0].target, graph.relationships[0].strength) == ("B", 3)
    drift = parse('{"points": [{"answer": "P", "score": 7}], "follow_up_queries": ["Q?"]}', DriftAnswer).parsed
    assert (drift.points[0].description, drift.follow_ups[0].question) == ("P", "Q?")


@pytest.mark.parametrize("form", FORMS)
def test_the_schema_that_is_sent_is_strict_and_terse(form):
    schema = strict_schema(form)
    objects = [schema, *schema.get("$defs", {}).values()]
    for part in objects:
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
        assert part.keys() <= {"$defs", "type", "properties", "required", "additionalProperties"}
        for field in part["properties"].values():
            assert not {"title", "default", "description"} & field.keys()


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_that_obeys_the_schema_is_valid(form):
    schema = strict_schema(form)
    assert parse(json.dumps(_instance(schema, schema)), form).dropped_records == 0


def _instance(schema, root):
    if "$ref" in schema:
        return _instance(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "anyOf" in schema:
        return _instance(schema["anyOf"][0], root)
    match schema["type"]:
        case "object":
            return {name: _instance(part, root) for name, part in schema["properties"].items()}
        case "array":
            return [_instance(schema["items"], root)]
        case "integer" | "number":
            return 3
    return schema.get("enum", ["text"])[0]


def test_the_case_of_field_names_does_not_matter():
    said = {
        "Entities": [{"Name": "Ada", "TYPE": "PERSON"}],
        "RELATIONSHIPS": [{"Source_Entity": "Ada", "target": "Bo", "Weight": 7}],
    }
    for answer in (said, {"Result": said}):
        found = parse(json.dumps(answer), ExtractGraph).parsed
        assert [(entity.name, entity.type) for entity in found.entities] == [("Ada", "PERSON")]
        (relationship,) = found.relationships
        assert (relationship.source, relationship.target, relationship.strength) == ("Ada", "Bo", 7)
