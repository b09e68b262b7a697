"""Ranks rows by their text: BM25 and vectors."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

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
"""Of vectors beside BM25: 1 finds more on HotpotQA with `onnx:bge-small`, and as much less on synthetic news."""

_LONGEST_TITLE = 8
_WORD = re.compile(r"\S+")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]{{2,}}")
# The kind of scope (`Scope.allows`) of the texts that a search reads: texts from outside it are not searched.
_SEARCHED = {"text_unit": "text_unit", "entity": "entity_text", "community_report": "community_report"}


Scores = dict[int, float]
"""Scores by number of the row, best first."""


MAX_QUESTION_CHARACTERS = 32_000  # about 8,000 tokens; words that are not in the index take longest, 5 s so many


@dataclass(frozen=True)
class Question:
    """A question with what searches derive from it, each computed once: its terms, its vector and its names.

    `vector_text`: is embedded instead of the text if given, such as DRIFT's hypothetical answer. `of_reports`: is
    searched for in reports instead. `terms`: by published file, each with the place of its word. `names`: those of
    entities (key, number of the entity) by published file and scope.
    """

    text: str
    vector_text: str | None = None
    of_reports: "Question | None" = None
    terms: dict[Path, list[tuple[str, int]]] = field(default_factory=dict, init=False, repr=False, compare=False)
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

    def of(self, kind: str) -> "Question":
        """What rows of a kind are searched for."""
        return self.for_reports if kind == "community_report" else self

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


class FoundTexts(NamedTuple):
    """The rows of a kind whose texts match a question best, by BM25 and by cosine similarity."""

    words: Scores
    vectors: Scores

    @property
    def scores(self) -> Scores:
        """By both, best first."""
        return text_scores(self.words, self.vectors)


def search_texts(reader: Reader, kind: str, question: Question, limit: int, scope: Scope = EVERYTHING) -> list[int]:
    """The rows of `kind` (text_unit, entity, community_report) whose texts match the question best, best first."""
    scores = find_texts(reader, question, [kind], max(CANDIDATES, limit), scope)[kind].scores
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
    """The rows of `kind` by words alone; see `find_texts`."""
    return find_texts(reader, question, [kind], limit, scope, by_vectors=False)[kind].words


def vector_scores(reader: Reader, kind: str, question: Question, limit: int, scope: Scope = EVERYTHING) -> Scores:
    """The rows of `kind` by vectors alone; see `find_texts`."""
    return find_texts(reader, question, [kind], limit, scope, by_words=False)[kind].vectors


def find_texts(
    reader: Reader,
    question: Question,
    kinds: Sequence[str],
    limit: int,
    scope: Scope = EVERYTHING,
    by_words: bool = True,
    by_vectors: bool = True,
) -> dict[str, FoundTexts]:
    """The rows of each of these kinds whose texts match the question best, best first, ties by number.

    By BM25 (k1 = 1.2, b = 0.75; Robertson and Zaragoza 2009), where the rarity of a term is that in the whole index,
    whatever the scope; and by cosine similarity, if the index has vectors. One statement finds all.

    Raises:
        QueryError: the index was embedded by a model other than that of the questions, or its vectors had another
            length.
    """
    parts, given = list[str](), dict[str, Any]()
    if by_words:
        allowed = (f"p.kind = '{kind}' AND {scope.allows(_SEARCHED[kind], 'number')}" for kind in kinds)
        parts.append(_BY_WORDS.format(allowed=" OR ".join(allowed)))
        terms = [(_hashed(kind, term), word) for kind in kinds for term, word in terms_of(reader, question.of(kind))]
        given |= {"terms": [term for term, _ in terms], "words": [word for _, word in terms]}
    for kind in kinds if by_vectors and reader.embedding else ():
        vector = _vector(reader, question.of(kind))
        if vector.any():
            allowed_of_kind = scope.allows(_SEARCHED[kind], "number")
            parts.append(_BY_VECTORS.format(kind=kind, dimensions=len(vector), allowed=allowed_of_kind))
            given[f"{kind}_vector"] = vector
    found: dict[str, FoundTexts] = {kind: FoundTexts({}, {}) for kind in kinds}
    if not parts:
        return found
    rows = reader.rows(" UNION ALL ".join(f"({part})" for part in parts), given | {"limit": limit}).rows()
    for kind, by_word, number, score in sorted(rows, key=lambda row: (-round(row[3], 9), row[2])):
        (found[kind].words if by_word else found[kind].vectors)[number] = score
    return found


# Of the terms of one word, the best counts in a text.
_BY_WORDS = """
    WITH asked AS (SELECT unnest($terms::UBIGINT[]) AS term, unnest($words::INT[]) AS word),
    scores AS (
        SELECT p.kind, number, max(
            ln(1 + (s.texts - t.texts + 0.5) / (t.texts + 0.5))
            * n * 2.2 / (n + 1.2 * (0.25 + 0.75 * length / s.mean_length))
        ) AS score
        FROM asked JOIN search.posting_terms t USING (term) JOIN search.postings p USING (term)
        JOIN search.posting_statistics s USING (kind)
        WHERE {allowed} GROUP BY p.kind, number, word
    )
    SELECT kind, true AS by_words, number, sum(score) AS score FROM scores GROUP BY kind, number
    QUALIFY row_number() OVER (PARTITION BY kind ORDER BY round(sum(score), 9) DESC, number) <= $limit
"""
_BY_VECTORS = """
    SELECT kind, false AS by_words, number,
           round(array_inner_product(vector, ${kind}_vector::FLOAT[{dimensions}]), 6)::DOUBLE AS score
    FROM embeddings WHERE kind = '{kind}' AND {allowed} ORDER BY score DESC, number LIMIT $limit
"""


def _hashed(kind: str, term: str) -> int:
    return number_of(f"{kind} {term}")


def terms_of(reader: Reader, question: Question) -> list[tuple[str, int]]:
    """The terms of the question, each with the place of its word."""
    if reader.path not in question.terms:
        asked = question_terms(reader, question.words)
        words = {concept: place for place, concept in enumerate(dict.fromkeys(term.concept for term in asked))}
        question.terms[reader.path] = [(term, words[concept]) for concept, term in asked]
    return question.terms[reader.path]


def rarity_of(reader: Reader, terms: Collection[str]) -> dict[str, float]:
    """The rarity among text units (BM25's idf) of those of the terms that occur in them."""
    hashed = {_hashed("text_unit", term): term for term in terms}
    rows = reader.rows(
        """
        SELECT term, ln(1 + (s.texts - t.texts + 0.5) / (t.texts + 0.5))
        FROM search.posting_terms t JOIN search.posting_statistics s ON s.kind = 'text_unit'
        WHERE term IN (SELECT unnest($terms::UBIGINT[]))
        """,
        {"terms": list(hashed)},
    )
    return {hashed[number]: rarity for number, rarity in rows.iter_rows()}


def _vector(reader: Reader, question: Question) -> np.ndarray:
    """The embedding of the question by the model of the index, and of the same length."""
    assert reader.embedding is not None
    model, dimensions = reader.embedding
    vector = question.vector(model)
    if len(vector) != dimensions:
        raise QueryError(
            f"The index has vectors of {dimensions} numbers, and {model} now gives {len(vector)}. Serve the model as "
            "it was during indexing, or index with GRAPHRAG_EMBEDDING_MODEL under the new one's name."
        )
    return vector


def fuse(*rankings: Sequence[int], weights: Sequence[float] | None = None, k: int = FUSION_K) -> list[int]:
    """The numbers in the rankings (each best first) by the sum of weight / (k + rank), best first; ties by number."""
    scores: dict[int, float] = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, number in enumerate(ranking, 1):
            scores[number] = scores.get(number, 0.0) + weight / (k + rank)
    return sorted(scores, key=lambda number: (-round(scores[number], 12), number))
