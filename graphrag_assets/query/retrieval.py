"""Ranks rows by their text: BM25 and vectors; and by the time, version or document that a question names."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from graphrag_assets.embedded import periods
from graphrag_assets.errors import QueryError
from graphrag_assets.ids import number_of
from graphrag_assets.query.question import Question, question_terms, without_stop_words
from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.iso_dates import MONTHS, first_day, last_day
from graphrag_assets.text.words import search_words_of

FUSION_K = 60
CANDIDATES = 100
VECTOR_WEIGHT = 0.7
"""Of vectors beside BM25: 1 finds more on HotpotQA with `onnx:bge-small`, and as much less on synthetic news."""

# The kind of scope (`Scope.allows`) of the texts that a search reads: texts from outside it are not searched.
_SEARCHED = {"text_unit": "text_unit", "entity": "entity_text", "community_report": "community_report"}


Scores = dict[int, float]
"""Scores by number of the row, best first."""


class FoundTexts(NamedTuple):
    """The rows of a kind whose texts match a question best, by BM25 and by cosine similarity."""

    words: Scores
    vectors: Scores

    @property
    def scores(self) -> Scores:
        """By both, best first."""
        return text_scores(self.words, self.vectors)


def search_texts(reader: Reader, kind: str, question: Question, limit: int, scope: Scope = EVERYTHING) -> list[int]:
    """Return rows of `kind` (text_unit, entity, community_report) whose texts match the question best, best first."""
    scores = find_texts(reader, question, [kind], max(CANDIDATES, limit), scope)[kind].scores
    if kind == "text_unit":
        scores = with_preference(reader, question.text, scores, scope, limit)
    return list(scores)[:limit]


def text_scores(words: Scores, vectors: Scores) -> Scores:
    """Return the sum of BM25 and cosine similarity, best first; ties by number. BM25 alone is a share of its maximum.

    Each is spread from 0 to 1 over its best 100 rows: models differ in how close their cosines are to each other. So
    the first rows keep their order, whatever number of rows is asked for.
    """
    if not vectors:
        return scaled(words)
    by_words, by_vectors = _spread(words, fewer=0.0), _spread(vectors, fewer=min(vectors.values()))
    scores = {
        n: max(by_words.get(n, 0.0), 0.0) + VECTOR_WEIGHT * max(by_vectors.get(n, 0.0), 0.0) for n in (words | vectors)
    }
    beyond = {n: by_words.get(n, 0.0) + VECTOR_WEIGHT * by_vectors.get(n, 0.0) for n in scores}
    order = sorted(scores, key=lambda n: (-round(scores[n], 9), -round(beyond[n], 9), n))
    return {n: scores[n] for n in order}


def _spread(scores: Scores, fewer: float) -> Scores:
    """Return the scores, of which the best becomes 1 and the 100th 0; of fewer rows, `fewer` becomes 0."""
    ranked = sorted(scores.values(), reverse=True)
    least = ranked[CANDIDATES - 1] if len(ranked) >= CANDIDATES else fewer
    width = ranked[0] - least if ranked else 0.0
    return {number: (score - least) / width if width > 0 else 1.0 for number, score in scores.items()}


def scaled(scores: Scores) -> Scores:
    """Return the positive scores as shares of their maximum."""
    greatest = max(scores.values(), default=0.0)
    return {number: score / greatest for number, score in scores.items() if score > 0}


def word_scores(reader: Reader, kind: str, question: Question, limit: int, scope: Scope = EVERYTHING) -> Scores:
    """Return the rows of `kind` by words alone; see `find_texts`."""
    return find_texts(reader, question, [kind], limit, scope, by_vectors=False)[kind].words


def vector_scores(reader: Reader, kind: str, question: Question, limit: int, scope: Scope = EVERYTHING) -> Scores:
    """Return the rows of `kind` by vectors alone; see `find_texts`."""
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
    """Return the rows of each of these kinds whose texts match the question best, best first, ties by number.

    By BM25 (k1 = 1.2, b = 0.75; Robertson and Zaragoza 2009), where the rarity of a term is that in the whole index,
    whatever the scope; and by cosine similarity, if the index has vectors. One statement finds all.

    Raises:
        QueryError: the vectors of the index have another length than the question's.
    """
    parts, parameters = list[str](), dict[str, Any]()
    if by_words:
        allowed = (f"p.kind = '{kind}' AND {scope.allows(_SEARCHED[kind], 'number')}" for kind in kinds)
        parts.append(_BY_WORDS.format(allowed=" OR ".join(allowed)))
        terms = [(_hashed(kind, term), word) for kind in kinds for term, word in terms_of(reader, question)]
        parameters |= {"terms": [term for term, _ in terms], "words": [word for _, word in terms]}
    if by_vectors and (vector := _vector(reader, question)) is not None and vector.any():
        parameters["vector"] = vector
        for kind in kinds:
            allowed_of_kind = scope.allows(_SEARCHED[kind], "number")
            parts.append(_BY_VECTORS.format(kind=kind, dimensions=len(vector), allowed=allowed_of_kind))
    matches: dict[str, FoundTexts] = {kind: FoundTexts({}, {}) for kind in kinds}
    if not parts:
        return matches
    rows = reader.rows(" UNION ALL ".join(f"({part})" for part in parts), parameters | {"limit": limit}).rows()
    for kind, by_word, number, score in sorted(rows, key=lambda row: (-round(row[3], 9), row[2])):
        (matches[kind].words if by_word else matches[kind].vectors)[number] = score
    return matches


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
           round(array_inner_product(vector, $vector::FLOAT[{dimensions}]), 6)::DOUBLE AS score
    FROM embeddings WHERE kind = '{kind}' AND {allowed} ORDER BY score DESC, number LIMIT $limit
"""


def _hashed(kind: str, term: str) -> int:
    return number_of(f"{kind} {term}")


def terms_of(reader: Reader, question: Question) -> list[tuple[str, int]]:
    """Return the terms of the question, each with the place of its word."""
    if reader.path not in question.terms:
        terms = question_terms(reader, question.words)
        words = {concept: place for place, concept in enumerate(dict.fromkeys(term.concept for term in terms))}
        question.terms[reader.path] = [(term, words[concept]) for concept, term in terms]
    return question.terms[reader.path]


def rarity_of(reader: Reader, terms: Collection[str]) -> dict[str, float]:
    """Return the rarity among text units (BM25's idf) of those of the terms that occur in them."""
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


def _vector(reader: Reader, question: Question) -> np.ndarray | None:
    """Return the embedding of the question, which must have the length of those of the index; None if it has none."""
    if reader.embedding is None:
        return None
    assert question.vector is not None, "the question was not embedded"
    model, dimensions = reader.embedding
    if len(question.vector) != dimensions:
        raise QueryError(
            f"The index has vectors of {dimensions} numbers, and {model} now gives {len(question.vector)}. Serve the "
            "model as it was during indexing, or index with GRAPHRAG_EMBEDDING_MODEL under the new one's name."
        )
    return question.vector


def fuse(*rankings: Sequence[int], weights: Sequence[float] | None = None, k: int = FUSION_K) -> list[int]:
    """Return the numbers in the rankings (each best first) by the sum of weight / (k + rank), best first; ties by
    number.
    """
    scores: dict[int, float] = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, number in enumerate(ranking, 1):
            scores[number] = scores.get(number, 0.0) + weight / (k + rank)
    return sorted(scores, key=lambda number: (-round(scores[number], 12), number))


PREFERENCE = 0.5
"""Added to the score of a preferred passage, as a share of the best score of all."""
_VERSION = re.compile(r"\b(?:version|release|v)\.? ?(\d+(?:\.\d+)*)\b|\b(\d+\.\d+\.\d+)\b", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“„«»]([^\"“”„«»]+)[\"“”«»]")
_FILE = re.compile(r"[\w./-]*\w\.[A-Za-z]\w{1,4}\b")
_MAX_WORDS = 1  # of a question that has nothing else to search for


@dataclass(frozen=True)
class NamedSources:
    """What a question names: times, versions, and titles or files of documents, in lower case."""

    times: Sequence[tuple[str, str]] = ()
    versions: Sequence[str] = ()
    documents: Sequence[str] = ()

    @classmethod
    def of(cls, text: str) -> "NamedSources":
        """Those of the newest question of a conversation that names any."""
        for question in text.splitlines():
            versions = [one or other for one, other in _VERSION.findall(question)]
            documents = [name.strip(" .,").lower() for name in _QUOTED.findall(question) + _FILE.findall(question)]
            times = [(time.start or time.end, time.end) for time in periods(question)]
            if times or versions or documents:
                return cls(times, versions, documents)
        return cls()

    @property
    def context(self) -> str:
        """A regular expression for headings that have one of the months or versions."""
        written = [rf"v?{re.escape(version)}(?:$|[^\d.]|\.(?:\D|$))" for version in self.versions]
        for start, end in self.times:
            if len(start) > 4 and start[:7] == end[:7]:
                names = [name for name, number in MONTHS.items() if number == int(start[5:7])]
                written += [re.escape(start[:7]), rf"(?:{'|'.join(names)})\.? {start[:4]}"]
        return rf"(?i)(?:^|[^\w.])(?:{'|'.join(written)})" if written else ""


def preferred(reader: Reader, text: str, scope: Scope) -> list[int]:
    """Return the text units of what a question names, in the order of their documents; none if it names nothing."""
    named = NamedSources.of(text)
    if named == NamedSources():
        return []
    dated = reader.has_dates and bool(named.times)
    return reader.numbers(
        f"""
        SELECT human_readable_id FROM text_units
        WHERE {scope.allows("text_unit", "human_readable_id")} AND (document_id IN (
            SELECT id FROM documents
            WHERE list_has_any([lower(title), lower(source), parse_filename(lower(source))], $names::VARCHAR[])
               {"OR list_bool_or([document_date BETWEEN t.since AND t.until FOR t IN $times])" if dated else ""}
        ) OR ($context <> '' AND regexp_matches(context, $context)))
        ORDER BY human_readable_id
        """,
        {
            "names": list(named.documents),
            "context": named.context,
            **({"times": [_days(*time) for time in named.times]} if dated else {}),
        },
    )


def with_preference(reader: Reader, text: str, scores: dict[int, float], scope: Scope, limit: int) -> dict[int, float]:
    """Return the scores of text units, best first, those that the question prefers with more.

    Of a question without other words to search for, such as "What was decided in July 2025?", they are the first of
    all, even those without a score.
    """
    numbers = preferred(reader, text, scope)
    if not numbers:
        return scores
    greatest = max(scores.values(), default=0.0) or 1.0
    raised = {n: score + PREFERENCE * greatest if n in set(numbers) else score for n, score in scores.items()}
    if is_all_that_counts(reader, text):
        raised |= {n: scores.get(n, 0.0) + 2 * greatest for n in numbers[:limit]}
    return dict(sorted(raised.items(), key=lambda pair: (-round(pair[1], 9), pair[0])))


def is_all_that_counts(reader: Reader, text: str) -> bool:
    """Whether a question has hardly a word beside the time, version or document that it names."""
    named = " ".join(
        part for found in (_VERSION, _QUOTED, _FILE) for match in found.finditer(text) for part in [match[0]]
    )
    others = [w for w in search_words_of(text) if not w[0].isdigit() and w not in MONTHS and w not in named.lower()]
    return len(without_stop_words(reader, others)) <= _MAX_WORDS


def _days(start: str, end: str) -> dict[str, object]:
    return {"since": first_day(start), "until": last_day(end)}
