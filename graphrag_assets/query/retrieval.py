"""Ranks rows by their text: BM25 and vectors."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from graphrag_assets.errors import InvalidOption, QueryError
from graphrag_assets.ids import number_of
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.preferences import with_preference
from graphrag_assets.query.query_models import embedder
from graphrag_assets.query.question_terms import question_terms
from graphrag_assets.runtime.cancellation import raise_if_canceled
from graphrag_assets.settings import Settings
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.languages import STOP_WORDS
from graphrag_assets.text.words import UNSPACED, name_key, search_words_of, title_key

FUSION_K = 60
CANDIDATES = 100
VECTOR_WEIGHT = 0.7
"""Of vectors beside BM25; docs/architecture.md has the comparison with other weights."""

_LONGEST_TITLE = 8
_WORD = re.compile(r"\S+")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]{{2,}}")
# The kind of scope (`Scope.allows`) of the texts that a search reads: texts from outside it are not searched.
_SEARCHED = {"text_unit": "text_unit", "entity": "entity_text", "community_report": "community_report"}


Scores = dict[int, float]
"""Scores by number of the row, best first."""


class KnownTerms(NamedTuple):
    """The terms of a question that occur in the texts of a kind: hashes, rarity (BM25's idf), and the word of each.

    Of the terms of one word, the best counts in a text.
    """

    terms: list[int]
    rarity: list[float]
    words: list[int]


MAX_QUESTION_CHARACTERS = 32_000  # about 8,000 tokens; words that are not in the index take longest, 5 s so many


@dataclass(frozen=True)
class Question:
    """A question with what searches derive from it, each computed once: its terms, its vector and its names.

    `vector_text`: is embedded instead of the text if given, such as DRIFT's hypothetical answer. `of_reports`: is
    searched for in reports instead. `known_terms`: by published file and kind of text. `names`: those of entities (key,
    number of the entity) by published file and scope.
    """

    text: str
    vector_text: str | None = None
    of_reports: "Question | None" = None
    known_terms: dict[Path, dict[str, KnownTerms]] = field(default_factory=dict, init=False, repr=False, compare=False)
    names: dict[tuple[Path, Scope], list[tuple[str, int]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _vectors: dict[str, np.ndarray] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InvalidOption(f"The question is {self.text!r}; it must be a text.")
        if not self.text.strip():
            raise InvalidOption("The question is empty.")
        if len(self.text) > MAX_QUESTION_CHARACTERS:
            raise InvalidOption(
                f"The question has {len(self.text):,} characters; at most {MAX_QUESTION_CHARACTERS:,} are searched "
                "for. Ask about a part of the text, or index it as a document."
            )
        try:
            self.text.encode()
        except UnicodeEncodeError as error:
            raise InvalidOption(
                f"Character {error.start + 1} of the question is half of a character (a lone surrogate). Ask again "
                "without it; in a shell, check that its text is UTF-8."
            ) from None

    @cached_property
    def words(self) -> list[str]:
        """The distinct words, normalized as for searches."""
        return search_words_of(self.text)

    @property
    def embedded_text(self) -> str:
        """The text to embed."""
        return self.vector_text or self.text

    @property
    def for_reports(self) -> "Question":
        """What reports are searched for."""
        return self.of_reports or self

    def remember(self, model: str, vector: np.ndarray) -> None:
        """Store the embedding by a model, which `vector` then returns."""
        self._vectors[model] = vector

    def vector(self, model: str) -> np.ndarray:
        """The embedding by the model of an index, float32 of shape (dimensions,). Raises QueryError.

        A search remembers it before; otherwise it is that by the model of the environment's settings.
        """
        if model not in self._vectors:
            self._vectors[model] = np.asarray(embedder(Settings.load(), model)([self.embedded_text])[0])
        return self._vectors[model]

    @cached_property
    def title_keys(self) -> dict[str, list[tuple[int, int]]]:
        """Every run of up to eight words as the key of a title, with its spans (start and end characters).

        In scripts without spaces, every run of two to eight characters.
        """
        words = [word.span() for word in _WORD.finditer(self.text)]
        runs = [
            (first, last) for place, (first, _) in enumerate(words) for _, last in words[place : place + _LONGEST_TITLE]
        ]
        for unspaced in _UNSPACED_RUN.finditer(self.text):
            for first in range(unspaced.start(), unspaced.end() - 1):
                last = min(first + _LONGEST_TITLE, unspaced.end())
                runs += [(first, end) for end in range(first + 2, last + 1)]
        found: dict[str, list[tuple[int, int]]] = {}
        for first, last in runs:
            raise_if_canceled()
            run = self.text[first:last]
            # With and without the punctuation around it: "Glass, Elliot & Co." and "the Niagara?".
            keys = set(map(title_key, {run, run.lstrip("(").rstrip("?!.,;:)")}))
            keys |= {key.removesuffix("'s") for key in keys}
            for key in {*keys, *map(name_key, keys)} - {""}:
                if key not in STOP_WORDS:
                    found.setdefault(key, []).append((first, last))
        return found


def search_texts(reader: Reader, kind: str, question: Question, limit: int, scope: Scope = EVERYTHING) -> list[int]:
    """The rows of `kind` (text_unit, entity, community_report) whose texts match the question best, best first."""
    candidates = max(CANDIDATES, limit)
    words = word_scores(reader, kind, question, candidates, scope)
    scores = text_scores(words, vector_scores(reader, kind, question, candidates, scope))
    if kind == "text_unit":
        scores = with_preference(reader, question.text, scores, scope, limit)
    return list(scores)[:limit]


def text_scores(words: Scores, vectors: Scores) -> Scores:
    """The sum of BM25 and cosine similarity, best first; ties by number. BM25 alone is a share of its maximum.

    Each is spread from 0 to 1 over its best 100 rows: models differ in how close their cosines are to each other. So
    the first rows keep their order, whatever number of rows is asked for.
    """
    if not vectors:
        return scaled(words)
    by_words, by_vectors = _spread(words, fewer=0.0), _spread(vectors, fewer=min(vectors.values()))
    kept = {
        n: max(by_words.get(n, 0.0), 0.0) + VECTOR_WEIGHT * max(by_vectors.get(n, 0.0), 0.0) for n in (words | vectors)
    }
    beyond = {n: by_words.get(n, 0.0) + VECTOR_WEIGHT * by_vectors.get(n, 0.0) for n in kept}
    order = sorted(kept, key=lambda n: (-round(kept[n], 9), -round(beyond[n], 9), n))
    return {n: kept[n] for n in order}


def _spread(scores: Scores, fewer: float) -> Scores:
    """The scores, of which the best becomes 1 and the 100th 0; of fewer rows, `fewer` becomes 0."""
    ranked = sorted(scores.values(), reverse=True)
    least = ranked[CANDIDATES - 1] if len(ranked) >= CANDIDATES else fewer
    width = ranked[0] - least if ranked else 0.0
    return {number: (score - least) / width if width > 0 else 1.0 for number, score in scores.items()}


def scaled(scores: Scores) -> Scores:
    """The positive scores as shares of their maximum."""
    greatest = max(scores.values(), default=0.0)
    return {number: score / greatest for number, score in scores.items() if score > 0}


def word_scores(reader: Reader, kind: str, question: Question, limit: int, scope: Scope = EVERYTHING) -> Scores:
    """The rows of `kind` by BM25 (k1 = 1.2, b = 0.75; Robertson and Zaragoza 2009), best first, ties by number.

    The rarity of a term is that in the whole index, whatever the scope.
    """
    searched = _SEARCHED[kind]
    known = known_terms(reader, question).get(kind)
    if known is None:
        return {}
    _, mean = reader.posting_statistics[kind]
    found = reader.rows(
        f"""
        WITH terms AS (
            SELECT unnest($terms::UBIGINT[]) AS term, unnest($rarity::DOUBLE[]) AS rarity, unnest($words::INT[]) AS word
        ), scores AS (
            SELECT number, max(rarity * n * 2.2 / (n + 1.2 * (0.25 + 0.75 * length / $mean))) AS score
            FROM search.postings JOIN terms USING (term)
            WHERE kind = $kind AND {scope.allows(searched, "number")}
            GROUP BY number, word
        )
        SELECT number, sum(score) AS score FROM scores
        GROUP BY number ORDER BY round(sum(scores.score), 9) DESC, number LIMIT $limit
        """,
        {**known._asdict(), "kind": kind, "mean": mean, "limit": limit},
    )
    return dict(found.iter_rows())


def known_terms(reader: Reader, question: Question) -> dict[str, KnownTerms]:
    """For each kind of text, the terms of the question that occur in it."""
    if question.known_terms.get(reader.path) is None:
        asked = question_terms(reader, question.words)
        words = {concept: place for place, concept in enumerate(dict.fromkeys(term.concept for term in asked))}
        hashed = {number_of(f"{kind} {term}"): (kind, term) for kind in _SEARCHED for _, term in asked}
        found = reader.rows(
            "SELECT term, texts FROM search.posting_terms WHERE term IN (SELECT unnest($terms::UBIGINT[]))",
            {"terms": list(hashed)},
        )
        texts = {hashed[number]: (number, n) for number, n in found.iter_rows()}
        known: dict[str, KnownTerms] = {}
        for kind in _SEARCHED:
            for concept, term in asked:
                if (kind, term) not in texts:
                    continue
                number, n = texts[kind, term]
                total, _ = reader.posting_statistics[kind]
                terms = known.setdefault(kind, KnownTerms([], [], []))
                terms.terms.append(number)
                terms.rarity.append(math.log(1 + (total - n + 0.5) / (n + 0.5)))
                terms.words.append(words[concept])
        question.known_terms[reader.path] = known
    return question.known_terms[reader.path]


def vector_scores(reader: Reader, kind: str, question: Question, limit: int, scope: Scope = EVERYTHING) -> Scores:
    """The rows of `kind` by cosine similarity, best first, ties by number.

    Raises:
        QueryError: the index was embedded by a model other than that of the questions, or its vectors had another
            length.
    """
    if reader.embedding is None:
        return {}
    model, dimensions = reader.embedding
    vector = question.vector(model)
    if len(vector) != dimensions:
        raise QueryError(
            f"The index has vectors of {dimensions} numbers, and {model} now gives {len(vector)}. Serve the model as "
            "it was during indexing, or index with GRAPHRAG_EMBEDDING_MODEL under the new one's name."
        )
    if not vector.any():
        return {}
    searched = _SEARCHED[kind]
    found = reader.rows(
        f"""
        SELECT number, round(array_inner_product(vector, $vector::FLOAT[{dimensions}]), 6)::DOUBLE AS similarity
        FROM embeddings WHERE kind = $kind AND {scope.allows(searched, "number")}
        ORDER BY similarity DESC, number LIMIT $limit
        """,
        {"kind": kind, "vector": vector, "limit": limit},
    )
    return dict(found.iter_rows())


def fuse(*rankings: Sequence[int], weights: Sequence[float] | None = None, k: int = FUSION_K) -> list[int]:
    """The numbers in the rankings (each best first) by the sum of weight / (k + rank), best first; ties by number."""
    scores: dict[int, float] = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, number in enumerate(ranking, 1):
            scores[number] = scores.get(number, 0.0) + weight / (k + rank)
    return sorted(scores, key=lambda number: (-round(scores[number], 12), number))
