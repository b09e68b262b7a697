"""Extraction of a text unit: the conversation, its records, and what is kept when parts of it fail."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from graphrag_assets.contracts.records import EntityRecord, Losses, RelationshipRecord, UnitExtraction
from graphrag_assets.llm.model_errors import BudgetExceeded, CircuitOpen, InvalidAnswer, RetriesExhausted
from graphrag_assets.llm.prompts import Prompts, fence
from graphrag_assets.llm.task import TaskModel
from graphrag_assets.llm.tasks.extract_graph import (
    MIDDLE_STRENGTH,
    ExtractGraph,
    ExtractionOptions,
    extract_text_unit,
    first_request,
    graph_records,
)
from tests.llm.tasks.scripted_chat import Said, ScriptedChat

TEXT = "Scrooge was Marley's only partner. Bob Cratchit was his clerk." + " It was cold, bleak, biting weather." * 12
PROMPTS = Prompts()
DEFAULTS = ExtractionOptions()


def entity(name: object, kind: object = "person", description: object = "") -> dict[str, object]:
    return {"name": name, "type": kind, "description": description}


def relation(source: object, target: object, **more: object) -> dict[str, object]:
    return {"source": source, "target": target, **more}


def answer(entities: Sequence[object] = (), relationships: Sequence[object] = ()) -> str:
    return json.dumps({"entities": entities, "relationships": relationships})


FIRST = answer(
    [entity("Scrooge", "person", "A miser."), entity("Marley", "person", "Dead.")],
    [relation("Scrooge", "Marley", type="partner of", description="Partners.", strength=9)],
)
MORE = answer(
    [entity("Bob Cratchit", "person", "A clerk."), entity("SCROOGE", "Person", "A miser with a clerk.")],
    [relation("Bob Cratchit", "Scrooge", type="WORKS_FOR", description="His clerk.", strength=7)],
)


def extract(script: Sequence[Said], options: ExtractionOptions = DEFAULTS) -> tuple[UnitExtraction, ScriptedChat]:
    chat = ScriptedChat(script)
    return extract_with(chat, options), chat


def extract_with(
    chat: ScriptedChat, options: ExtractionOptions = DEFAULTS, text: str = TEXT, **context: Any
) -> UnitExtraction:
    model = TaskModel(chat, PROMPTS, "carol", "u1", "r1")
    return asyncio.run(extract_text_unit(model, text, first_request(model, text, options, **context), options))


def records(*answers: str):
    return graph_records([ExtractGraph.model_validate_json(a) for a in answers])


def test_a_gleaning_repeats_the_request_and_lists_what_was_found_without_descriptions():
    _, chat = extract([FIRST, MORE, answer()], ExtractionOptions(max_gleanings=2))
    assert chat.tasks == ["extract_graph", "extract_graph_continue", "extract_graph_continue"]
    first, second, third = (request.messages for request in chat.requests)
    assert first[1]["content"] == fence(TEXT)
    found = "Entities: Scrooge; Marley\nRelationships: Scrooge partner of Marley"
    (more,) = PROMPTS.render("extract_graph_continue", listed=found, claim_description=None)
    assert second == (first[0], {"role": "user", "content": f"{fence(TEXT)}\n\n{more['content']}"})
    assert fence(found, "listed") in more["content"]
    assert "Entities: Scrooge; Marley; Bob Cratchit; SCROOGE\n" in third[1]["content"]


def test_gleaning_ends_with_the_first_round_that_finds_nothing():
    _, chat = extract([FIRST, answer()], ExtractionOptions(max_gleanings=5))
    assert len(chat.requests) == 2
    _, chat = extract([FIRST], ExtractionOptions(max_gleanings=0))
    assert len(chat.requests) == 1


def test_a_short_text_an_empty_answer_and_an_exhausted_text_are_not_gleaned():
    chat = ScriptedChat([FIRST])
    extract_with(chat, text="Scrooge was Marley's only partner. " * 6)  # 55 tokens
    extract([answer()])
    names = [entity(f"Name {n}") for n in range(10)]  # of a text of 125 tokens
    _, thin = extract([answer(names), answer()])
    _, dense = extract([answer(names, [relation("Name 1", "Name 2")])])
    assert [len(one.requests) for one in (chat, thin, dense)] == [1, 2, 1]


def test_a_claim_on_both_ends_describes_a_relationship_that_has_no_description():
    post = claim("Bob Cratchit", "Bob Cratchit was his clerk.") | {"object": "Scrooge"}
    refuted = post | {"status": "FALSE", "description": "Marley says he was a partner.", "type": "OTHER"}
    bare = relation("Scrooge", "Bob Cratchit", type="EMPLOYS"), relation("Scrooge", "Marley", type="KNOWS")
    said = relation("Bob Cratchit", "Scrooge", type="WORKS_FOR", description="His clerk.")
    unit, _ = extract([with_claims(answer([], [*bare, said]), refuted, post), answer()], CLAIMS)
    assert [(r.type, r.description) for r in unit.relationships] == [
        ("EMPLOYS", "A claim."),
        ("KNOWS", ""),
        ("WORKS_FOR", "His clerk."),
    ]


@pytest.mark.parametrize("failure", [InvalidAnswer("no JSON"), RetriesExhausted("503"), '{"nodes": []}'])
def test_a_failed_gleaning_keeps_the_first_answer_and_is_a_loss(failure: Said):
    unit, _ = extract([FIRST, failure])
    assert [e.title for e in unit.entities] == ["Scrooge", "Marley"]
    assert unit.losses.failed_gleaning.startswith(type(failure).__name__ if isinstance(failure, Exception) else "Inv")


def test_what_the_answers_lack_is_counted_over_all_rounds():
    invented = claim("Scrooge", "Marley was alive, and rode a horse to the sea.")
    first = with_claims(answer([entity("A"), {"type": "X"}]), invented)
    guessed = '{"entities": [{"name" "B"}, 7], "relationships": []}'  # no colon
    unit, _ = extract([first, guessed], CLAIMS)
    assert unit.losses == Losses("", 2, 1, 1)
    assert extract([FIRST, MORE])[0].losses == Losses()


@pytest.mark.parametrize("stop", [BudgetExceeded("spent"), CircuitOpen("wrong key")])
def test_error_that_stops_the_run_is_not_a_failed_gleaning(stop: Exception):
    """Else the unit would count as done and never get its gleaning."""
    with pytest.raises(type(stop)):
        extract([FIRST, stop])


def test_bad_records_are_dropped():
    found = records(
        answer(
            [entity("  "), entity('""'), entity("x" * 201), entity(" A\n B "), {"name": "C"}],
            [
                relation("A B", ""),
                relation("A B", "a b"),
                relation("A B", "C", strength=None),
                relation("A B", "D", strength="8/10", type="part of"),
                relation("A B", "E", strength=0),
            ],
        )
    )
    assert found.entities == [EntityRecord("A B", "PERSON", ""), EntityRecord("C", "UNKNOWN", "")]
    assert found.relationships == [
        RelationshipRecord("A B", "C", "", MIDDLE_STRENGTH, ""),
        RelationshipRecord("A B", "D", "", 8.0, "PART_OF"),
        RelationshipRecord("A B", "E", "", 1.0, ""),
    ]


def test_relationships_merge_by_direction_and_type_with_the_greater_strength():
    found = records(
        answer(
            [],
            [
                relation("A", "B", type="KNOWS", strength=3, description="short"),
                relation("“a”", "b", type="knows", strength=6, description="a longer one"),
                relation("B", "A", type="KNOWS", strength=2),
                relation("A", "B", type="OWES", strength=4),
            ],
        )
    )
    assert found.relationships == [
        RelationshipRecord("A", "B", "a longer one", 6, "KNOWS"),
        RelationshipRecord("B", "A", "", 2, "KNOWS"),
        RelationshipRecord("A", "B", "", 4, "OWES"),
    ]


def claim(subject: str, said: str) -> dict[str, object]:
    return {"subject": subject, "status": "TRUE", "description": "A claim.", "source_text": said}


def with_claims(first: str, *claims: object) -> str:
    return json.dumps({**json.loads(first), "claims": claims})


CLAIMS = ExtractionOptions(claim_description="Posts and partners.")


def test_claims_come_with_the_graph_in_the_same_requests():
    clerk, partner = claim("Bob Cratchit", "Bob Cratchit was his clerk."), claim("Scrooge", "Marley's only partner")
    unit, chat = extract([with_claims(FIRST, clerk), with_claims(answer(), partner, clerk, 7)], CLAIMS)
    assert [c.subject for c in unit.claims] == ["Bob Cratchit", "Scrooge"]
    assert [e.title for e in unit.entities] == ["Scrooge", "Marley"]
    assert chat.tasks == ["extract_all", "extract_all_continue"]
    first, second = (request.messages for request in chat.requests)
    assert "someone may want to check: Posts and partners.\n" in first[0]["content"]
    assert "\nClaim: A claim.\n</listed" in second[1]["content"]


def test_the_place_of_the_text_stands_before_it_in_every_round_and_is_not_quoted():
    chat, place = ScriptedChat([FIRST, MORE]), "A Christmas Carol › Stave One; 1843-12-19"
    extract_with(chat, place=place, metadata="author: Dickens")
    shown = fence(f"[{place}]\n\nauthor: Dickens\n\n{TEXT}")
    assert len(chat.requests) == 2
    assert all(request.messages[-1]["content"].startswith(shown) for request in chat.requests)
