"""Passage retrieval: ranks text units by words, by vectors, by both, or through the graph of the things they name.

The graph ranking is a personalized PageRank. The walk starts at the passages that match the question best by their text
and at the things that the question names; from a passage it moves to the things named in it, and from a thing to the
passages about it (`store.passage_graph`). So it reaches a passage that shares no word with the question but is about
something that a matching passage names. If no passage is about what others name, the ranking is that of the text.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Literal, get_args

import numpy as np
import polars as pl
from pydantic import Field
from pydantic.dataclasses import dataclass

from graphrag_assets.errors import InvalidOption
from graphrag_assets.query import retrieval
from graphrag_assets.query.ask import Ask
from graphrag_assets.query.citations import place_of
from graphrag_assets.query.entities import named_things
from graphrag_assets.query.fetch import entity_rows
from graphrag_assets.query.options import PositiveCount, QuestionOptions
from graphrag_assets.query.question import Question
from graphrag_assets.query.retrieval import FoundTexts, Scores, with_preference
from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader

DAMPING = 0.7
"""Share of the rank that follows the edges at each step; the rest returns to where the walk starts."""


def personalized_pagerank(
    sources: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    restart: np.ndarray,
    damping: float = DAMPING,
    tolerance: float = 1e-9,
) -> np.ndarray:
    """Return the share of time that a random walk spends at each node when it keeps returning to the restart nodes.

    At each step the walk follows an edge of its node with probability `damping` times the edge's weight, and otherwise
    starts over at a node drawn by `restart` (Page et al. 1999; Haveliwala 2002, https://doi.org/10.1145/511446.511513).
    So weights are probabilities: those of a node's edges sum to 1 or less.

    Args:
        sources, targets: integers (edges,): the nodes that each edge leads from and to.
        weights: floats (edges,), not negative.
        restart: floats (nodes,), not negative, not all 0; they need not sum to 1.
        tolerance: an upper bound of the L1 distance from the exact ranks.

    Returns:
        floats (nodes,) that sum to 1.
    """
    start = restart / restart.sum()
    visits = start
    # Every step shrinks the distance from the fixed point by the damping; scaling to 1 at most doubles what is left.
    for _ in range(math.ceil(math.log(tolerance * (1 - damping) / 2) / math.log(damping))):
        arriving = np.bincount(targets, visits[sources] * weights, len(start))
        visits = (1 - damping) * start + damping * arriving
    return visits / visits.sum()


RankingMethod = Literal["graph", "text", "words", "vectors"]
RANKING_METHODS: tuple[str, ...] = get_args(RankingMethod)

START_PASSAGES = 20
START_POWER = 3
"""The walk starts at the best passages by the third power of their scores, so mostly at the first few."""
MAX_HOPS = 2
"""From passage to passage. All passages farther away would get less than an eighth of the rank together."""
FOLLOWED_PASSAGES = 20
"""Number of passages that the walk is extended from at each hop: those of the highest rank so far."""
_COARSE = 1e-3  # tolerance of ranks that only select the passages to follow
MAX_EDGES = 1_000
"""Maximum number of edges read at each hop, the heaviest first: some passages name hundreds of things."""


@dataclass(frozen=True)
class RetrieveOptions(QuestionOptions):
    """All options of `rag.retrieve`.

    Args:
        k: number of passages.
        method: graph: through what passages name and what they are about, as local search ranks them. text: by
            words and vectors, as basic search does. words: BM25 alone. vectors: cosine similarity alone.
    """

    k: PositiveCount = 10
    method: Annotated[RankingMethod, Field(description=" or ".join(map(repr, RANKING_METHODS)))] = "graph"


async def retrieve(ask: Ask[RetrieveOptions]) -> pl.DataFrame:
    """Return the passages that match the question best; see `GraphRAG.retrieve`."""
    options = ask.options
    if options.method != "words":
        await ask.embed(ask.question)
    ranked = await ask.in_thread(rank_passages, ask.reader, ask.question, options.k, ask.scope, options.method)
    return await ask.in_thread(passage_frame, ask.reader, ranked, ask.scope)


@dataclasses.dataclass(frozen=True)
class RankedPassages:
    """Text units for a question, and the rankings behind their order.

    Attributes:
        scores: by number of the text unit, best first.
        words, vectors, text, graph: the rankings that the method combines, likewise; those that it does not use are
            empty. `graph` has the passages that the walk reached.
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
    matches: FoundTexts | None = None,
) -> RankedPassages:
    """Return the `limit` best text units by a method.

    Args:
        method: words: BM25. vectors: cosine similarity. text: both. graph: PageRank that starts from text.
        matches: the text units that `find_texts` has found for the question.

    Raises:
        QueryError: there is no such method, or no vectors for it, or the index was embedded by another model than
            questions are.
    """
    if method not in RANKING_METHODS:
        raise InvalidOption(f"There is no ranking {method!r}. Choose one of: {', '.join(RANKING_METHODS)}.")
    if method == "vectors" and reader.embedding is None:
        raise InvalidOption(
            "The index has no vectors. Set GRAPHRAG_EMBEDDING_MODEL and index again, or rank by 'words', 'text' or "
            "'graph'."
        )
    if method == "words":
        words = retrieval.word_scores(reader, "text_unit", question, limit, scope)
        return RankedPassages(words, words=words)
    if method == "vectors":
        vectors = retrieval.vector_scores(reader, "text_unit", question, limit, scope)
        return RankedPassages(vectors, vectors=vectors)
    candidates = max(retrieval.CANDIDATES, limit)
    matches = matches or retrieval.find_texts(reader, question, ["text_unit"], candidates, scope)["text_unit"]
    words, vectors = matches
    text = with_preference(reader, question.text, matches.scores, scope, candidates)
    if method == "text":
        return RankedPassages(_first(text, limit), words, vectors, text)
    graph, about = _walk(reader, question, text, scope)
    place = {number: i for i, number in enumerate(text)}
    ranked = sorted(graph, key=lambda number: (-round(graph[number], 12), place.get(number, len(place)), number))
    scores = {number: graph[number] for number in ranked} | {n: 0.0 for n in text if n not in graph}
    return RankedPassages(_first(scores, limit), words, vectors, text, {n: graph[n] for n in ranked}, about)


def _first(scores: Scores, limit: int) -> Scores:
    return dict(list(scores.items())[:limit])


Edge = tuple[int, int, float]
"""A text unit, a hashed name, and the weight between them."""


def _walk(reader: Reader, question: Question, text: Scores, scope: Scope) -> tuple[Scores, dict[int, list[int]]]:
    """Return the PageRank of the passages that the walk reaches, and the things through which it reaches them.

    The graph around the question is read hop by hop. Only the passages of the highest rank so far are followed: the
    others would pass on almost no rank.
    """
    best = {number: score for number, score in list(text.items())[:START_PASSAGES] if score > 0}
    greatest = max(best.values(), default=1.0)
    starts = {number: (score / greatest) ** START_POWER for number, score in best.items()}
    things = named_things(reader, question, scope)
    naming, about = _edges(reader, [], things, [], scope)
    names, followed = dict.fromkeys(things), set[int]()
    for _ in range(MAX_HOPS):
        ranks = _ranks(starts, things, naming, about, _COARSE)
        following = [number for number in ranks if number not in followed][:FOLLOWED_PASSAGES]
        more_naming, more_about = _edges(reader, following, [], names, scope)
        naming += more_naming
        before = len(names)
        names.update(dict.fromkeys(name for _, name, _ in more_naming))
        if len(names) == before:
            break
        followed.update(following)
        about += more_about
    reached = dict[int, list[int]]()
    for unit, name, _ in about:
        reached.setdefault(unit, []).append(name)
    return _ranks(starts, things, naming, about), reached


def _ranks(
    starts: Scores, things: Scores, naming: Sequence[Edge], about: Sequence[Edge], tolerance: float = 1e-9
) -> Scores:
    """Return the PageRank of the passages, best first, ties by number.

    Args:
        starts, things: the weights of passages and of hashed names where the walk starts.
        naming: edges from passages to names.
        about: edges from names to passages.
    """
    passages = {unit: node for node, unit in enumerate(dict.fromkeys([*starts, *(e[0] for e in [*naming, *about])]))}
    names = {name: len(passages) + node for node, name in enumerate(dict.fromkeys([*things, *(e[1] for e in naming)]))}
    restart = np.zeros(len(passages) + len(names))
    restart[: len(starts)] = list(starts.values())
    restart[len(passages) : len(passages) + len(things)] = list(things.values())
    if not restart.any():
        return {}
    edges = [(passages[unit], names[name], weight) for unit, name, weight in naming]
    edges += [(names[name], passages[unit], weight) for unit, name, weight in about]
    sources, targets, weights = np.array(edges).reshape(-1, 3).T
    ranks = personalized_pagerank(sources.astype(int), targets.astype(int), weights, restart, tolerance=tolerance)
    positive = {unit: float(ranks[node]) for unit, node in passages.items() if ranks[node] > 0}
    return dict(sorted(positive.items(), key=lambda pair: (-round(pair[1], 12), pair[0])))


def _edges(
    reader: Reader, passages: Sequence[int], names: Iterable[int], seen: Iterable[int], scope: Scope
) -> tuple[list[Edge], list[Edge]]:
    """Return the edges from passages to the names in them, and those from these and other names to passages about them.

    Without the second of names that were `seen`. Of both kinds the heaviest edges.
    """
    rows = reader.rows(
        f"""
        WITH naming AS (
            SELECT text_unit, name, weight FROM search.passage_names
            WHERE text_unit IN (SELECT unnest($passages::INT[])) ORDER BY weight DESC, text_unit, name LIMIT {MAX_EDGES}
        ), about AS (
            SELECT text_unit, name, weight FROM search.passage_subjects
            WHERE name IN (SELECT unnest($names::UBIGINT[]) UNION ALL SELECT name FROM naming)
              AND name NOT IN (SELECT unnest($seen::UBIGINT[])) AND {scope.allows("text_unit", "text_unit")}
            ORDER BY weight DESC, name, text_unit LIMIT {MAX_EDGES}
        )
        FROM (SELECT *, false AS about FROM naming UNION ALL SELECT *, true FROM about)
        ORDER BY about, weight DESC, name, text_unit
        """,
        {"passages": list(passages), "names": list(names), "seen": list(seen)},
    ).rows()
    return [row[:3] for row in rows if not row[3]], [row[:3] for row in rows if row[3]]


def passage_frame(reader: Reader, ranked: RankedPassages, scope: Scope) -> pl.DataFrame:
    """Return the passages with their documents, and their ranks by each ranking (1 is best; null: not ranked by it).

    Returns:
        the columns of `retrieve`, best first.
    """
    numbers = ranked.numbers
    rows = reader.rows(
        """
        SELECT t.human_readable_id, d.title AS document, d.source, t.start_char, t.end_char, t.context, t.text, t.id,
               t.document_id, d.row_number, d.places
        FROM text_units t LEFT JOIN documents d ON d.id = t.document_id
        WHERE t.human_readable_id IN (SELECT unnest($numbers::INT[]))
        """,
        {"numbers": numbers},
    )
    things = sorted({name for number in numbers for name in ranked.about.get(number, [])})
    titles = reader.rows(
        "SELECT text_unit, name, title FROM search.passage_subjects WHERE name IN (SELECT unnest($names::UBIGINT[])) "
        "AND text_unit IN (SELECT unnest($numbers::INT[]))",
        {"names": things, "numbers": numbers},
    )
    title_of = {(number, name): title for number, name, title in titles.iter_rows()}
    about = [sorted({title_of[number, name] for name in ranked.about.get(number, [])}) for number in numbers]
    rankings = pl.DataFrame(
        {
            "human_readable_id": pl.Series(numbers, dtype=pl.Int64),
            "rank": pl.Series(range(1, len(numbers) + 1), dtype=pl.Int64),
            "score": pl.Series(list(ranked.scores.values()), dtype=pl.Float64),
            "about": pl.Series(about, dtype=pl.List(pl.String)),
            "entities": pl.Series(_entities(reader, numbers, scope), dtype=pl.List(pl.String)),
        }
    )
    for name in ("words", "vectors", "graph"):
        place = {number: i for i, number in enumerate(getattr(ranked, name), 1)}
        rankings = rankings.with_columns(pl.Series(f"rank_by_{name}", [place.get(n) for n in numbers], pl.Int64))
    frame = rankings.join(rows, on="human_readable_id", how="left", maintain_order="left")
    places = [place_of(*row) for row in frame.select("places", "row_number", "start_char").iter_rows()]
    columns = (
        "rank score document source place start_char end_char rank_by_words rank_by_vectors rank_by_graph about "
        "entities context text human_readable_id id document_id"
    )
    return frame.with_columns(place=pl.Series(places, dtype=pl.String)).select(columns.split())


def _entities(reader: Reader, numbers: list[int], scope: Scope) -> list[list[str]]:
    """Return the titles of the entities that each text unit names, as contexts show them, by degree."""
    named = reader.rows(
        "SELECT text_unit, entity FROM search.entity_text_units WHERE text_unit IN (SELECT unnest($numbers::INT[]))",
        {"numbers": numbers},
    )
    rows = entity_rows(reader, named["entity"].unique().sort().to_list(), scope)
    rows = rows.sort("degree", "title", descending=[True, False])
    pairs = rows.join(named, left_on="human_readable_id", right_on="entity", maintain_order="left")
    titles = {number: list[str]() for number in numbers}
    for title, unit in pairs.select("title", "text_unit").iter_rows():
        titles[unit].append(title)
    return [titles[number] for number in numbers]
