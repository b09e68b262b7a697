"""Selects entities for a question: those that it names, and those that match it."""

from collections.abc import Iterable, Sequence

from graphrag_assets.errors import InvalidOption
from graphrag_assets.ids import number_of
from graphrag_assets.query.fetch import entity_rows
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.question import Question
from graphrag_assets.query.retrieval import CANDIDATES, Scores, fuse
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.words import title_key

_TEXT_UNITS = 20  # whose entities are candidates
# Entities are chosen mainly by the passages that the graph ranks best; their descriptions count less.
_PASSAGES_WEIGHT, _ENTITY_FUSION_K = 3, 20


def named_entities(reader: Reader, question: Question, scope: Scope = EVERYTHING) -> list[int]:
    """Return the entities whose title or accepted alias occurs in the question, the rarest first.

    A name inside a longer name of an entity does not count: "Great Eastern" does not name Eastern.
    """
    names = _names_in(reader, question, scope)
    outermost = _outermost(question, {key for key, _ in names})
    return list(dict.fromkeys(number for key, number in names if key in outermost))


def _outermost(question: Question, keys: Iterable[str]) -> set[str]:
    """Return the keys that occur in the question outside a longer one."""
    spans = {span for key in keys for span in question.title_keys[key]}
    outer = {s for s in spans if not any(o != s and o[0] <= s[0] and s[1] <= o[1] for o in spans)}
    return {key for key in keys if not outer.isdisjoint(question.title_keys[key])}


def named_things(reader: Reader, question: Question, scope: Scope = EVERYTHING) -> dict[int, float]:
    """Return the things named in the question that passages are about: the hashes of their names, with their rarity.

    The rarity of a name (`passage_subjects.rarity`) is that in the whole index, whatever the scope. In a scope, aliases
    count only of entities whose text is all in it.
    """
    keys = {number_of(key): key for key in question.title_keys}
    subjects = reader.rows(
        f"""
        SELECT DISTINCT written, name, rarity FROM (
            SELECT written, written AS name FROM (SELECT unnest($keys::UBIGINT[]) AS written)
            UNION SELECT name, subject FROM search.entity_names
            WHERE name IN (SELECT unnest($keys::UBIGINT[])) AND {scope.allows("entity_text", "entity")}
        ) JOIN search.passage_subjects USING (name)
        WHERE {scope.allows("text_unit", "text_unit")} ORDER BY written, name
        """,
        {"keys": list(keys)},
    ).rows()
    names = {key for key, _ in _names_in(reader, question, scope)}
    outermost = _outermost(question, names.union(keys[written] for written, _, _ in subjects))
    return {name: rarity for written, name, rarity in subjects if keys[written] in outermost}


def _names_in(reader: Reader, question: Question, scope: Scope) -> list[tuple[str, int]]:
    """Return the names of entities in the question; looked up once, then kept with the question."""
    if (reader.path, scope) not in question.names:
        question.names[reader.path, scope] = _entities_called(reader, list(question.title_keys), scope)
    return question.names[reader.path, scope]


def _entities_called(reader: Reader, keys: Sequence[str], scope: Scope) -> list[tuple[str, int]]:
    """Return the keys that name an entity, with its number, the rarest first. In a scope, only names in its text."""
    key_of = {number_of(key): key for key in keys}
    rows = reader.rows(
        f"""
        SELECT name, entity FROM search.entity_names
        WHERE name IN (SELECT unnest($names::UBIGINT[])) AND {scope.allows("entity_text", "entity")}
        ORDER BY frequency, entity, name
        """,
        {"names": list(key_of)},
    ).rows()
    names = [(key_of[name], entity) for name, entity in rows]
    if scope.limits_text:
        names += reader.rows(
            f"""
            SELECT DISTINCT title_key, entity_number FROM entity_mentions
            WHERE title_key IN (SELECT unnest($keys::VARCHAR[]))
              AND {scope.allows("text_unit", "text_unit_number")} AND {scope.allows("entity", "entity_number")}
            ORDER BY entity_number, title_key
            """,
            {"keys": keys},
        ).rows()
    return list(dict.fromkeys(names))


def entities_for(
    reader: Reader,
    question: Question,
    top_k: int,
    scope: Scope = EVERYTHING,
    included: Sequence[int] = (),
    excluded: Sequence[int] = (),
    passages: Scores | None = None,
    described: Sequence[int] = (),
) -> list[int]:
    """Return exactly `top_k` entities, fewer only if the scope has fewer.

    First the included ones, then those that the question names, then the best of two fused rankings: by their
    descriptions, and by the scores of the passages that name them.

    Args:
        passages: the scores of the text units of the question.
        described: the entities whose descriptions match the question best.

    Raises:
        QueryError: an entity is both included and excluded.
    """
    if both := set(included) & set(excluded):
        titles = entity_rows(reader, sorted(both), scope)["title"]
        raise InvalidOption(f"Both included and excluded: {', '.join(titles)}. Choose one.")
    in_passages = _entities_in(reader, passages or {}, CANDIDATES + top_k + len(excluded), scope)
    ranked = fuse(described, in_passages, weights=(1, _PASSAGES_WEIGHT), k=_ENTITY_FUSION_K)
    place = {number: i for i, number in enumerate(ranked)}
    named = sorted(named_entities(reader, question, scope), key=lambda number: place.get(number, len(ranked)))
    numbers = [n for n in dict.fromkeys([*included, *named, *ranked]) if n not in excluded][:top_k]
    if len(numbers) < top_k:
        numbers += reader.numbers(
            f"""
            SELECT human_readable_id FROM entities
            WHERE human_readable_id NOT IN (SELECT unnest($numbers::INT[]))
              AND {scope.allows("entity", "human_readable_id")}
            ORDER BY degree DESC, human_readable_id LIMIT $n
            """,
            {"numbers": [*numbers, *excluded], "n": top_k - len(numbers)},
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


def called_entities(reader: Reader, names: Sequence[str], scope: Scope) -> list[int]:
    """Return the entities of these titles or accepted aliases, in order.

    Raises:
        QueryError: a name matches no entity.
    """
    if not names:
        return []
    key_of = {name: title_key(name) for name in names}
    entities = _entities_called(reader, list(key_of.values()), scope)
    if unknown := [name for name, key in key_of.items() if key not in {key for key, _ in entities}]:
        where = "The index" if scope.is_everything else "What the filter allows"
        raise InvalidOption(f"{where} has no entity {', '.join(map(repr, unknown))}. See: SELECT title FROM entities.")
    return list(dict.fromkeys(number for name in names for key, number in entities if key == key_of[name]))
