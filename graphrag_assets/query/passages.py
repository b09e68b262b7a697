"""Ranks passages (text units) for a question: by words, by vectors, by both, or through the graph of what they name.

The graph ranking is a personalized PageRank. The walk starts at the passages that fit the question best by their text
and at the things that the question names; from a passage it goes on to the things named in it, and from a thing to the
passages about it (`store.passage_graph`). So it reaches the passage that answers the second half of a question whose
first half names only what leads there. Where no passage is about what others name, nothing moves, and the ranking is
that of the text.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import polars as pl

from graphrag_assets.errors import QueryError
from graphrag_assets.query.at_once import later
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.pagerank import personalized_pagerank
from graphrag_assets.query.retrieval import (
    CANDIDATES,
    Question,
    Scores,
    named_things,
    prepare,
    text_scores,
    vector_scores,
    vector_weight,
    word_scores,
)
from graphrag_assets.store.published import Reader

RankingMethod = Literal["graph", "text", "words", "vectors"]
RANKING_METHODS: tuple[str, ...] = get_args(RankingMethod)

START_PASSAGES = 20
START_POWER = 3
"""The walk starts at the best passages by the third power of their scores: the first few, unless all are alike."""
MAX_HOPS = 3
"""From passage to passage. Farther ones would get less than an eighth of the rank together."""
MAX_EDGES = 2_000
"""Of a hop, the heaviest ones; bounds the work where passages name hundreds of things."""


@dataclass(frozen=True)
class RankedPassages:
    """Text units for a question, and why they stand where they stand.

    Attributes:
        scores: by number of the text unit, best first.
        words, vectors, text, graph: the rankings it was made of, likewise; those that the method does not use are
            empty. `graph` holds the passages that the walk reached.
        about: for a passage that the walk reached through things, the hashed names of these things.
    """

    scores: Scores
    words: Scores = field(default_factory=dict)
    vectors: Scores = field(default_factory=dict)
    text: Scores = field(default_factory=dict)
    graph: Scores = field(default_factory=dict)
    about: Mapping[int, list[int]] = field(default_factory=dict)

    @property
    def numbers(self) -> list[int]:
        """The text units, best first."""
        return list(self.scores)


def rank_passages(
    reader: Reader,
    question: Question,
    limit: int,
    scope: Scope = EVERYTHING,
    method: RankingMethod = "graph",
) -> RankedPassages:
    """The `limit` best text units by a method.

    Args:
        method: words: BM25. vectors: cosine similarity. text: both. graph: PageRank that starts from text.

    Raises:
        QueryError: there is no such method, or the index was embedded by another model than questions are.
    """
    if method not in RANKING_METHODS:
        raise QueryError(f"There is no ranking {method!r}. Choose one of: {', '.join(RANKING_METHODS)}.")
    candidates = max(CANDIDATES, limit)
    if method == "words":
        words = word_scores(reader, "text_unit", question, limit, scope)
        return RankedPassages(words, words=words)
    prepare(reader, question)
    if method == "vectors":
        vectors = vector_scores(reader, "text_unit", question, limit, scope)
        return RankedPassages(vectors, vectors=vectors)
    found = later(lambda: vector_scores(reader, "text_unit", question, candidates, scope))
    words = word_scores(reader, "text_unit", question, candidates, scope)
    vectors = found.result()
    text = text_scores(words, vectors, vector_weight(reader))
    if method == "text":
        return RankedPassages(_first(text, limit), words, vectors, text)
    graph, about = _walk(reader, question, text, scope)
    place = {number: i for i, number in enumerate(text)}
    ranked = sorted(graph, key=lambda number: (-round(graph[number], 12), place.get(number, len(place)), number))
    scores = {number: graph[number] for number in ranked} | {n: 0.0 for n in text if n not in graph}
    return RankedPassages(_first(scores, limit), words, vectors, text, {n: graph[n] for n in ranked}, about)


def _first(scores: Scores, limit: int) -> Scores:
    return dict(list(scores.items())[:limit])


def _walk(reader: Reader, question: Question, text: Scores, scope: Scope) -> tuple[Scores, dict[int, list[int]]]:
    """The PageRank of the passages that the walk reaches, and through which things it reaches them."""
    starts = {number: score**START_POWER for number, score in list(text.items())[:START_PASSAGES] if score > 0}
    things = named_things(reader, question, scope)
    naming, about = _neighborhood(reader, list(starts), list(things), scope)
    passages = np.unique(np.concatenate([np.array(list(starts), np.int64), naming["text_unit"], about["text_unit"]]))
    names = np.unique(np.concatenate([np.array(list(things), np.uint64), naming["name"], about["name"]]))
    if not len(passages):
        return {}, {}
    # Nodes: the passages, then the things.
    restart = np.zeros(len(passages) + len(names))
    restart[np.searchsorted(passages, list(starts))] = list(starts.values())
    restart[len(passages) + np.searchsorted(names, np.array(list(things), np.uint64))] = list(things.values())
    if not restart.any():
        return {}, {}
    to_things = len(passages) + np.searchsorted(names, naming["name"])
    from_things = len(passages) + np.searchsorted(names, about["name"])
    ranks = personalized_pagerank(
        np.concatenate([np.searchsorted(passages, naming["text_unit"]), from_things]),
        np.concatenate([to_things, np.searchsorted(passages, about["text_unit"])]),
        np.concatenate([naming["weight"], about["weight"]]),
        restart,
    )
    reached: dict[int, list[int]] = {}
    carrying = ranks[from_things] > 0
    for name, unit in zip(about["name"][carrying].tolist(), about["text_unit"][carrying].tolist(), strict=True):
        reached.setdefault(unit, []).append(name)
    found = zip(passages.tolist(), ranks[: len(passages)].tolist(), strict=True)
    return {number: rank for number, rank in found if rank > 0}, reached


def _neighborhood(
    reader: Reader, passages: list[int], names: list[int], scope: Scope
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The edges of up to `MAX_HOPS` hops from these passages and names: what passages name, and what is about names.

    Both with the columns text_unit, name, weight. No edge leads to a passage outside of the scope.
    """
    naming, about = [_NO_EDGES], [_NO_EDGES]
    new_passages, new_names = set(passages), set(names)
    seen_passages: set[int] = set()
    seen_names: set[int] = set()
    for _ in range(MAX_HOPS):
        about.append(_about(reader, new_names, scope))
        seen_names |= new_names
        new_passages = new_passages.union(about[-1]["text_unit"].tolist()) - seen_passages
        naming.append(_naming(reader, new_passages))
        seen_passages |= new_passages
        new_passages, new_names = set(), set(naming[-1]["name"].tolist()) - seen_names
        if not new_names:
            break
    about.append(_about(reader, new_names, scope))
    return _joined(naming), _joined(about)


_NO_EDGES = {"text_unit": np.array([], np.int64), "name": np.array([], np.uint64), "weight": np.array([], np.float64)}


def _naming(reader: Reader, passages: set[int]) -> dict[str, np.ndarray]:
    if not passages:
        return _NO_EDGES
    return reader.arrays(
        "SELECT text_unit::BIGINT AS text_unit, name, weight FROM passage_names "
        "WHERE text_unit IN (SELECT unnest($units::INT[])) ORDER BY weight DESC, text_unit, name LIMIT $limit",
        {"units": sorted(passages), "limit": MAX_EDGES},
    )


def _about(reader: Reader, names: set[int], scope: Scope) -> dict[str, np.ndarray]:
    if not names:
        return _NO_EDGES
    return reader.arrays(
        f"""
        SELECT text_unit::BIGINT AS text_unit, name, weight FROM passage_subjects
        WHERE name IN (SELECT unnest($names::UBIGINT[])) AND {scope.allows("text_unit", "text_unit")}
        ORDER BY weight DESC, text_unit, name LIMIT $limit
        """,
        {"names": sorted(names), "limit": MAX_EDGES, **scope.parameters("text_unit")},
    )


def _joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {column: np.concatenate([part[column] for part in parts]) for column in _NO_EDGES}


def passage_frame(reader: Reader, ranked: RankedPassages) -> pl.DataFrame:
    """The passages with their documents, and their ranks by each ranking (1 is best; null: not ranked by it).

    Returns:
        rank, score, document, source, start_char, end_char, rank_by_words, rank_by_vectors, rank_by_graph, about (the
        things that the walk reached the passage through), context, text, human_readable_id, id; best first.
    """
    numbers = ranked.numbers
    rows = reader.rows(
        """
        SELECT t.human_readable_id, d.title AS document, d.source, t.start_char, t.end_char, t.context, t.text, t.id
        FROM text_units t LEFT JOIN documents d ON d.id = t.document_id
        WHERE t.human_readable_id IN (SELECT unnest($numbers::INT[]))
        """,
        {"numbers": numbers},
    )
    things = sorted({name for number in numbers for name in ranked.about.get(number, [])})
    titles = dict(
        reader.rows(
            "SELECT DISTINCT name, title FROM passage_subjects WHERE name IN (SELECT unnest($names::UBIGINT[]))",
            {"names": things},
        ).iter_rows()
    )
    about = [sorted({titles[name] for name in ranked.about.get(number, [])}) for number in numbers]
    places = pl.DataFrame(
        {
            "human_readable_id": pl.Series(numbers, dtype=pl.Int32),
            "rank": pl.Series(range(1, len(numbers) + 1), dtype=pl.Int32),
            "score": pl.Series(list(ranked.scores.values()), dtype=pl.Float64),
            **{
                f"rank_by_{name}": pl.Series(_places(getattr(ranked, name), numbers), dtype=pl.Int32)
                for name in ("words", "vectors", "graph")
            },
            "about": pl.Series(about, dtype=pl.List(pl.String)),
        }
    )
    columns = "rank score document source start_char end_char rank_by_words rank_by_vectors rank_by_graph about context"
    found = places.join(rows, on="human_readable_id", how="left", maintain_order="left")
    return found.select(*columns.split(), "text", "human_readable_id", "id")


def _places(scores: Scores, numbers: list[int]) -> list[int | None]:
    place = {number: i for i, number in enumerate(scores, 1)}
    return [place.get(number) for number in numbers]
