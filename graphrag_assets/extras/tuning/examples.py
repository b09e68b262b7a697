"""The worked examples of a prompt profile: passages of text units, and what the chat model extracts from them."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from graphrag_assets.contracts.prompt_profile import WorkedExample
from graphrag_assets.contracts.records import TextUnit, UnitExtraction
from graphrag_assets.pipeline.extraction import stands_in
from graphrag_assets.text.words import count_tokens, sentences, title_key

PASSAGE_TOKENS = 60
CANDIDATES = 3
"""So many times as many passages are extracted as examples are wanted."""

Key = TypeVar("Key", bound=Hashable)
Readings = Mapping[str, UnitExtraction]
"""Extractions by the id of the text unit."""


def passages(
    units: Iterable[TextUnit], readings: Readings, type_on_list: Callable[[str], str], n_examples: int, encoding: str
) -> list[TextUnit]:
    """Passages of the text units to make examples from: of those that together have all types, and one without records.

    A passage is the run of whole sentences, within `PASSAGE_TOKENS`, that has the most names of the reading.
    """
    by_id = {unit.id: unit for unit in units if unit.id in readings}
    types = {key: {type_on_list(e.type) for e in readings[key].entities} - {""} for key in by_id}
    sizes = {key: len(readings[key].entities) for key in by_id if types[key]}
    chosen = covering({key: types[key] for key in sizes}, sizes, CANDIDATES * n_examples)
    empty = [key for key in by_id if not readings[key].entities][:1]
    return [
        by_id[key]._replace(text=_passage(by_id[key], [e.title for e in readings[key].entities], encoding))
        for key in (*chosen, *empty)
    ]


def _passage(unit: TextUnit, names: Sequence[str], encoding: str) -> str:
    spans = sentences(unit.text)
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
    units: Iterable[TextUnit], readings: Readings, type_on_list: Callable[[str], str], n: int
) -> tuple[WorkedExample, ...]:
    """At most `n` examples that together show all types, and one with nothing to extract if there is one.

    An example has the records of listed types whose names stand in its text.
    """
    examples = [_example(unit, readings[unit.id], type_on_list) for unit in units if unit.id in readings]
    nothing = [example for example in examples if not readings[example.text_unit_id].entities]
    scores = {example: len(example.entities) + len(example.relationships) for example in examples if example.entities}
    types = {example: {entity.type for entity in example.entities} for example in scores}
    return (*covering(types, scores, n), *nothing[:1])


def _example(unit: TextUnit, reading: UnitExtraction, type_on_list: Callable[[str], str]) -> WorkedExample:
    entities = tuple(
        replace(entity, type=type_)
        for entity in reading.entities
        if (type_ := type_on_list(entity.type)) and stands_in(entity.title, unit.text)
    )
    keys = {title_key(entity.title) for entity in entities}
    relationships = tuple(
        r for r in reading.relationships if r.type and keys >= {title_key(r.source), title_key(r.target)}
    )
    return WorkedExample(unit.id, unit.text, entities, relationships)
