"""Entities, relationships and claims of a text unit, in one conversation."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import ClassVar

from pydantic import Field

from graphrag_assets.llm.model_options import Message
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import Form, RecordsForm, Strength, Text
from graphrag_assets.llm.tasks.chat_protocol import NOWHERE, Chat, Origin
from graphrag_assets.llm.tasks.claims import ExtractedClaim, claim_records
from graphrag_assets.llm.tasks.gleaning import request_rounds
from graphrag_assets.records import EntityRecord, RelationshipRecord, UnitExtraction
from graphrag_assets.text import title_key

PROMPT, MORE = "extract_graph", "extract_graph_continue"
"""The templates, and the tasks in the ledger without claims."""
DATE = "extract_graph_date"
"""The template of what is added for documents with a date."""
WITH_CLAIMS = "extract_all"
"""The task in the ledger with claims, whose answers are longer."""
ENTITY_TYPES = ("organization", "person", "geo", "event")
UNKNOWN = "UNKNOWN"
MIDDLE_STRENGTH = 5.0  # of a relationship without a stated strength
_LISTED_LENGTH = 60  # characters of a claim
MAX_NAME_LENGTH = 200  # characters; anything longer is a sentence


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """Options of the extraction.

    `other_types`: allow types beyond `entity_types`; otherwise entities of other types are dropped together with
    their relationships. `claim_description`: what counts as a claim; None: claims are not extracted. `max_gleanings`:
    maximum rounds for missed records. `language`: of types and descriptions; None follows the documents.
    """

    entity_types: tuple[str, ...] = ENTITY_TYPES
    other_types: bool = True
    claim_description: str | None = None
    max_gleanings: int = 1
    language: str | None = None


_DEFAULTS = ExtractionOptions()


class ExtractedEntity(Form):
    other_names: ClassVar = {"entity_name": "name", "entity": "name", "title": "name", "entity_type": "type"}
    name: Text
    type: Text = ""
    description: Text = ""


class ExtractedRelationship(Form):
    other_names: ClassVar = {
        "source_entity": "source",
        "target_entity": "target",
        "relationship_type": "type",
        "relationship_description": "description",
        "relationship_strength": "strength",
        "weight": "strength",
    }
    source: Text
    target: Text
    type: Text = ""
    description: Text = ""
    strength: Strength = None


class ExtractGraph(RecordsForm):
    entities: Salvaged[ExtractedEntity] = Field(default_factory=list)
    relationships: Salvaged[ExtractedRelationship] = Field(default_factory=list)


class ExtractGraphWithClaims(ExtractGraph):
    claims: Salvaged[ExtractedClaim] = Field(default_factory=list)


async def extract_text_unit(
    chat: Chat,
    prompts: Prompts,
    text: str,
    options: ExtractionOptions = _DEFAULTS,
    origin: Origin = NOWHERE,
    document_date: date | None = None,
    metadata: str = "",
) -> UnitExtraction:
    """What `text` says: its entities and relationships, and its claims if the options want them.

    Relative dates in it refer to `document_date`, if there is one. `metadata` stands before it; claims quote `text`.

    Raises:
        Exception: what `chat` raises, except for gleanings: these keep the answers before them.
    """
    claims = options.claim_description
    messages = prompts.render(
        PROMPT,
        text=f"{metadata}\n\n{text}" if metadata else text,
        entity_types=", ".join(options.entity_types),
        other_types=options.other_types,
        claim_description=claims,
        language=options.language,
    )
    if document_date:
        (dated,) = prompts.render(DATE, document_date=document_date)
        *before, last = messages
        messages = (*before, Message(role=last["role"], content=f"{last['content']}\n\n{dated['content']}"))

    def asking_for_more(answers: Sequence[ExtractGraph]) -> str:
        (message,) = prompts.render(MORE, listed=listed(answers), claim_description=claims)
        return message["content"]

    task, form = (PROMPT, ExtractGraph) if claims is None else (WITH_CLAIMS, ExtractGraphWithClaims)
    first = origin.request(task, messages, form)
    answers, losses = await request_rounds(chat, first, form, options.max_gleanings, asking_for_more)
    stated, n_invented = claim_records(_claims(answers), text)
    losses = replace(losses, invented_claims=n_invented)
    return replace(graph_records(answers, options), claims=stated, losses=losses)


def listed(answers: Sequence[ExtractGraph]) -> str:
    """The records of the answers by what identifies them: names, and the first of the words that carry a claim.

    Descriptions are left out: they are most of an answer, and what was missed is found without them.
    """

    def lines() -> Iterator[str]:
        yield "Entities: " + "; ".join(entity.name for answer in answers for entity in answer.entities)
        related = (record for answer in answers for record in answer.relationships)
        yield "Relationships: " + "; ".join(f"{record.source} {record.type} {record.target}" for record in related)
        for claim in _claims(answers):
            yield f"Claim: {(claim.source_text or claim.description)[:_LISTED_LENGTH]}"

    return "\n".join(lines())


def _claims(answers: Iterable[ExtractGraph]) -> list[ExtractedClaim]:
    return [claim for answer in answers if isinstance(answer, ExtractGraphWithClaims) for claim in answer.claims]


def graph_records(answers: Sequence[ExtractGraph], options: ExtractionOptions = _DEFAULTS) -> UnitExtraction:
    """The records of all answers, without duplicates; those without usable names are dropped.

    Entities are identified by key and type, relationships by both keys and type; the longer description and the
    greater strength are kept. The endpoints of a relationship need not be entities of an answer.
    """
    closed = set() if options.other_types else {_type(name) for name in options.entity_types} | {UNKNOWN}
    entities: dict[tuple[str, str], EntityRecord] = {}
    unwanted: set[str] = set()
    for found in (entity for answer in answers for entity in answer.entities):
        record = EntityRecord(_name(found.name), _type(found.type) or UNKNOWN, found.description)
        key = title_key(record.title)
        if not key or len(record.title) > MAX_NAME_LENGTH:
            continue
        if closed and record.type not in closed:
            unwanted.add(key)
        else:
            known = entities.setdefault((key, record.type), record)
            entities[key, record.type] = replace(known, description=_longer(known.description, record.description))
    unwanted -= {key for key, _ in entities}
    relationships = _relationships((r for answer in answers for r in answer.relationships), unwanted)
    return UnitExtraction(list(entities.values()), relationships)


def _relationships(found: Iterable[ExtractedRelationship], unwanted: set[str]) -> list[RelationshipRecord]:
    records: dict[tuple[str, str, str], RelationshipRecord] = {}
    for relationship in found:
        record = RelationshipRecord(
            _name(relationship.source),
            _name(relationship.target),
            relationship.description,
            MIDDLE_STRENGTH if relationship.strength is None else relationship.strength,
            _type(relationship.type).replace(" ", "_"),
        )
        endpoints = title_key(record.source), title_key(record.target)
        if not all(endpoints) or max(len(record.source), len(record.target)) > MAX_NAME_LENGTH:
            continue
        if endpoints[0] == endpoints[1] or unwanted & set(endpoints):
            continue
        key = (*endpoints, record.type)
        known = records.setdefault(key, record)
        records[key] = replace(
            known,
            description=_longer(known.description, record.description),
            strength=max(known.strength, record.strength),
        )
    return list(records.values())


def _name(name: str) -> str:
    return " ".join(name.split())


def _type(name: str) -> str:
    return " ".join(name.split()).upper()


def _longer(first: str, second: str) -> str:
    return second if len(second) > len(first) else first
