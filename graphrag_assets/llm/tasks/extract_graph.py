"""Entities, relationships and claims of a text unit, in one conversation."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date
from typing import ClassVar, NamedTuple

from pydantic import Field

from graphrag_assets.contracts.listed_types import PATTERN, by_words, is_allowed, without_ends, words
from graphrag_assets.contracts.records import UNKNOWN, EntityRecord, Losses, RelationshipRecord, UnitExtraction
from graphrag_assets.llm.model_options import ChatRequest, Message
from graphrag_assets.llm.prompts import Prompts, with_rules
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import Form, RecordsForm, Strength, Text
from graphrag_assets.llm.tasks.chat_protocol import NOWHERE, Chat, Origin, stops_the_run
from graphrag_assets.llm.tasks.claims import ExtractedClaim, claim_records
from graphrag_assets.text.words import title_key

PROMPT, MORE = "extract_graph", "extract_graph_continue"
"""The templates, and the tasks in the ledger without claims."""
TYPES = "extract_graph_types"
"""The template of what is added to the first one for wanted relationship types and closed lists of types."""
DATE = "extract_graph_date"
"""The template of what is added for documents with a date."""
WITH_CLAIMS = "extract_all"
"""The task in the ledger with claims, whose answers are longer."""
ENTITY_TYPES = ("organization", "person", "geo", "event")
MIDDLE_STRENGTH = 5.0  # of a relationship without a stated strength
_LISTED_LENGTH = 60  # characters of a claim
MAX_NAME_LENGTH = 200  # characters; anything longer is a sentence


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """Options of the extraction.

    `other_types`: allow types beyond `entity_types`; otherwise entities of other types are dropped together with
    their relationships and claims. `relationship_types` are preferred; without `other_relationship_types`,
    relationships of other types are dropped. A type of a closed list is recognized by its `words`; records without
    a type are kept. `claim_description`: what counts as a claim; None: claims are not extracted. `max_gleanings`:
    maximum rounds for missed records. `language`: of types and descriptions; None follows the documents.
    """

    entity_types: tuple[str, ...] = ENTITY_TYPES
    other_types: bool = True
    claim_description: str | None = None
    max_gleanings: int = 1
    language: str | None = None
    # Not in the text of the options, which is part of the fingerprints of indexes that do not use them.
    relationship_types: tuple[str, ...] = field(default=(), repr=False)
    other_relationship_types: bool = field(default=True, repr=False)

    @property
    def adds_types(self) -> bool:
        """Whether the template `TYPES` is used."""
        return bool(self.relationship_types) or not self.other_types

    @property
    def relationship_rules(self) -> tuple[object, ...]:
        """What is said about types of relationships; nothing by default."""
        return (self.relationship_types, self.other_relationship_types) if self.relationship_types else ()


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
    place: str = "",
) -> UnitExtraction:
    """What `text` says: its entities and relationships, and its claims if the options want them.

    Relative dates in it refer to `document_date`, if there is one. `place`, a line that says where the text stands, and
    `metadata` stand before it; claims quote `text`.

    Raises:
        Exception: what `chat` raises, except for gleanings: these keep the answers before them.
    """
    claims = options.claim_description
    messages = prompts.render(
        PROMPT,
        text="\n\n".join(part for part in (f"[{place}]" if place else "", metadata, text) if part),
        entity_types=", ".join(options.entity_types),
        other_types=options.other_types,
        claim_description=claims,
        language=options.language,
    )
    if options.adds_types:
        messages = _with_types(messages, prompts, options)
    if document_date:
        (dated,) = prompts.render(DATE, document_date=document_date)
        *before, last = messages
        messages = (*before, Message(role=last["role"], content=f"{last['content']}\n\n{dated['content']}"))

    def asking_for_more(answers: Sequence[ExtractGraph]) -> str:
        (message,) = prompts.render(MORE, listed=listed(answers), claim_description=claims)
        return message["content"]

    task, form = (PROMPT, ExtractGraph) if claims is None else (WITH_CLAIMS, ExtractGraphWithClaims)
    first = origin.request(task, messages, form)
    answers, losses = await request_rounds(chat, first, options.max_gleanings, asking_for_more)
    found, unwanted = graph_records(answers, options)
    wanted = (claim for claim in _claims(answers) if title_key(_name(claim.subject)) not in unwanted)
    stated, n_invented = claim_records(wanted, text)
    losses = replace(
        losses,
        invented_claims=n_invented,
        unlisted_entities=found.losses.unlisted_entities,
        unlisted_relationships=found.losses.unlisted_relationships,
    )
    return replace(found, claims=stated, losses=losses)


async def request_rounds(
    chat: Chat, first: ChatRequest, max_gleanings: int, asking_for_more: Callable[[Sequence[ExtractGraph]], str]
) -> tuple[list[ExtractGraph], Losses]:
    """The answer to `first`, then up to `max_gleanings` answers with missed records, and what they lack.

    A gleaning repeats `first` and appends what `asking_for_more` says to the answers so far. So a provider has the
    prompt in its cache up to there, and the answers are not paid for again as part of it.

    Ends with the first round that finds nothing more, or says so in words. A failed gleaning keeps the answers before
    it, and its error is in the losses; only errors that stop the whole run, such as an exhausted budget, are raised.
    """
    completions = [await chat.complete(first)]
    answers: list[ExtractGraph] = [completions[0].parsed]
    *before, last = first.messages
    error_of_gleaning = ""
    for _ in range(max_gleanings):
        more = Message(role=last["role"], content=f"{last['content']}\n\n{asking_for_more(answers)}")
        request = replace(first, task=f"{first.task}_continue", messages=(*before, more), may_say_nothing=True)
        try:
            completions.append(await chat.complete(request))
        except Exception as error:
            if stops_the_run(error):
                raise
            error_of_gleaning = f"{type(error).__name__}: {error}"
            break
        answer = completions[-1].parsed
        if answer.empty:
            break
        answers.append(answer)
    dropped = sum(completion.dropped_records for completion in completions)
    guessed = sum(completion.guessed for completion in completions)
    return answers, Losses(error_of_gleaning, dropped, guessed)


def _with_types(messages: Sequence[Message], prompts: Prompts, options: ExtractionOptions) -> tuple[Message, ...]:
    """`messages` with the template `TYPES`."""
    types = prompts.render(
        TYPES,
        relationship_types=", ".join(options.relationship_types),
        strict_relationship_types=not options.other_relationship_types,
        strict_entity_types=not options.other_types,
    )
    return with_rules(messages, types)


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


def graph_records(
    answers: Sequence[ExtractGraph], options: ExtractionOptions = _DEFAULTS
) -> tuple[UnitExtraction, Set[str]]:
    """The records of all answers, without duplicates, and the keys of entities that a closed list of types leaves out.

    Those without usable names are dropped. Entities are identified by key and type, relationships by both keys and
    type; the longer description and the greater strength are kept. The endpoints of a relationship need not be entities
    of an answer.
    """
    entities = _entities(answers, options)
    found = (record for answer in answers for record in answer.relationships)
    relationships, unlisted = _relationships(found, entities.unwanted, options)
    relationships, off_pattern = _by_patterns(relationships, entities.records, options)
    losses = Losses(unlisted_entities=entities.unlisted, unlisted_relationships=unlisted, off_pattern=off_pattern)
    return UnitExtraction(entities.records, relationships, losses=losses), entities.unwanted


class _Entities(NamedTuple):
    """The entities of all answers. `unlisted`: types that a closed list lacks, once per entity; `unwanted`: keys."""

    records: list[EntityRecord]
    unlisted: tuple[str, ...]
    unwanted: Set[str]


def _entities(answers: Iterable[ExtractGraph], options: ExtractionOptions) -> _Entities:
    closed = {} if options.other_types else by_words([*options.entity_types, UNKNOWN])
    entities: dict[tuple[str, str], EntityRecord] = {}
    unlisted: set[tuple[str, str]] = set()
    for found in (entity for answer in answers for entity in answer.entities):
        given = _type(found.type) or UNKNOWN
        type_ = _type(closed.get(words(found.type.strip() or UNKNOWN), "")) if closed else given
        record = EntityRecord(_name(found.name), type_, found.description)
        key = title_key(record.title)
        if not key or len(record.title) > MAX_NAME_LENGTH:
            continue
        if not type_:
            unlisted.add((key, given))
        else:
            known = entities.setdefault((key, type_), record)
            entities[key, type_] = replace(known, description=_longer(known.description, record.description))
    wanted = {key for key, _ in entities}
    dropped = sorted((type_, key) for key, type_ in unlisted)
    return _Entities(
        list(entities.values()), tuple(type_ for type_, _ in dropped), {key for _, key in dropped} - wanted
    )


def _relationships(
    found: Iterable[ExtractedRelationship], unwanted: Set[str], options: ExtractionOptions
) -> tuple[list[RelationshipRecord], tuple[str, ...]]:
    """The relationships, and the types that are not in the closed list, once per relationship."""
    closed = {} if options.other_relationship_types else by_words(without_ends(options.relationship_types))
    records: dict[tuple[str, str, str], RelationshipRecord] = {}
    unlisted: set[tuple[str, str, str]] = set()
    for relationship in found:
        record = RelationshipRecord(
            _name(relationship.source),
            _name(relationship.target),
            relationship.description,
            MIDDLE_STRENGTH if relationship.strength is None else relationship.strength,
            _predicate(closed.get(words(relationship.type), "") if closed else relationship.type),
        )
        endpoints = title_key(record.source), title_key(record.target)
        if not all(endpoints) or max(len(record.source), len(record.target)) > MAX_NAME_LENGTH:
            continue
        if endpoints[0] == endpoints[1] or unwanted & set(endpoints):
            continue
        if closed and relationship.type.strip() and not record.type:
            unlisted.add((_predicate(relationship.type), *endpoints))
            continue
        key = (*endpoints, record.type)
        known = records.setdefault(key, record)
        records[key] = replace(
            known,
            description=_longer(known.description, record.description),
            strength=max(known.strength, record.strength),
        )
    return list(records.values()), tuple(type_ for type_, *_ in sorted(unlisted))


def _by_patterns(
    relationships: list[RelationshipRecord], entities: Iterable[EntityRecord], options: ExtractionOptions
) -> tuple[list[RelationshipRecord], tuple[str, ...]]:
    """The relationships, without those that break a pattern if types are closed; and those that break one."""
    if not any(PATTERN in name for name in options.relationship_types):
        return relationships, ()
    types = {title_key(one.title): "" if one.type == UNKNOWN else one.type for one in entities}
    broken = {}
    for one in relationships:
        source, target = (types.get(title_key(end), "") for end in (one.source, one.target))
        if not is_allowed(source, one.type, target, options.relationship_types):
            broken[one] = f"{source} {PATTERN} {one.type} {PATTERN} {target}"
    kept = relationships if options.other_relationship_types else [one for one in relationships if one not in broken]
    return kept, tuple(sorted(broken.values()))


def _name(name: str) -> str:
    return " ".join(name.split())


def _type(name: str) -> str:
    return " ".join(name.split()).upper()


def _predicate(name: str) -> str:
    return _type(name).replace(" ", "_")


def _longer(first: str, second: str) -> str:
    return second if len(second) > len(first) else first
