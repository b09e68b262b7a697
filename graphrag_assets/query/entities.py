"""Selects entities for a question: those that it names, and those that match it."""

from collections.abc import Iterable, Sequence

from graphrag_assets.errors import InvalidOption
from graphrag_assets.ids import number_of
from graphrag_assets.query.fetch import entity_rows
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.question import Question
from graphrag_assets.query.retrieval import CANDIDATES, Scores, fuse, search_texts
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.words import title_key

_TEXT_UNITS = 20  # whose entities are candidates
# Entities are chosen mainly by the passages that the graph ranks best; their descriptions count less.
_PASSAGES_WEIGHT, _ENTITY_FUSION_K = 3, 20


def named_entities(reader: Reader, question: Question, scope: Scope = EVERYTHING) -> list[int]:
    """Entities whose title or accepted alias occurs in the question, the rarest first.

    A name inside a longer name of an entity does not count: "Great Eastern" does not name Eastern.
    """
    found = _names_in(reader, question, scope)
    outermost = _outermost(question, {key for key, _ in found})
    return list(dict.fromkeys(number for key, number in found if key in outermost))


def _outermost(question: Question, keys: Iterable[str]) -> set[str]:
    """The keys that occur in the question outside a longer one."""
    spans = {span for key in keys for span in question.title_keys[key]}
    outer = {s for s in spans if not any(o != s and o[0] <= s[0] and s[1] <= o[1] for o in spans)}
    return {key for key in keys if not outer.isdisjoint(question.title_keys[key])}


def named_things(reader: Reader, question: Question, scope: Scope = EVERYTHING) -> dict[int, float]:
    """The things named in the question that passages are about: the hashes of their names, with their rarity.

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
    )
    found = [(keys[written], name, rarity) for written, name, rarity in subjects.iter_rows()]
    called = {key for key, _ in _names_in(reader, question, scope)}
    outermost = _outermost(question, called.union(key for key, _, _ in found))
    return {name: rarity for key, name, rarity in found if key in outermost}


def _names_in(reader: Reader, question: Question, scope: Scope) -> list[tuple[str, int]]:
    """The names of entities in the question; looked up once, then kept with the question."""
    if (reader.path, scope) not in question.names:
        question.names[reader.path, scope] = _called(reader, list(question.title_keys), scope)
    return question.names[reader.path, scope]


def _called(reader: Reader, keys: Sequence[str], scope: Scope) -> list[tuple[str, int]]:
    """The keys that name an entity, with its number, the rarest first. In a scope, only names in its text."""
    names = {number_of(key): key for key in keys}
    hashed = reader.rows(
        f"""
        SELECT name, entity FROM search.entity_names
        WHERE name IN (SELECT unnest($names::UBIGINT[])) AND {scope.allows("entity_text", "entity")}
        ORDER BY frequency, entity, name
        """,
        {"names": list(names)},
    )
    found = [(names[name], entity) for name, entity in hashed.iter_rows()]
    if not scope.limits_text:
        return found
    mentioned = reader.rows(
        f"""
        SELECT DISTINCT title_key, entity_number FROM entity_mentions
        WHERE title_key IN (SELECT unnest($keys::VARCHAR[]))
          AND {scope.allows("text_unit", "text_unit_number")} AND {scope.allows("entity", "entity_number")}
        ORDER BY entity_number, title_key
        """,
        {"keys": keys},
    ).rows()
    return list(dict.fromkeys([*found, *mentioned]))


def entities_for(
    reader: Reader,
    question: Question,
    top_k: int,
    scope: Scope = EVERYTHING,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    passages: Scores | None = None,
    described: Sequence[int] | None = None,
) -> list[int]:
    """Exactly `top_k` entities, fewer only if the scope has fewer.

    First the entities to include, then those that the question names, then the best of two fused rankings: by their
    descriptions, and by the scores of the passages that name them.

    Args:
        include: titles or accepted aliases of entities that come first.
        exclude: titles or aliases of entities that are left out.
        passages: the scores of the text units of the question.
        described: the entities whose descriptions match the question best, if they were searched for.

    Raises:
        QueryError: a name matches no entity in the scope, or is both included and excluded.
    """
    wanted, unwanted = called_entities(reader, include, scope), called_entities(reader, exclude, scope)
    if both := set(wanted) & set(unwanted):
        titles = entity_rows(reader, sorted(both), scope)["title"]
        raise InvalidOption(f"Both included and excluded: {', '.join(titles)}. Choose one.")
    candidates = top_k + CANDIDATES + len(unwanted)
    if described is None:
        described = search_texts(reader, "entity", question, candidates, scope)
    named = named_entities(reader, question, scope)
    in_passages = _entities_in(reader, passages or {}, candidates, scope)
    found = fuse(described, in_passages, weights=(1, _PASSAGES_WEIGHT), k=_ENTITY_FUSION_K)
    place = {number: i for i, number in enumerate(found)}
    named.sort(key=lambda number: place.get(number, len(found)))
    numbers = [n for n in dict.fromkeys([*wanted, *named, *found]) if n not in unwanted][:top_k]
    if len(numbers) < top_k:
        numbers += reader.numbers(
            f"""
            SELECT human_readable_id FROM entities
            WHERE human_readable_id NOT IN (SELECT unnest($numbers::INT[]))
              AND {scope.allows("entity", "human_readable_id")}
            ORDER BY degree DESC, human_readable_id LIMIT $n
            """,
            {"numbers": [*numbers, *unwanted], "n": top_k - len(numbers)},
        )
    return numbers


def _entities_in(reader: Reader, passages: Scores, limit: int, scope: Scope) -> list[int]:
    """The entities that the passages name, by the sum of the passages' scores; common entities count less."""
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
        {
            "units": [number for number, _ in best],
            "scores": [score for _, score in best],
            "limit": limit,
        },
    )


def called_entities(reader: Reader, names: Sequence[str], scope: Scope) -> list[int]:
    """The entities of these titles or accepted aliases, in order.

    Raises:
        QueryError: a name matches no entity.
    """
    if not names:
        return []
    keys = {name: title_key(name) for name in names}
    found = _called(reader, list(keys.values()), scope)
    if unknown := [name for name, key in keys.items() if key not in {key for key, _ in found}]:
        where = "The index" if scope.is_everything else "What the filter allows"
        raise InvalidOption(f"{where} has no entity {', '.join(map(repr, unknown))}. See: SELECT title FROM entities.")
    return list(dict.fromkeys(number for name in names for key, number in found if key == keys[name]))
