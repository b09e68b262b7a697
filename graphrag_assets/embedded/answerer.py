"""Answers without a model: the sentences of the evidence that answer best, quoted and cited.

Sentences are selected, not written: by how much of the question they cover, by whether they contain what the
question asks for (a date, a number, a person, a place), and by what earlier selections already cover
(maximal marginal relevance, Carbonell and Goldstein 1998).

Sentences are an answer when they cover at least half of the question, each of its words counting by how rare it is
in the evidence. Otherwise they are shown as what comes closest, after `CLOSEST`.
"""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graphrag_assets.answering import (
    CLOSEST,
    NO_ANSWER,
    PLAIN,
    AnswerOptions,
    Choice,
    Evidence,
    FollowUp,
    Linked,
    Mapped,
    Passage,
    Pieces,
    Point,
    Relevance,
    Reply,
    Rewritten,
    Usage,
)
from graphrag_assets.embedded.candidate_sentences import Candidate, candidates, in_full, in_words, lines
from graphrag_assets.embedded.conversation import in_conversation, rate, suggest
from graphrag_assets.embedded.questions import Asked, definition, language_of_question, names, names_in, spelled, stems
from graphrag_assets.embedded.term_matches import term_matches
from graphrag_assets.references import reference, without_references
from graphrag_assets.text import sentences

MODEL = "embedded/extractive"
MIN_DIRECT = 1.0
"""Minimum score of a point that answers the question; the closest points score less."""
MAX_SENTENCES = 5
_SENTENCES_PER_PART = 3  # for a question that asks one thing only
MAX_POINTS = 7
_MAX_DEFINING = 4
_MIN_DEFINING = 0.35  # of the best one's score
_MIN_SAYING = 0.5  # about the subject, and not only with its name in it

_MIN_ANSWERED = 0.5  # of the question's weight: minimum coverage of a direct answer
_MIN_RELEVANT = 0.5  # of the question's terms, in a passage that is relevant
_MIN_MATCH = 0.3  # of a word that counts as one of the two that an answer must have
_MAX_WORDS_OF_ONE = 6  # a question of more words is not expected to be answered by one sentence
_MAX_CLOSEST = 3

_MIN_OF_BEST = 0.6  # of the best sentence's score: what is further below is padding
_MIN_OWN = 0.25  # of the question's weight, in a sentence that stands alone
_MIN_COVERAGE = 0.3  # below it a sentence is not about the question
_MIN_GAIN = 0.3  # of the best sentence's gain; what adds less is left out
_MIN_POINT = 0.45  # of the best point's score, in a list of points
_COVERED = 0.3  # how much of a term's weight a chosen sentence uses up

# Weights of further evidence for a sentence, tuned on tests/ground_truth.json and on the
# supporting sentences of HotpotQA.
_SIMILARITY = 0.4  # its vector's
_PASSAGE = 0.4  # the whole passage covers the question
_KIND = 0.4  # it holds a date, number, name or place where one is asked for
_RANK = 0.2  # its passage was found early
_NEIGHBOR = 0.1  # the sentence before or after it is in the answer
_REPETITION = 0.25  # against it: it resembles a chosen one

_PIECE = re.compile(r".+?(?:\]\s+|\Z)", re.DOTALL)  # ends with a reference, white space included
_SAME = 0.6  # of the shorter one's words: from here on two points say the same


@dataclass(frozen=True, slots=True)
class EmbeddedAnswerer:
    """The answerer of the embedded default: an `Answerer` that calls no model.

    Its work is done in threads, so that an event loop stays free. It ignores the form and the language of
    `AnswerOptions`, because it quotes.
    """

    model: str = MODEL
    min_direct_score: ClassVar[float] = MIN_DIRECT

    async def arespond(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Reply:
        """One to five sentences of the evidence in reading order, each with its citation."""
        return await asyncio.to_thread(
            respond, in_conversation(question, options.history), evidence, options.by_meaning
        )

    async def stream_response(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Pieces:
        """`arespond` sentence by sentence."""
        reply = await self.arespond(question, evidence, options)
        for piece in (*_PIECE.findall(reply.text), reply):
            yield piece

    async def amap(
        self,
        question: str,
        evidence: Evidence,
        follow_ups: int = 0,
        main_question: str | None = None,
        options: AnswerOptions = PLAIN,
    ) -> Mapped:
        """The sentences that answer best as points, scored by what they cover of the question."""
        return await asyncio.to_thread(
            map_, in_conversation(question, options.history), evidence, follow_ups, options.by_meaning
        )

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
        for piece in (*_PIECE.findall(reply.text), reply):
            yield piece

    async def ahypothesis(self, question: str, example: str) -> Reply:
        """The question itself: it contains the words to search for."""
        return Reply(question)

    async def arate(self, question: str, reports: Sequence[str], repeat: int = 0) -> tuple[list[float | None], Usage]:
        """0 to 5 by the part of the question's terms that each report has."""
        started = time.perf_counter()
        ratings = await asyncio.to_thread(lambda: [rate(question, report) for report in reports])
        return list(ratings), Usage(seconds=time.perf_counter() - started)

    async def alink(self, question: str, options: AnswerOptions = PLAIN) -> Linked:
        """Nothing: only the names and words of the question are known."""
        return Linked()

    async def arewrite(
        self, question: str, concepts: Sequence[str], count: int, options: AnswerOptions = PLAIN
    ) -> Rewritten:
        """The question in its conversation, whole: it is ranked by its words, which parts would have as well."""
        return Rewritten(in_conversation(question, options.history))

    async def atest(
        self, question: str, passages: Sequence[Passage], rarity: Mapping[str, float] | None = None
    ) -> Relevance:
        """The passages with most of what the question names, by sentences."""
        return await asyncio.to_thread(relevance_of, question, passages, rarity or {})

    async def aquestions(
        self, history: Sequence[str], evidence: Evidence, count: int = 5, options: AnswerOptions = PLAIN
    ) -> tuple[tuple[str, ...], Usage]:
        """Questions about the relationships, entities and claims of the evidence, in turn."""
        started = time.perf_counter()
        questions = await asyncio.to_thread(suggest, history, evidence.passages, count)
        return questions, Usage(seconds=time.perf_counter() - started)

    async def achoose(self, question: str, kinds: Mapping[str, str], options: AnswerOptions = PLAIN) -> Choice:
        """Nothing: kinds of questions are decided by the rules of `query/ask.py`."""
        return Choice("", "")


@dataclass(frozen=True, slots=True)
class _Selection:
    """Sentences with their scores, best first; `direct`: together they answer the question."""

    chosen: tuple[tuple[Candidate, float], ...] = ()
    direct: bool = False

    def __bool__(self) -> bool:
        return bool(self.chosen)


def respond(question: str, evidence: Evidence, by_meaning: bool = False) -> Reply:
    """One to five sentences of the evidence in reading order, each with its citation; or those that come closest.

    `by_meaning`: as in `AnswerOptions`.
    """
    asked = _asked(question, evidence.passages)
    if asked.about_everything:
        text = _listed([point.text for point in _overview(evidence.passages, asked)])
        return Reply(text or NO_ANSWER)
    pool = candidates(evidence.passages, asked.language)
    most = MAX_SENTENCES if asked.has_parts else _SENTENCES_PER_PART
    found = _choose(asked, pool, most, by_meaning=by_meaning) or _closest_lines(asked, evidence.passages)
    if found.direct:
        text = _in_reading_order([candidate for candidate, _ in found.chosen], pool, best_first=bool(asked.subject))
    elif found.chosen:
        text = f"{CLOSEST}\n{_listed([in_words(candidate, pool) for candidate, _ in found.chosen])}"
    else:
        text = NO_ANSWER
    return Reply(text)


def map_(question: str, evidence: Evidence, follow_ups: int = 0, by_meaning: bool = False) -> Mapped:
    """The sentences that answer best as points, scored by what they cover of the question.

    Where none answers, those that come closest, with scores below 1.
    """
    asked = _asked(question, evidence.passages)
    if asked.about_everything:
        points = _overview(evidence.passages, asked)
    else:
        pool = candidates(evidence.passages, asked.language)
        found = _choose(asked, pool, MAX_POINTS, standalone=True, by_meaning=by_meaning)
        found = found or _closest_lines(asked, evidence.passages)
        points = [
            Point(in_words(candidate, pool), max(round(100 * score, 1), MIN_DIRECT) if found.direct else score)
            for candidate, score in found.chosen
        ]
    answering = [point for point in points if point.score >= MIN_DIRECT]
    asked_next = _follow_ups(asked, answering, follow_ups) if follow_ups else ()
    return Mapped(tuple(points), asked_next)


def relevance_of(question: str, passages: Sequence[Passage], rarity: Mapping[str, float]) -> Relevance:
    """The passages with half of the question by rarity, at least two of its terms and one of its names, if any.

    `rarity`: of terms in the whole index; among passages that were found by a term it says nothing. A term without a
    rarity has the mean one. A sentence helps if it has half of what the best one has.
    """
    asked = _asked(question, passages)
    texts = [[p.text[s.start : s.end] for s in sentences(p.text)] for p in passages]
    has = asked.occurrences([asked.words(f"{p.title} {p.text}") for p in passages])
    known = float(np.mean(list(rarity.values()))) if rarity else 1.0
    shares = asked.shares_by(np.array([rarity.get(term, known) for term in asked.terms]))
    share = has @ shares if len(asked.terms) else np.zeros(len(passages))
    named = [[place for place, term in enumerate(asked.terms) if term in name] for name in asked.names]
    relevant: dict[int, tuple[int, ...]] = {}
    for place, passage in enumerate(passages):
        enough = (has[place] >= _MIN_MATCH).sum() >= min(2, len(asked.terms))
        enough &= not named or any((has[place][name] >= _MIN_MATCH).any() for name in named)
        if share[place] < _MIN_RELEVANT or not enough or not texts[place]:
            continue
        own = asked.occurrences([asked.words(text) for text in texts[place]]) @ shares
        helping = np.flatnonzero(own >= max(own.max() / 2, 1e-9))
        relevant[passage.number] = tuple((helping + 1).tolist()) or (1,)
    return Relevance(relevant)


def reduce(question: str, points: Sequence[Point]) -> Reply:
    """A list of the best points, none repeating another; of those that come closest, if none answers."""
    asked = Asked.of(question, language_of_question(question, points[0].text if points else ""))
    answering = [point for point in points if point.score >= MIN_DIRECT]
    points = _merged(answering or points)
    words = [asked.words(without_references(point.text)) for point in points]
    has = asked.occurrences(words)
    covered = has @ asked.weights(has)
    scores = [round(point.score / 100 + part, 6) for point, part in zip(points, covered, strict=True)]
    most = MAX_POINTS if answering else _MAX_CLOSEST
    kept: list[int] = []
    for place in sorted(range(len(points)), key=lambda i: (-scores[i], points[i].text)):
        enough = len(kept) == most or (kept and scores[place] < _MIN_POINT * scores[kept[0]])
        same = (len(words[place] & words[k]) / (min(len(words[place]), len(words[k])) or 1) for k in kept)
        if not enough and max(same, default=0) < _SAME:
            kept.append(place)
    text = _listed([points[place].text for place in kept]) or NO_ANSWER
    if points and not answering:
        text = f"{CLOSEST}\n{text}"
    return Reply(text)


def _asked(question: str, passages: Sequence[Passage]) -> Asked:
    texts = [passage.text for passage in passages if passage.table == "Sources"] or [p.text for p in passages]
    return Asked.of(question, language_of_question(question, texts[0] if texts else ""))


def _listed(texts: Sequence[str]) -> str:
    """The texts as a list; a text contained in another is left out."""
    distinct = [text for text in dict.fromkeys(texts) if not any(text != other and text in other for other in texts)]
    return "\n".join(f"- {text}" for text in distinct)


def _in_reading_order(chosen: Sequence[Candidate], pool: Sequence[Candidate], best_first: bool) -> str:
    """The chosen sentences with those that they refer to, each once; `best_first`: the first, then the others."""
    shown = {each.order: each.cited for candidate in chosen for each in in_full(candidate, pool)}
    shown |= {each.order: in_words(each, pool) for each in chosen if each.order not in shown}
    first = [each.order for each in in_full(chosen[0], pool)] if best_first else []
    return " ".join(shown[order] for order in dict.fromkeys([*first, *sorted(shown)]))


def _preferring(understood: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """The eligible sentences that are understandable alone or after the sentences before them; else all eligible."""
    both = eligible & understood
    return both if both.any() else eligible


def _choose(
    asked: Asked, pool: Sequence[Candidate], most: int, standalone: bool = False, by_meaning: bool = False
) -> _Selection:
    """The sentences that together answer the question best, with their scores (0 to 1), best first.

    Where they do not answer it, those that come closest, of the sentences that share a word with it, or whose heading
    does; if none does and the passages are ranked `by_meaning`, of the first passages.

    `standalone`: each must itself share words with the question, not only be next to a sentence that does.
    """
    if not pool:
        return _Selection()
    understood = np.array([bool(in_full(candidate, pool)) for candidate in pool], bool)
    if asked.subject:
        defining = _defining(spelled(asked.subject, [c.text for c in pool]), asked.text, pool, understood)
        if defining:
            return _Selection(tuple(defining), direct=True)
    has, headings, matches, passages = term_matches(asked, pool)
    weights = asked.weights(has)
    kinds = np.array([[asked.holds(kind, c.text) for kind in asked.kinds] for c in pool], float)
    if asked.asks_one_fact:  # all that is asked for stands in one sentence: it needs no other
        understood |= has.all(axis=1) & kinds.all(axis=1)
    of_passage = _PASSAGE * (passages @ weights)
    of_passage += _RANK * np.array([1 / (1 + candidate.rank / 3) for candidate in pool])
    best_possible = 1 + _SIMILARITY + _PASSAGE + _RANK + _KIND * len(asked.kinds)
    coverage = matches @ weights
    eligible = np.asarray(coverage >= _MIN_COVERAGE)
    if standalone:
        eligible &= has @ weights >= _MIN_OWN
    eligible = _preferring(understood, eligible)
    vectors, similarity = _compared(asked.text, pool, eligible)
    fixed = of_passage + _SIMILARITY * similarity
    alone = coverage + _KIND * kinds.sum(axis=1) + fixed
    eligible &= alone >= _MIN_OF_BEST * np.where(eligible, alone, 0).max()
    chosen = _covering(pool, matches, kinds, weights, fixed, vectors, has, eligible, most, asked.asks_one_fact)
    if chosen and _is_answered(asked, has, headings, matches, [place for place, _ in chosen]):
        return _Selection(tuple((pool[place], float(np.clip(g / best_possible, 0, 1))) for place, g in chosen), True)
    near = np.asarray(has.any(axis=1))
    if not near.any():
        near = np.asarray(headings.any(axis=1))
    if by_meaning and asked.terms and not near.any():
        near = np.array([candidate.rank < _MAX_CLOSEST for candidate in pool])
    near = _preferring(understood, near)
    _, similarity = _compared(asked.text, pool, near)
    alone = coverage + _KIND * kinds.sum(axis=1) + of_passage + _SIMILARITY * similarity
    ranked = sorted(np.flatnonzero(near).tolist(), key=lambda place: (-round(alone[place], 6), place))[:_MAX_CLOSEST]
    return _Selection(tuple((pool[i], min(round(alone[i] / best_possible, 4), 0.99) * MIN_DIRECT) for i in ranked))


def _compared(question: str, pool: Sequence[Candidate], places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of the words of the pool, and their cosine with the question; zeros where `places` is false.

    Words weigh by their rarity in the pool.
    """
    texts = [stems(text) for text in (question, *(candidate.text for candidate in pool))]
    column = {word: n for n, word in enumerate(sorted(set().union(*texts)))}
    vectors = np.zeros((len(texts), len(column)), np.float32)
    for row, words in zip(vectors, texts, strict=True):
        row[[column[word] for word in words]] = 1
    vectors *= np.log(len(texts) / vectors.sum(axis=0)) + 1
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    vectors[1:][~places] = 0
    return vectors[1:], vectors[1:] @ vectors[0]


def _closest_lines(asked: Asked, passages: Sequence[Passage]) -> _Selection:
    """The lines with most of the question, where no sentence has a word of it: a name in the header of an e-mail."""
    pool = lines(passages)
    has = asked.occurrences([asked.words(candidate.text) for candidate in pool])
    coverage = np.round(has @ asked.weights(has), 4)
    ranked = sorted(np.flatnonzero(coverage).tolist(), key=lambda place: (-coverage[place], place))
    ranked = [i for i in ranked if not any(i != k and pool[i].text in pool[k].text for k in ranked)][:_MAX_CLOSEST]
    return _Selection(tuple((pool[i], min(float(coverage[i]), 0.99) * MIN_DIRECT) for i in ranked))


def _covering(
    pool: Sequence[Candidate],
    matches: np.ndarray,
    kinds: np.ndarray,
    weights: np.ndarray,
    fixed: np.ndarray,
    vectors: np.ndarray,
    has: np.ndarray,
    eligible: np.ndarray,
    most: int,
    one_will_do: bool,
) -> list[tuple[int, float]]:
    """Up to `most` eligible places in the pool with their gains, chosen greedily for what of the question is uncovered.

    `one_will_do`: a sentence with all words of the question and all that it asks for is enough.
    """
    eligible = eligible.copy()
    wanted = np.ones(kinds.shape[1])
    neighbors, repeated = np.zeros(len(pool)), np.zeros(len(pool))
    chosen: list[tuple[int, float]] = []
    least = 0.0
    while eligible.any() and len(chosen) < most:
        gain = matches @ weights + _KIND * (kinds @ wanted) + fixed
        gain += _NEIGHBOR * neighbors - _REPETITION * repeated
        # Rounded, so that the last bit of a sum does not decide; then the earlier sentence wins.
        best = int(np.argmax(np.where(eligible, gain.round(6), -np.inf)))
        least = least or _MIN_GAIN * gain[best]
        if gain[best] < least:
            break
        chosen.append((best, float(gain[best])))
        if one_will_do and has[best].all() and kinds[best].all():  # nothing more to add
            break
        eligible[best] = False
        weights = weights * (1 - _COVERED * matches[best])
        wanted = wanted * (1 - _COVERED * kinds[best])
        repeated = np.maximum(repeated, np.clip(vectors @ vectors[best], 0, 1))
        for place, candidate in enumerate(pool):
            if candidate.before == best or pool[best].before == place:
                neighbors[place] = 1
    return chosen


def _is_answered(
    asked: Asked, has: np.ndarray, headings: np.ndarray, matches: np.ndarray, chosen: Sequence[int]
) -> bool:
    """Whether the chosen sentences, with their surroundings, cover enough of the question.

    One sentence must do, and with two words of the question if it has them; only a question of several parts, or of
    many words, may be answered by several. The evidence must contain every name of the question.
    """
    stands = np.maximum(has, headings).any(axis=0)
    if any(not any(s for s, term in zip(stands, asked.terms, strict=True) if term in name) for name in asked.names):
        return False
    covered = matches[chosen]
    if asked.asks_several or len(asked.terms) > _MAX_WORDS_OF_ONE:
        covered = 1 - np.prod(1 - covered, axis=0, keepdims=True)
    enough = covered @ asked.shares(has) >= _MIN_ANSWERED
    enough &= (covered >= _MIN_MATCH).sum(axis=1) >= min(2, len(asked.terms))
    return bool(enough.any())


def _defining(
    subject: str, question: str, pool: Sequence[Candidate], understood: np.ndarray
) -> list[tuple[Candidate, float]]:
    """Up to four sentences that say who or what the subject is, then what it is linked with most.

    A sentence counts more when it defines the subject, when it describes its entity, and when several of its
    relationships and claims rest on it.
    """
    says = np.array([definition(subject, c.text) / (2 if c.dangles else 1) for c in pool])
    links = np.array([_rows_about(subject, candidate, ("Relationships", "Claims")) for candidate in pool], float)
    described = np.array([_rows_about(subject, candidate, ("Entities",)) > 0 for candidate in pool], float)
    vectors, near = _compared(question, pool, says > 0)
    scores = (2 * says + 0.5 * described + np.log1p(links) / np.log1p(max(links.max(), 1)) + 0.5 * near) / 4
    scores *= says >= (_MIN_SAYING if says.max() >= _MIN_SAYING else says.max())
    scores *= _preferring(understood, says > 0)
    repeated = np.zeros(len(pool))
    chosen: list[tuple[Candidate, float]] = []
    while len(chosen) < _MAX_DEFINING:
        gain = (scores - _REPETITION * repeated) * (scores > 0)
        best = int(np.argmax(gain.round(6)))
        if gain[best] <= (_MIN_DEFINING * chosen[0][1] if chosen else 0):
            break
        chosen.append((pool[best], float(gain[best])))
        scores[best] = 0
        repeated = np.maximum(repeated, np.clip(vectors @ vectors[best], 0, 1))
    return chosen


def _rows_about(subject: str, candidate: Candidate, tables: Sequence[str]) -> int:
    return sum(table in tables and names(subject, title) is not None for table, title in candidate.rows)


def _overview(passages: Sequence[Passage], asked: Asked) -> list[Point]:
    """The opening sentences of the reports, or of all passages if there are none, the weightiest first.

    A point's score is the percentage of the corpus that its passage represents.
    """
    points = []
    reports = [passage for passage in passages if passage.table == "Reports"] or passages
    for passage in sorted(reports, key=lambda p: (-p.weight, p.number))[:MAX_POINTS]:
        opening = [candidate for candidate in candidates([passage], asked.language) if not candidate.dangles][:2]
        if opening:
            text = " ".join(c.text for c in opening)
            score = max(round(100 * passage.weight, 1), MIN_DIRECT)
            points.append(Point(f"{text} {reference([(passage.table, passage.number)], 1)}", score))
    return points


def _follow_ups(asked: Asked, points: Sequence[Point], most: int) -> tuple[FollowUp, ...]:
    """Follow-up questions: the question about each name that is in the points but not in the question."""
    scores: dict[str, float] = {}
    for point in points:
        for name in names_in(point.text, asked.language):
            if not asked.words(name) <= set(asked.terms):
                scores[name] = max(scores.get(name, 0.0), point.score)
    best = sorted(scores, key=lambda name: (-scores[name], name))[:most]
    return tuple(FollowUp(asked.with_regard_to(name), scores[name]) for name in best)


def _merged(points: Sequence[Point]) -> list[Point]:
    """Each statement once, with its best score and the longest of its references."""
    best: dict[str, Point] = {}
    for point in points:
        statement = without_references(point.text)
        known = best.get(statement, point)
        text = max(known.text, point.text, key=lambda t: (len(t), t))
        best[statement] = Point(text, max(known.score, point.score))
    return list(best.values())
