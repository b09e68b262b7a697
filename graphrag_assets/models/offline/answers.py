"""Answers without a model: the sentences of the evidence that answer best, quoted and cited.

No sentence is written here, only chosen: by how much of the question it covers, by whether it holds what the
question asks for (a date, a number, a person, a place), and by what earlier choices have covered already
(maximal marginal relevance, Carbonell and Goldstein 1998).
"""

import asyncio
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_assets.models.answering import (
    NO_ANSWER,
    PLAIN,
    AnswerOptions,
    Choice,
    Evidence,
    FollowUp,
    Mapped,
    Passage,
    Pieces,
    Point,
    Reply,
    Usage,
)
from graphrag_assets.models.offline import embeddings
from graphrag_assets.models.offline.asides import in_conversation, rate, suggest
from graphrag_assets.models.offline.questions import Asked, definition, names, names_in, stems
from graphrag_assets.models.offline.sentence_pool import REFERENCE, Candidate, candidates

MODEL = "offline/extractive"
MAX_SENTENCES = 5
_SENTENCES_PER_PART = 3  # for a question that asks one thing only
MAX_POINTS = 7
_MOST_DEFINING = 4
_LEAST_DEFINING = 0.35  # of the best one's score
_LEAST_SAYING = 0.5  # about the subject, and not only with its name in it

_LEAST_PRESENT = 0.5  # of the question's weight must stand somewhere in the evidence
_LEAST_OF_BEST = 0.6  # of the best sentence's score: what is further below is padding
_LEAST_OWN = 0.25  # of the question's weight, in a sentence that stands alone
_LEAST_DANGLING = 0.5  # the same of one that begins with "it" or "this"
_LEAST_COVERAGE = 0.3  # below it a sentence is not about the question
_LEAST_GAIN = 0.3  # of the best sentence's gain; what adds less is left out
_LEAST_POINT = 0.45  # of the best point's score, in a list of points
_COVERED = 0.3  # how much of a term's weight a chosen sentence uses up

# What speaks for a sentence besides the terms of the question in it; chosen on tests/ground_truth.json and on the
# supporting sentences of HotpotQA.
_SIMILARITY = 0.4  # its vector's
_PASSAGE = 0.4  # the whole passage covers the question
_KIND = 0.4  # it holds a date, number, name or place where one is asked for
_RANK = 0.2  # its passage was found early
_NEIGHBOUR = 0.1  # the sentence before or after it is in the answer
_REPETITION = 0.25  # against it: it resembles a chosen one

# What a sentence has of a term that stands only around it.
_FADING = 0.7  # per sentence back: "he" and "the ship" mean what was named before
_FOLLOWING = 0.3
_HEADING = 0.8
_SURROUNDINGS = 0.15
_SAME = 0.6  # of the shorter one's words: from here on two points say the same


@dataclass(frozen=True, slots=True)
class ExtractiveAnswerer:
    """The answerer of the embedded default: an `Answerer` that calls no model.

    Its work is done in threads, so that an event loop stays free. It heeds neither the form nor the language of
    `AnswerOptions`: it quotes.
    """

    model: str = MODEL

    async def arespond(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Reply:
        """One to five sentences of the evidence in reading order, each with its citation."""
        return await asyncio.to_thread(respond, in_conversation(question, options.history), evidence)

    async def stream_response(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Pieces:
        """`arespond` sentence by sentence."""
        reply = await self.arespond(question, evidence, options)
        for piece in _cited_sentences(reply.text):
            yield piece
        yield reply

    async def amap(
        self,
        question: str,
        evidence: Evidence,
        follow_ups: int = 0,
        main_question: str | None = None,
        options: AnswerOptions = PLAIN,
    ) -> Mapped:
        """The sentences that answer best as points, scored by what they cover of the question."""
        return await asyncio.to_thread(map_, in_conversation(question, options.history), evidence, follow_ups)

    async def areduce(
        self, question: str, points: Sequence[Point], options: AnswerOptions = PLAIN, drift: bool = False
    ) -> Reply:
        """A list of the best points, none repeating another."""
        return await asyncio.to_thread(reduce, in_conversation(question, options.history), points)

    async def stream_reduction(
        self, question: str, points: Sequence[Point], options: AnswerOptions = PLAIN, drift: bool = False
    ) -> Pieces:
        """`areduce` point by point."""
        reply = await self.areduce(question, points, options, drift)
        for piece in _cited_sentences(reply.text):
            yield piece
        yield reply

    async def ahypothesis(self, question: str, example: str) -> Reply:
        """The question itself: it holds the words to search with."""
        return Reply(question)

    async def arate(self, question: str, report: str, repeat: int = 0) -> tuple[float, Usage]:
        """0 to 5 by the part of the question's terms that the report has, and by similarity."""
        return await asyncio.to_thread(rate, question, report)

    async def aquestions(
        self, history: Sequence[str], evidence: Evidence, count: int = 5, options: AnswerOptions = PLAIN
    ) -> tuple[tuple[str, ...], Usage]:
        """Questions about the relationships, entities and claims of the evidence, in turn."""
        started = time.perf_counter()
        questions = await asyncio.to_thread(suggest, history, evidence.passages, count)
        return questions, Usage(seconds=time.perf_counter() - started)

    async def achoose(self, question: str, kinds: Mapping[str, str]) -> Choice:
        """Nothing: kinds of questions are told by the rules of `query/ask.py`."""
        return Choice("", "")


def respond(question: str, evidence: Evidence) -> Reply:
    """One to five sentences of the evidence in reading order, each with its citation."""
    started = time.perf_counter()
    asked = Asked.of(question)
    most = MAX_SENTENCES if asked.has_parts else _SENTENCES_PER_PART
    chosen = _choose(asked, candidates(evidence.passages), most)
    in_order = sorted(chosen, key=lambda pair: pair[0].order)
    text = " ".join(candidate.cited for candidate, _ in in_order) or NO_ANSWER
    return Reply(text, Usage(seconds=time.perf_counter() - started))


def map_(question: str, evidence: Evidence, follow_ups: int = 0) -> Mapped:
    """The sentences that answer best as points, scored by what they cover of the question."""
    started = time.perf_counter()
    asked = Asked.of(question)
    if asked.about_everything:
        points = _overview(evidence.passages)
    else:
        chosen = _choose(asked, candidates(evidence.passages), MAX_POINTS, standalone=True)
        points = [Point(candidate.cited, round(100 * score, 1)) for candidate, score in chosen]
    asked_next = _follow_ups(asked, points, follow_ups) if follow_ups else ()
    return Mapped(tuple(points), asked_next, Usage(seconds=time.perf_counter() - started))


def reduce(question: str, points: Sequence[Point]) -> Reply:
    """A list of the best points, none repeating another."""
    started = time.perf_counter()
    asked = Asked.of(question)
    points = _merged(points)
    words = [stems(REFERENCE.sub("", point.text)) for point in points]
    weights = asked.weights(words)
    scores = [
        round(point.score / 100 + asked.coverage(found, weights), 6) for point, found in zip(points, words, strict=True)
    ]
    kept: list[int] = []
    for place in sorted(range(len(points)), key=lambda i: (-scores[i], points[i].text)):
        enough = len(kept) == MAX_POINTS or (kept and scores[place] < _LEAST_POINT * scores[kept[0]])
        if not enough and all(_overlap(words[place], words[k]) < _SAME for k in kept):
            kept.append(place)
    text = "\n".join(f"- {points[place].text}" for place in kept) or NO_ANSWER
    return Reply(text, Usage(seconds=time.perf_counter() - started))


_END_OF_PIECE = re.compile(r"(?<=\])\s+")


def _cited_sentences(text: str) -> Iterator[str]:
    """`text` in pieces that end with a reference, white space included."""
    start = 0
    for end in (match.end() for match in _END_OF_PIECE.finditer(text)):
        yield text[start:end]
        start = end
    yield text[start:]


def _choose(
    asked: Asked, pool: Sequence[Candidate], most: int, standalone: bool = False
) -> list[tuple[Candidate, float]]:
    """The sentences that together answer the question best, with their scores (0 to 1), best first.

    `standalone`: each must be understood without the one before it, or else name what the question is about.
    """
    if not pool or not asked.terms:
        return []
    own = [stems(candidate.text) for candidate in pool]
    weights = asked.weights(own)
    has = _occurrences(asked, own)
    headings = _occurrences(asked, [stems(candidate.heading) for candidate in pool])
    present = np.maximum(has, headings).max(axis=0)
    if present @ asked.weights(own, by_rarity_alone=True) < _LEAST_PRESENT or (
        asked.named and asked.named.isdisjoint(set().union(*own))
    ):
        return []
    vectors = embeddings.embed([asked.text, *(candidate.text for candidate in pool)])
    if asked.subject:
        defining = _defining(asked.subject, pool, vectors)
        if defining:
            return defining
    matches = _matches(asked, pool, own, has, headings)
    coverage = matches @ weights
    eligible = coverage >= _LEAST_COVERAGE
    if standalone:
        least_own = np.where([candidate.dangles for candidate in pool], _LEAST_DANGLING, _LEAST_OWN)
        eligible &= has @ weights >= least_own
    kinds = np.array([[asked.holds(kind, candidate.text) for kind in asked.kinds] for candidate in pool], float)
    fixed = _SIMILARITY * np.clip(vectors[1:] @ vectors[0], 0, 1)
    fixed += _PASSAGE * _passage_coverage(asked, pool, own, weights)
    fixed += _RANK * np.array([1 / (1 + candidate.rank / 3) for candidate in pool])
    alone = coverage + _KIND * kinds.sum(axis=1) + fixed
    eligible &= alone >= _LEAST_OF_BEST * np.where(eligible, alone, 0).max()
    best_possible = 1 + _SIMILARITY + _PASSAGE + _RANK + _KIND * len(asked.kinds)
    wanted = np.ones(len(asked.kinds))
    neighbours, repeated = np.zeros(len(pool)), np.zeros(len(pool))
    chosen: list[tuple[Candidate, float]] = []
    least = 0.0
    while eligible.any() and len(chosen) < most:
        gain = matches @ weights + _KIND * (kinds @ wanted) + fixed
        gain += _NEIGHBOUR * neighbours - _REPETITION * repeated
        # Rounded, so that the last bit of a sum does not decide; then the earlier sentence wins.
        best = int(np.argmax(np.where(eligible, gain.round(6), -np.inf)))
        least = least or _LEAST_GAIN * gain[best]
        if gain[best] < least:
            break
        chosen.append((pool[best], float(np.clip(gain[best] / best_possible, 0, 1))))
        if has[best].all() and kinds[best].all():  # nothing is left to be said
            break
        eligible[best] = False
        weights = weights * (1 - _COVERED * matches[best])
        wanted = wanted * (1 - _COVERED * kinds[best])
        repeated = np.maximum(repeated, np.clip(vectors[1:] @ vectors[1 + best], 0, 1))
        for place, candidate in enumerate(pool):
            if candidate.before == best or pool[best].before == place:
                neighbours[place] = 1
    return chosen


def _defining(subject: str, pool: Sequence[Candidate], vectors: np.ndarray) -> list[tuple[Candidate, float]]:
    """Up to four sentences that say who or what the subject is, then what it is linked with most.

    A sentence counts more when it defines the subject, when it describes its entity, and when several of its
    relationships and claims rest on it.
    """
    says = np.array([definition(subject, c.text) / (2 if c.dangles else 1) for c in pool])
    links = np.array([_rows_about(subject, candidate, ("Relationships", "Claims")) for candidate in pool], float)
    described = np.array([_rows_about(subject, candidate, ("Entities",)) > 0 for candidate in pool], float)
    near = np.clip(vectors[1:] @ vectors[0], 0, 1)
    scores = (2 * says + 0.5 * described + np.log1p(links) / np.log1p(max(links.max(), 1)) + 0.5 * near) / 4
    scores *= says >= (_LEAST_SAYING if says.max() >= _LEAST_SAYING else says.max())
    scores *= says > 0
    repeated = np.zeros(len(pool))
    chosen: list[tuple[Candidate, float]] = []
    while len(chosen) < _MOST_DEFINING:
        gain = (scores - _REPETITION * repeated) * (scores > 0)
        best = int(np.argmax(gain.round(6)))
        if gain[best] <= (_LEAST_DEFINING * chosen[0][1] if chosen else 0):
            break
        chosen.append((pool[best], float(gain[best])))
        scores[best] = 0
        repeated = np.maximum(repeated, np.clip(vectors[1:] @ vectors[1 + best], 0, 1))
    return chosen


def _rows_about(subject: str, candidate: Candidate, tables: Sequence[str]) -> int:
    return sum(table in tables and names(subject, title) is not None for table, title in candidate.rows)


def _matches(
    asked: Asked, pool: Sequence[Candidate], own: Sequence[set[str]], has: np.ndarray, headings: np.ndarray
) -> np.ndarray:
    """(candidates, terms) from 0 to 1: 1 where the sentence has the term, less where only its surroundings do.

    Several weak signs add up as independent ones do: 1 - (1 - a)(1 - b)…
    """
    before, after = np.zeros_like(has), np.zeros_like(has)
    for place, candidate in enumerate(pool):
        if candidate.before is not None:  # a sentence that passages share may have a later one before it
            before[place] = _FADING * np.maximum(has[candidate.before], before[candidate.before])
            after[candidate.before] = np.maximum(after[candidate.before], _FOLLOWING * has[place])
    around = _SURROUNDINGS * _occurrences(asked, _passage_words(pool, own))
    missing = [1 - sign for sign in (has, before, after, _HEADING * headings, around)]
    return np.asarray(1 - np.prod(missing, axis=0))


def _occurrences(asked: Asked, texts: Sequence[set[str]]) -> np.ndarray:
    return np.array([[term in words for term in asked.terms] for words in texts], float)


def _passage_words(pool: Sequence[Candidate], own: Sequence[set[str]]) -> list[set[str]]:
    """For each candidate all words of its passage."""
    passages: dict[int, set[str]] = {}
    for candidate, words in zip(pool, own, strict=True):
        passages.setdefault(candidate.rank, set()).update(words)
    return [passages[candidate.rank] for candidate in pool]


def _passage_coverage(
    asked: Asked, pool: Sequence[Candidate], own: Sequence[set[str]], weights: np.ndarray
) -> np.ndarray:
    """For each candidate, how much of the question its passage covers with its headings, 0 to 1."""
    with_headings = [words | stems(c.heading) for c, words in zip(pool, own, strict=True)]
    return np.asarray(_occurrences(asked, _passage_words(pool, with_headings)) @ weights)


def _overview(passages: Sequence[Passage]) -> list[Point]:
    """The opening sentences of the passages, weighed by how much of the corpus these stand for."""
    points = []
    for passage in sorted(passages, key=lambda p: (-p.weight, p.number))[:MAX_POINTS]:
        opening = [candidate for candidate in candidates([passage]) if not candidate.dangles][:2]
        if opening:
            text = " ".join(c.text for c in opening)
            points.append(Point(f"{text} [Data: {passage.table} ({passage.number})]", round(100 * passage.weight, 1)))
    return points


def _follow_ups(asked: Asked, points: Sequence[Point], most: int) -> tuple[FollowUp, ...]:
    """The question again with regard to each name that the points bring up and the question does not have."""
    scores: dict[str, float] = {}
    for point in points:
        for name in names_in(point.text):
            if not stems(name) <= set(asked.terms):
                scores[name] = max(scores.get(name, 0.0), point.score)
    best = sorted(scores, key=lambda name: (-scores[name], name))[:most]
    return tuple(FollowUp(asked.with_regard_to(name), scores[name]) for name in best)


def _merged(points: Sequence[Point]) -> list[Point]:
    """Each statement once, with its best score and the longest of its references."""
    best: dict[str, Point] = {}
    for point in points:
        statement = REFERENCE.sub("", point.text)
        known = best.get(statement, point)
        text = max(known.text, point.text, key=lambda t: (len(t), t))
        best[statement] = Point(text, max(known.score, point.score))
    return list(best.values())


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / (min(len(one), len(other)) or 1)
