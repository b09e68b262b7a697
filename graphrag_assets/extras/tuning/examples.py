"""The worked examples of a prompt profile, chosen from extractions, and measures of extractions without a reference."""

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from graphrag_assets.contracts.prompt_profile import WorkedExample
from graphrag_assets.contracts.records import TextUnit, UnitExtraction
from graphrag_assets.pipeline.grounding import stands_in
from graphrag_assets.text.words import count_tokens, sentences, title_key

PASSAGE_TOKENS = 60
EXAMPLES_TOKENS = 1500
"""So many tokens all examples may have, with their answers: every request of the extraction repeats them."""
_FORM_TOKENS = 50  # of an example's fence and JSON
MIN_EXAMPLES = 2
"""So many are kept in any case."""
CANDIDATES = 3
"""So many times as many passages are extracted as examples are wanted."""

Key = TypeVar("Key", bound=Hashable)
Readings = Mapping[str, UnitExtraction]
"""Extractions by the id of the text unit."""


def passages(
    units: Iterable[TextUnit], readings: Readings, listed: Callable[[str], str], n_examples: int, encoding: str
) -> list[TextUnit]:
    """Passages of the text units to make examples from: of those that together have all types, and one without records.

    A passage is the run of whole sentences, within `PASSAGE_TOKENS`, that has the most names of the reading.
    """
    read = [unit for unit in units if unit.id in readings]
    types = {unit.id: {listed(e.type) for e in readings[unit.id].entities} - {""} for unit in read}
    by_id = {unit.id: unit for unit in read}
    sizes = {unit.id: len(readings[unit.id].entities) for unit in read if types[unit.id]}
    chosen = covering({key: types[key] for key in sizes}, sizes, CANDIDATES * n_examples)
    empty = [unit.id for unit in read if not readings[unit.id].entities][:1]
    return [
        by_id[key]._replace(text=_passage(by_id[key], [e.title for e in readings[key].entities], encoding))
        for key in (*chosen, *empty)
    ]


def _passage(unit: TextUnit, names: Sequence[str], encoding: str) -> str:
    spans = sentences(unit.text, unit.language)
    tokens = count_tokens([unit.text[span.start : span.end] for span in spans], encoding)
    best, most = unit.text, -1
    for first in range(len(spans)):
        last, held = first, tokens[first]
        while last + 1 < len(spans) and held + tokens[last + 1] <= PASSAGE_TOKENS:
            last += 1
            held += tokens[last]
        text = unit.text[spans[first].start : spans[last].end].strip()
        n = sum(stands_in(name, text) for name in names)
        if n > most:
            best, most = text, n
    return best


def covering(types: Mapping[Key, set[str]], scores: Mapping[Key, float], n: int) -> list[Key]:
    """At most `n` keys, each next one with the most types that those before lack, then the highest score."""
    chosen, lacking, left = list[Key](), set[str]().union(*types.values()), dict(types)
    while left and len(chosen) < n:
        key = min(left, key=lambda one: (-len(left[one] & lacking), -scores[one], str(one)))
        chosen.append(key)
        lacking -= left.pop(key)
    return chosen


def examples_from(
    units: Iterable[TextUnit], first: Readings, second: Readings, listed: Callable[[str], str], n: int
) -> tuple[WorkedExample, ...]:
    """At most `n` examples that together show all types, and one with nothing to extract if there is one.

    They have `EXAMPLES_TOKENS` tokens at most, unless they are two. An example has the records that both readings
    found, with the same types, and whose names stand in its text.
    """
    found: dict[WorkedExample, float] = {}
    nothing: list[WorkedExample] = []
    for unit in units:
        if unit.id not in first or unit.id not in second:
            continue
        example, doubtful = agreed(unit, first[unit.id], second[unit.id], listed)
        if example.entities:
            found[example] = (len(example.entities) + len(example.relationships) - doubtful) / _tokens(example)
        elif not doubtful:
            nothing.append(example)
    types = {example: {entity.type for entity in example.entities} for example in found}
    return (*_within(covering(types, found, n)), *nothing[:1])


def _within(examples: Sequence[WorkedExample]) -> Sequence[WorkedExample]:
    """The first of the examples that have `EXAMPLES_TOKENS` tokens together."""
    sums = itertools.accumulate(map(_tokens, examples))
    return examples[: max(MIN_EXAMPLES, sum(tokens <= EXAMPLES_TOKENS for tokens in sums))]


def _tokens(example: WorkedExample) -> int:
    """About so many tokens the example has in a prompt."""
    entities = (f"{entity.title} {entity.type} {entity.description}" for entity in example.entities)
    relationships = (f"{r.source} {r.target} {r.type} {r.description}" for r in example.relationships)
    return _FORM_TOKENS + sum(count_tokens([example.text, *entities, *relationships]))


def agreed(
    unit: TextUnit, first: UnitExtraction, second: UnitExtraction, listed: Callable[[str], str]
) -> tuple[WorkedExample, int]:
    """What both readings found in the text, and how many of the names in the text are only in one or have no type."""
    types = {(title_key(e.title), listed(e.type)) for e in second.entities}
    entities = tuple(
        replace(entity, type=listed(entity.type))
        for entity in first.entities
        if listed(entity.type)
        and (title_key(entity.title), listed(entity.type)) in types
        and stands_in(entity.title, unit.text)
    )
    keys = {title_key(entity.title) for entity in entities}
    pairs = {(title_key(r.source), title_key(r.target)) for r in second.relationships}
    relationships = tuple(
        relationship
        for relationship in first.relationships
        if relationship.type
        and (ends := (title_key(relationship.source), title_key(relationship.target))) in pairs
        and keys >= set(ends)
    )
    named = {title_key(e.title) for e in (*first.entities, *second.entities) if stands_in(e.title, unit.text)}
    return WorkedExample(unit.id, unit.text, entities, relationships), len(named - keys)


class Measures(NamedTuple):
    """Measures of extracting text units twice: per text unit, and as shares from 0 to 1.

    Attributes:
        entities, relationships, tokens: per text unit; tokens of requests and answers of one reading.
        literal: share of names that stand literally in their text.
        other: share of entities whose type is not one of those listed in the prompt.
        agreement: F1 of the records of the two readings.
    """

    text_units: int
    entities: float
    relationships: float
    literal: float
    other: float
    agreement: float
    tokens: float


def measured(
    units: Sequence[TextUnit], first: Readings, second: Readings, listed: Callable[[str], str], tokens: int
) -> Measures:
    """Measures of the text units that both readings have."""
    read = [unit for unit in units if unit.id in first and unit.id in second]
    entities = [(unit, entity) for unit in read for entity in first[unit.id].entities]
    both = [(_records(first[unit.id]), _records(second[unit.id])) for unit in read]
    n_both, n_all = sum(len(a & b) for a, b in both), sum(len(a) + len(b) for a, b in both)
    return Measures(
        len(read),
        _share(len(entities), len(read)),
        _share(sum(len(first[unit.id].relationships) for unit in read), len(read)),
        _share(sum(stands_in(e.title, f"{unit.metadata}\n{unit.text}") for unit, e in entities), len(entities)),
        _share(sum(not listed(entity.type) for _, entity in entities), len(entities)),
        _share(2 * n_both, n_all),
        _share(tokens, len(read)),
    )


def _records(found: UnitExtraction) -> set[tuple[str, ...]]:
    """What identifies the records of an extraction."""
    return {(title_key(e.title), e.type) for e in found.entities} | {
        ("", title_key(r.source), title_key(r.target)) for r in found.relationships
    }


def _share(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0
