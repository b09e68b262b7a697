"""Finding rows by what they say: BM25 and vectors in SQL, fused by rank; and entities named in a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import polars as pl

from graphrag_assets.errors import QueryError
from graphrag_assets.models.asking import embedder
from graphrag_assets.models.offline.stop_words import STOP_WORDS
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.store.published import Reader
from graphrag_assets.text import terms, title_key

FUSION_K = 60
CANDIDATES = 100
_LONGEST_TITLE = 8


@dataclass(frozen=True)
class Question:
    """A question as searches need it: its text, and lazily its terms, its vector and the names it may hold.

    `vector_text` is embedded instead of the text where it is given, as DRIFT's hypothetical answer is.
    """

    text: str
    vector_text: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise QueryError(f"The question is {self.text!r}; it must be a text.")
        if not self.text.strip():
            raise QueryError("The question is empty.")

    @cached_property
    def terms(self) -> list[str]:
        """Its search terms without stop words; all of them when there are no others."""
        words = list(dict.fromkeys(terms(pl.Series([self.text])).item(0)))
        return [word for word in words if word not in STOP_WORDS] or words

    @cached_property
    def _vectors(self) -> dict[str, np.ndarray]:
        return {}

    def vector(self, model: str) -> np.ndarray:
        """Its embedding by the model of an index, float32 of shape (dimensions,). Raises QueryError."""
        if model not in self._vectors:
            self._vectors[model] = np.asarray(embedder(model)([self.vector_text or self.text])[0])
        return self._vectors[model]

    @cached_property
    def title_keys(self) -> dict[str, list[tuple[int, int]]]:
        """Every run of up to eight words as the key of a title, with the places where it begins and ends."""
        words = self.text.split()
        found: dict[str, list[tuple[int, int]]] = {}
        for start in range(len(words)):
            for end in range(start + 1, min(start + _LONGEST_TITLE, len(words)) + 1):
                run = " ".join(words[start:end])
                # With and without the punctuation around it: "Glass, Elliot & Co." and "the Niagara?".
                for key in {title_key(run), title_key(run.lstrip("(").rstrip("?!.,;:)"))} - {""}:
                    if key not in STOP_WORDS:
                        found.setdefault(key, []).append((start, end))
        return found


def search(reader: Reader, kind: str, question: Question, limit: int, scope: Scope = EVERYTHING) -> list[int]:
    """The rows of `kind` (text_unit, entity, community_report) that fit the question best, best first.

    BM25 and cosine similarity are fused by reciprocal rank.
    """
    candidates = max(CANDIDATES, limit)
    return fuse(
        by_words(reader, kind, question, candidates, scope), by_vector(reader, kind, question, candidates, scope)
    )[:limit]


def by_words(reader: Reader, kind: str, question: Question, limit: int, scope: Scope = EVERYTHING) -> list[int]:
    """The rows of `kind` by BM25 (k1 = 1.2, b = 0.75; Robertson and Zaragoza 2009), best first, ties by number."""
    total, mean = reader.posting_statistics.get(kind, (0, 1.0))
    return reader.numbers(
        """
        SELECT p.number, sum(
            ln(1 + ($total - p.df + 0.5) / (p.df + 0.5)) * p.n * 2.2 / (p.n + 1.2 * (0.25 + 0.75 * l.length / $mean))
        ) AS score
        FROM (
            SELECT number, n, count(*) OVER (PARTITION BY term) AS df FROM postings
            WHERE kind = $kind AND term IN (SELECT md5_number_lower(unnest($terms::VARCHAR[])))
        ) p
        JOIN posting_lengths l ON l.kind = $kind AND l.number = p.number
        GROUP BY p.number
        ORDER BY round(score, 9) DESC, p.number LIMIT $limit
        """,
        {"kind": kind, "terms": question.terms, "total": total, "mean": mean, "limit": limit},
    )


def by_vector(reader: Reader, kind: str, question: Question, limit: int, scope: Scope = EVERYTHING) -> list[int]:
    """The rows of `kind` by cosine similarity, exact, best first, ties by number.

    Raises:
        QueryError: the index was embedded by another model than questions are.
    """
    if reader.embedding is None:
        return []
    model, dimensions = reader.embedding
    vector = question.vector(model)
    if not vector.any():
        return []
    return reader.numbers(
        f"""
        SELECT number, array_inner_product(vector, $vector::FLOAT[{dimensions}]) AS similarity
        FROM embeddings WHERE kind = $kind
        ORDER BY round(similarity, 6) DESC, number LIMIT $limit
        """,
        {"kind": kind, "vector": vector, "limit": limit},
    )


def fuse(*rankings: Sequence[int], k: int = FUSION_K) -> list[int]:
    """The numbers in the rankings (each best first) by the sum of 1 / (k + rank), best first; ties by number."""
    scores: dict[int, float] = {}
    for number, rank in chain.from_iterable(((n, i) for i, n in enumerate(r, 1)) for r in rankings):
        scores[number] = scores.get(number, 0.0) + 1 / (k + rank)
    return sorted(scores, key=lambda number: (-scores[number], number))


def named_entities(reader: Reader, question: Question, scope: Scope = EVERYTHING) -> list[int]:
    """Entities whose title or accepted alias stands in the question, the rarest first.

    A name inside a longer one that is found too does not count: not Eastern where Great Eastern stands.
    """
    found = reader.rows(
        """
        WITH keys AS (SELECT unnest($keys::VARCHAR[]) AS key),
        named AS (
            SELECT key, key AS title_key FROM keys
            UNION
            SELECT alias_key, title_key FROM entity_aliases WHERE accepted AND alias_key IN (FROM keys)
        )
        SELECT n.key, e.human_readable_id AS number
        FROM entities e JOIN named n USING (title_key)
        ORDER BY e.frequency, number, n.key
        """,
        {"keys": list(question.title_keys)},
    )
    spans = {span for key in found["key"] for span in question.title_keys[key]}
    outermost = {s for s in spans if not any(o != s and o[0] <= s[0] and s[1] <= o[1] for o in spans)}
    return list(
        dict.fromkeys(number for key, number in found.iter_rows() if not outermost.isdisjoint(question.title_keys[key]))
    )


def entities_for(
    reader: Reader,
    question: Question,
    top_k: int,
    scope: Scope = EVERYTHING,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> list[int]:
    """Exactly `top_k` entities (fewer only if there are no more): those to include, those named, then by fusion.

    Args:
        include: titles or accepted aliases of entities that come first, whatever the question says.
        exclude: titles or aliases of entities that do not come at all.

    Raises:
        QueryError: a name stands for no entity, or for one to include and to exclude.
    """
    wanted, unwanted = entities_called(reader, include, scope), entities_called(reader, exclude, scope)
    found = search(reader, "entity", question, top_k + CANDIDATES + len(unwanted), scope)
    named = named_entities(reader, question, scope)
    place = {number: i for i, number in enumerate(found)}
    named.sort(key=lambda number: place.get(number, len(found)))
    numbers = [n for n in dict.fromkeys([*wanted, *named, *found]) if n not in unwanted][:top_k]
    if len(numbers) < top_k:
        numbers += reader.numbers(
            """
            SELECT human_readable_id FROM entities
            WHERE human_readable_id NOT IN (SELECT unnest($numbers::INT[]))
            ORDER BY degree DESC, human_readable_id LIMIT $n
            """,
            {"numbers": [*numbers, *unwanted], "n": top_k - len(numbers)},
        )
    return numbers


def entities_called(reader: Reader, names: Sequence[str], scope: Scope = EVERYTHING) -> list[int]:
    """The entities of these titles or accepted aliases, in order.

    Raises:
        QueryError: there is no entity of a name.
    """
    if not names:
        return []
    keys = {name: title_key(name) for name in names}
    found = reader.rows(
        """
        WITH keys AS (SELECT unnest($keys::VARCHAR[]) AS key),
        named AS (
            SELECT key, key AS title_key FROM keys
            UNION
            SELECT alias_key, title_key FROM entity_aliases WHERE accepted AND alias_key IN (FROM keys)
        )
        SELECT n.key, e.human_readable_id AS number
        FROM entities e JOIN named n USING (title_key)
        ORDER BY n.key = n.title_key DESC, number
        """,
        {"keys": list(keys.values())},
    )
    unknown = [name for name, key in keys.items() if key not in set(found["key"])]
    if unknown:
        raise QueryError(f"There is no entity {', '.join(map(repr, unknown))}. See: SELECT title FROM entities.")
    numbers = [number for name in names for key, number in found.iter_rows() if key == keys[name]]
    return list(dict.fromkeys(numbers))
