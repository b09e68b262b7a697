"""Selects entities for a question: those that it names, and those that match it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from graphrag_assets.ids import number_of
from graphrag_assets.query.question import Question
from graphrag_assets.query.retrieval import CANDIDATES, Scores, fuse
from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader

_TEXT_UNITS = 20  # whose entities are candidates
# Entities are chosen mainly by the passages that the graph ranks best; their descriptions count less.
_PASSAGES_WEIGHT, _ENTITY_FUSION_K = 3, 20


class Names(NamedTuple):
    """The names in a question, by their keys: numbers of entities, the rarest first; things that passages are about.

    A thing is the hash of its name, with its rarity in the whole index (`passage_subjects.rarity`).
    """

    entities: list[tuple[str, int]]
    things: list[tuple[str, int, float]]


def named_entities(reader: Reader, question: Question, scope: Scope = EVERYTHING) -> list[int]:
    """Return the entities whose title or accepted alias occurs in the question, the rarest first.

    A name inside a longer name of an entity does not count: "Great Eastern" does not name Eastern.
    """
    names = _names_in(reader, question, scope).entities
    outermost = _outermost(question, {key for key, _ in names})
    return list(dict.fromkeys(number for key, number in names if key in outermost))


def named_things(reader: Reader, question: Question, scope: Scope = EVERYTHING) -> dict[int, float]:
    """Return the things named in the question that passages are about: the hashes of their names, with their rarity."""
    names = _names_in(reader, question, scope)
    outermost = _outermost(question, {key for key, _ in names.entities} | {key for key, _, _ in names.things})
    return {name: rarity for key, name, rarity in names.things if key in outermost}


def _outermost(question: Question, keys: Iterable[str]) -> set[str]:
    """Return the keys that occur in the question outside a longer one."""
    spans = {span for key in keys for span in question.title_keys[key]}
    outer = {s for s in spans if not any(o != s and o[0] <= s[0] and s[1] <= o[1] for o in spans)}
    return {key for key in keys if not outer.isdisjoint(question.title_keys[key])}


def _names_in(reader: Reader, question: Question, scope: Scope) -> Names:
    """Return the names in the question; looked up once, then kept with the question.

    In a scope, only names in its text, and aliases of entities wholly in it.
    """
    if stored := question.names.get((reader.path, scope)):
        names: Names = stored
        return names
    key_of = {number_of(key): key for key in question.title_keys}
    rows = reader.rows(
        f"""
        WITH written AS (SELECT unnest($names::UBIGINT[]) AS name),
        called AS (
            FROM search.entity_names WHERE name IN (FROM written) AND {scope.allows("entity_text", "entity")}
        ), subjects AS (
            SELECT name AS written, name FROM written UNION SELECT name, subject FROM called
        )
        SELECT written, number, rarity FROM (
            SELECT name AS written, entity::UBIGINT AS number, NULL AS rarity, frequency, entity AS place FROM called
            UNION ALL
            SELECT DISTINCT written, name, rarity, NULL, written
            FROM subjects JOIN search.passage_subjects USING (name) WHERE {scope.allows("text_unit", "text_unit")}
        ) ORDER BY rarity IS NOT NULL, frequency, place, written, number
        """,
        {"names": list(key_of)},
    ).rows()
    entities = [(key_of[written], number) for written, number, rarity in rows if rarity is None]
    if scope.limits_text:
        entities += reader.rows(
            f"""
            SELECT DISTINCT title_key, entity_number FROM entity_mentions
            WHERE title_key IN (SELECT unnest($keys::VARCHAR[]))
              AND {scope.allows("text_unit", "text_unit_number")} AND {scope.allows("entity", "entity_number")}
            ORDER BY entity_number, title_key
            """,
            {"keys": list(question.title_keys)},
        ).rows()
    things = [(key_of[written], number, rarity) for written, number, rarity in rows if rarity is not None]
    names = question.names[reader.path, scope] = Names(list(dict.fromkeys(entities)), things)
    return names


def entities_for(
    reader: Reader,
    question: Question,
    top_k: int,
    scope: Scope = EVERYTHING,
    passages: Scores | None = None,
    described: Sequence[int] = (),
) -> list[int]:
    """Return exactly `top_k` entities, fewer only if the scope has fewer.

    First those that the question names, then the best of two fused rankings: by their descriptions, and by the scores
    of the passages that name them.

    Args:
        passages: the scores of the text units of the question.
        described: the entities whose descriptions match the question best.
    """
    in_passages = _entities_in(reader, passages or {}, CANDIDATES + top_k, scope)
    ranked = fuse(described, in_passages, weights=(1, _PASSAGES_WEIGHT), k=_ENTITY_FUSION_K)
    place = {number: i for i, number in enumerate(ranked)}
    named = sorted(named_entities(reader, question, scope), key=lambda number: place.get(number, len(ranked)))
    numbers = list(dict.fromkeys([*named, *ranked]))[:top_k]
    if len(numbers) < top_k:
        numbers += reader.numbers(
            f"""
            SELECT human_readable_id FROM entities
            WHERE human_readable_id NOT IN (SELECT unnest($numbers::INT[]))
              AND {scope.allows("entity", "human_readable_id")}
            ORDER BY degree DESC, human_readable_id LIMIT $n
            """,
            {"numbers": numbers, "n": top_k - len(numbers)},
        )
    return numbers


def _entities_in(reader: Reader, passages: Scores, limit: int, scope: Scope) -> list[int]:
    """Return the entities that the passages name, by the sum of the passages' scores; common ones count less."""
    best = list(passages.items())[:_TEXT_UNITS]
    return reader.numbers(
        f"""
        SELECT t.entity
        FROM search.entity_text_units t JOIN entities e ON e.human_readable_id = t.entity JOIN (
            SELECT unnest($units::INT[]) AS text_unit, unnest($scores::DOUBLE[]) AS score
        ) u USING (text_unit)
        WHERE {scope.allows("entity", "t.entity")}
        GROUP BY t.entity
        ORDER BY round(sum(u.score) / log2(1 + any_value(e.frequency)), 12) DESC, t.entity LIMIT $limit
        """,
        {"units": [number for number, _ in best], "scores": [score for _, score in best], "limit": limit},
    )
