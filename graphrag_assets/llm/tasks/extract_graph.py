"""Entities, relationships and claims of a text unit, in one conversation."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import ClassVar

from pydantic import Field

from graphrag_assets.contracts.records import (
    UNKNOWN,
    ClaimRecord,
    EntityRecord,
    Losses,
    RelationshipRecord,
    TextUnit,
    UnitExtraction,
)
from graphrag_assets.llm.model_errors import stops_the_run
from graphrag_assets.llm.model_options import ChatRequest, Completion, Message
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.task import TaskModel, with_rules
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, RecordsForm, Strength, Text
from graphrag_assets.llm.tasks.claims import ExtractedClaim, claim_records
from graphrag_assets.llm.together import Pack, ask_together, numbered, packs_of
from graphrag_assets.text.words import count_tokens, title_key

PROMPT, MORE = "extract_graph", "extract_graph_continue"
"""The templates, and the tasks in the ledger without claims."""
TOGETHER = "extract_graph_together"
"""The template of what is added to the first one for several texts in one request."""
WITH_CLAIMS = "extract_all"
"""The task in the ledger with claims, whose answers are longer."""
ENTITY_TYPES = ("organization", "person", "geo", "event")
MIDDLE_STRENGTH = 5.0  # of a relationship without a stated strength
MAX_TOKENS_TOGETHER = 600
"""Of the texts in one request."""
MIN_TOKENS_GLEANED = 60
"""A shorter text is read once: nothing is missed in it."""
_TOKENS_PER_RECORD = 12
"""A text with a record for so few of its tokens is exhausted: further rounds repeat it, or add trifles."""
_LISTED_LENGTH = 60  # characters of a claim
MAX_NAME_LENGTH = 200  # characters; anything longer is a sentence


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """Options of the extraction.

    `entity_types` are preferred; where none fits, the model names another. `relationship_types` likewise.
    `claim_description`: what counts as a claim; None: claims are not extracted. `max_gleanings`: maximum rounds for
    missed records. `language`: of types and descriptions; None follows the documents.
    """

    entity_types: tuple[str, ...] = ENTITY_TYPES
    claim_description: str | None = None
    max_gleanings: int = 1
    language: str | None = None
    relationship_types: tuple[str, ...] = ()


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
    replaces: Text = ""


class ExtractGraph(RecordsForm):
    entities: Salvaged[ExtractedEntity] = Field(default_factory=list)
    relationships: Salvaged[ExtractedRelationship] = Field(default_factory=list)


class ExtractGraphWithClaims(ExtractGraph):
    claims: Salvaged[ExtractedClaim] = Field(default_factory=list)


class _Numbered(Form):
    number: int


class NumberedGraph(ExtractGraph, _Numbered):
    pass


class NumberedGraphWithClaims(ExtractGraphWithClaims, _Numbered):
    pass


class ExtractGraphs(AnswerForm):
    passages: Salvaged[NumberedGraph]


class ExtractGraphsWithClaims(AnswerForm):
    passages: Salvaged[NumberedGraphWithClaims]


def first_request(
    model: TaskModel,
    text: str,
    options: ExtractionOptions = _DEFAULTS,
    document_date: date | None = None,
    metadata: str = "",
    place: str = "",
) -> ChatRequest:
    """Return the request for what `text` says: its entities and relationships, and its claims if the options want them.

    Relative dates in it refer to `document_date`, if there is one. `place`, a line that says where the text stands, and
    `metadata` stand before it; claims quote `text`.
    """
    shown_text = "\n\n".join(part for part in (f"[{place}]" if place else "", metadata, text) if part)
    messages = _rendered(model, options, text=shown_text, document_date=document_date, alone=True)
    claims = options.claim_description
    task, form = (PROMPT, ExtractGraph) if claims is None else (WITH_CLAIMS, ExtractGraphWithClaims)
    return ChatRequest(task, messages, form, batch=model.batch, unit=model.unit, run_id=model.run_id)


def _rendered(model: TaskModel, options: ExtractionOptions, **values: object) -> tuple[Message, ...]:
    return model.prompts.render(
        PROMPT,
        entity_types=", ".join(options.entity_types),
        relationship_types=", ".join(options.relationship_types),
        claim_description=options.claim_description,
        language=options.language,
        **values,
    )


def units_together(units: Sequence[TextUnit], encoding: str) -> list[Pack[TextUnit]]:
    """Return the text units as they share requests: short ones of a file."""
    sizes = count_tokens([unit.text for unit in units], encoding)
    return packs_of(units, sizes, MAX_TOKENS_TOGETHER, group=lambda unit: unit.source or unit.id)


async def answers_together(
    model: TaskModel, requests: Sequence[ChatRequest], options: ExtractionOptions = _DEFAULTS
) -> list[Completion | None]:
    """Return the answers to the first requests of text units, with the same options; see `ask_together`."""
    of_one = _rendered(model, options, text="", document_date=None, alone=False)

    def rules(count: int) -> Message:
        added = model.prompts.render(TOGETHER, count=count, claim_description=options.claim_description)
        return with_rules(of_one, added)[0]

    def fits(answer: ExtractGraph, place: int) -> bool:
        """Whether an answer can be on a text: it has a word of a name, unless the answer has no names."""
        text, names = requests[place].messages[-1]["content"].casefold(), [e.name for e in answer.entities]
        return not names or any(word in text for name in names for word in name.casefold().split())

    form = ExtractGraphs if options.claim_description is None else ExtractGraphsWithClaims
    joined = numbered(requests, "Passage", form, rules, fits)
    return (await ask_together(model.chat, requests, joined, caller_retries=True))[0]


async def extract_text_unit(
    model: TaskModel,
    text: str,
    first: ChatRequest,
    options: ExtractionOptions = _DEFAULTS,
    answer: Completion | None = None,
) -> UnitExtraction:
    """Return what `text` says by the answer to its `first_request`, which is sent unless `answer` is given, and
    gleanings.

    Raises:
        Exception: what `chat` raises, except for gleanings: these keep the answers before them.
    """
    n_tokens, error_of_gleaning = count_tokens([text])[0], ""
    completions = [answer or await model.chat.complete(first)]
    for _ in range(options.max_gleanings):
        if _is_exhausted([one.parsed for one in completions], n_tokens):
            break
        try:
            completions.append(await model.chat.complete(_gleaning(model, first, completions, options)))
        except Exception as error:
            if stops_the_run(error):
                raise
            error_of_gleaning = f"{type(error).__name__}: {error}"
            break
    answers: list[ExtractGraph] = [completion.parsed for completion in completions]
    stated, n_invented = claim_records(_claims(answers), text)
    graph = graph_records(answers)
    relationships = [_described(one, stated) for one in graph.relationships]
    dropped, guessed = sum(one.dropped_records for one in completions), sum(one.guessed for one in completions)
    return UnitExtraction(
        graph.entities, relationships, stated, Losses(error_of_gleaning, dropped, guessed, invented_claims=n_invented)
    )


def _is_exhausted(answers: Sequence[ExtractGraph], n_tokens: int) -> bool:
    """Whether nothing is left to be found in a text: it is short, has many records, or the last answer had none."""
    n_records = sum(one.n_records for one in answers)
    is_short = n_tokens <= MIN_TOKENS_GLEANED or n_records * _TOKENS_PER_RECORD >= n_tokens
    return is_short or not answers[-1].n_records


def _gleaning(
    model: TaskModel, first: ChatRequest, completions: Sequence[Completion], options: ExtractionOptions
) -> ChatRequest:
    """Return the request for what the answers missed.

    It repeats `first` and appends what the answers list: so a provider has the prompt in its cache up to there, and the
    answers are not paid for again as part of it.
    """
    records = listed([one.parsed for one in completions])
    (wanted,) = model.prompts.render(MORE, listed=records, claim_description=options.claim_description)
    *before, last = first.messages
    more = Message(role=last["role"], content=f"{last['content']}\n\n{wanted['content']}")
    return replace(first, task=f"{first.task}_continue", messages=(*before, more), may_say_nothing=True)


def _described(relationship: RelationshipRecord, claims: Sequence[ClaimRecord]) -> RelationshipRecord:
    """`relationship` with a description: that of a claim on both its ends, where the answer has none of its own.

    Of several claims, that which shares the most words with the relationship's type; it dates the relationship, too.
    """
    ends = {title_key(relationship.source), title_key(relationship.target)}
    said = (
        [] if relationship.description else [c for c in claims if {title_key(c.subject), title_key(c.object)} == ends]
    )
    if not said:
        return relationship
    words = set(relationship.type.lower().split("_"))

    def fits(claim: ClaimRecord) -> tuple[bool, int]:
        return claim.status != "FALSE", len(words & set(f"{claim.type} {claim.description}".lower().split()))

    return replace(relationship, description=max(said, key=fits).description)


def listed(answers: Sequence[ExtractGraph]) -> str:
    """Return the records of the answers by what identifies them: names, and the first words of a claim.

    Descriptions are left out: they are most of an answer, and what was missed is found without them.
    """

    def lines() -> Iterator[str]:
        yield "Entities: " + "; ".join(entity.name for answer in answers for entity in answer.entities)
        related = (record for answer in answers for record in answer.relationships)
        yield "Relationships: " + "; ".join(f"{record.source} {record.type} {record.target}" for record in related)
        for claim in _claims(answers):
            yield f"Claim: {(claim.description or claim.source_text)[:_LISTED_LENGTH]}"

    return "\n".join(lines())


def _claims(answers: Iterable[ExtractGraph]) -> list[ExtractedClaim]:
    return [claim for answer in answers if isinstance(answer, ExtractGraphWithClaims) for claim in answer.claims]


def graph_records(answers: Sequence[ExtractGraph]) -> UnitExtraction:
    """Return the records of all answers, without duplicates and those without usable names.

    Entities are identified by key and type, relationships by both keys and type; the longer description and the greater
    strength are kept. The endpoints of a relationship need not be entities of an answer.
    """
    entities = (record for answer in answers for record in answer.entities)
    relationships = (record for answer in answers for record in answer.relationships)
    return UnitExtraction(_entities(entities), _relationships(relationships))


def _entities(extracted: Iterable[ExtractedEntity]) -> list[EntityRecord]:
    entities: dict[tuple[str, str], EntityRecord] = {}
    for entity in extracted:
        record = EntityRecord(_name(entity.name), _type(entity.type) or UNKNOWN, entity.description)
        key = title_key(record.title)
        if key and len(record.title) <= MAX_NAME_LENGTH:
            first = entities.setdefault((key, record.type), record)
            description = _longer(first.description, record.description)
            entities[key, record.type] = replace(first, description=description)
    return list(entities.values())


def _relationships(extracted: Iterable[ExtractedRelationship]) -> list[RelationshipRecord]:
    records: dict[tuple[str, str, str], RelationshipRecord] = {}
    for relationship in extracted:
        record = RelationshipRecord(
            _name(relationship.source),
            _name(relationship.target),
            relationship.description,
            MIDDLE_STRENGTH if relationship.strength is None else relationship.strength,
            _predicate(relationship.type),
            relationship.replaces,
        )
        endpoints = title_key(record.source), title_key(record.target)
        if not all(endpoints) or max(len(record.source), len(record.target)) > MAX_NAME_LENGTH:
            continue
        if endpoints[0] == endpoints[1]:
            continue
        key = (*endpoints, record.type)
        first = records.setdefault(key, record)
        records[key] = replace(
            first,
            description=_longer(first.description, record.description),
            strength=max(first.strength, record.strength),
            replaces=first.replaces or record.replaces,
        )
    return list(records.values())


def _name(name: str) -> str:
    return " ".join(name.split())


def _type(name: str) -> str:
    return " ".join(name.split()).upper()


def _predicate(name: str) -> str:
    return _type(name).replace(" ", "_")


def _longer(first: str, second: str) -> str:
    return second if len(second) > len(first) else first
