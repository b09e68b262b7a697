"""Answers without a model: the passages of the evidence that answer best, quoted and cited.

Each statement of the evidence is scored by the share of the question's terms that it has, each term counting by how
rare it is in the evidence. A pronoun has those of the sentence before it, and every statement those of the headings and
the title above it. Passages with more of the question, statements with the kind of answer or the reason wanted, and
definitions of what the question is about score more. The best one is quoted alone, and up to two others support it.

They are an answer when one of them has at least half of the question. Otherwise they are shown after `CLOSEST`. There
are no levels of confidence: without a model they mislead.
"""

import asyncio
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl

from graphrag_assets.contracts.answering import (
    CLOSEST,
    NO_ANSWER,
    PLAIN,
    Answerer,
    AnswerOptions,
    Evidence,
    FollowUp,
    Mapped,
    Passage,
    Point,
    Relevance,
    Reply,
    RewrittenQuestion,
)
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.embedded.questions import (
    QuestionAnalysis,
    in_conversation,
    language_of_question,
    names_in,
    rate,
    suggest,
    terms_of,
)
from graphrag_assets.embedded.statements import Quotation, Statement, quotation, statements
from graphrag_assets.embedded.wording import DEFINES, begins_with_anaphor
from graphrag_assets.runtime.interruption import raise_if_canceled
from graphrag_assets.text.references import reference, without_references
from graphrag_assets.text.words import fold, search_words, sentence_lines

MIN_DIRECT = 1.0
"""Minimum score of a point that answers the question; the closest points score less."""
MAX_QUOTATIONS = 3
"""Of an answer; a sentence, an item of a list or a row of a table each."""
_MAX_CHARACTERS = 1000  # of all quotations
_MAX_REPORTS = 7  # of an answer about everything
_MAX_NUMBERS = 3  # of rows cited for one quotation

_MIN_ANSWERED = 0.5  # of the question, in one quotation of an answer, or in a passage that is relevant
_MIN_TOGETHER = 0.65  # in all quotations of a passage; of a long question, in all of the answer
_LONG = 6  # terms; a longer question is not expected to be answered by one quotation
_MIN_MATCH = 0.3  # of a term that counts as one of the two that an answer must have
_MIN_OF_BEST = 0.4  # of the best score
_MIN_POINT = 0.45  # of the best point's score, in a list of points
_SAME = 0.7  # of the shorter one's words: from here on two quotations or points say the same

# What other evidence adds to the share of the question. Set on half of the collections of tests/query/questions.json,
# and flat: another tenth changes little.
_PASSAGE, _KIND, _REASON, _DEFINITION = 0.4, 0.25, 0.5, 0.3
_COVERED = 0.5  # how much of a term's weight a quotation uses up

_TABLES = ("Sources", "Claims", "Relationships", "Entities", "Reports")
_ENDED = re.compile(r"(.+) \(until (\d{4}(?:-\d\d){0,2})\)", re.DOTALL)  # as `query.fetch` writes it
_LABEL = re.compile(r"\b[^\W\d_](?=[^\s|]*\d)[^\W_]*(?:[-‐./][^\W_]+)*")  # letters, then digits
_WORD_START = re.compile(r"\b\w")
_NO_EMPHASIS = str.maketrans("", "", "*_")

Rows = dict[str, dict[tuple[str, int], None]]
"""By statement, the tables and numbers of the rows that have it, in order."""


@dataclass(frozen=True)
class EmbeddedAnswerer(Answerer):
    """The answerer of the embedded default: it calls no model, and works in threads, so that an event loop stays free.

    It ignores the form and the language of `AnswerOptions`, because it quotes.
    """

    model: str = "embedded/extractive"
    min_direct_score: ClassVar[float] = MIN_DIRECT

    async def arespond(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Reply:
        """One to three quotations from the evidence, the best first, each with its citation."""
        return await asyncio.to_thread(respond, question, evidence, options.by_meaning)

    async def amap(
        self,
        question: str,
        evidence: Evidence,
        follow_ups: int = 0,
        main_question: str | None = None,
        options: AnswerOptions = PLAIN,
    ) -> Mapped:
        """Return the quotations that answer best as points, scored by what they have of the question."""
        return await asyncio.to_thread(map_, question, evidence, follow_ups, options.by_meaning)

    async def areduce(
        self, question: str, points: Sequence[Point], options: AnswerOptions = PLAIN, drift: bool = False
    ) -> Reply:
        """Return a list of the best points, none repeating another."""
        return await asyncio.to_thread(reduce, points)

    async def arate(self, question: str, reports: Sequence[str]) -> tuple[list[float | None], Usage]:
        """0 to 5 by the part of the question's terms that each report has."""
        started = time.perf_counter()
        ratings = await asyncio.to_thread(lambda: [rate(question, report) for report in reports])
        return list(ratings), Usage(seconds=time.perf_counter() - started)

    async def arewrite(
        self, question: str, concepts: Sequence[str], count: int, options: AnswerOptions = PLAIN
    ) -> RewrittenQuestion:
        """Return the question in its conversation, whole: it is ranked by its words, which parts would have as well."""
        return RewrittenQuestion(await asyncio.to_thread(in_conversation, question, options.history))

    async def atest(
        self, question: str, passages: Sequence[Passage], rarity: Mapping[str, float] | None = None
    ) -> Relevance:
        """Return the passages with most of what the question names, by sentences."""
        return await asyncio.to_thread(relevance_of, question, passages, rarity or {})

    async def aquestions(
        self, history: Sequence[str], evidence: Evidence, count: int = 5, options: AnswerOptions = PLAIN
    ) -> tuple[tuple[str, ...], Usage]:
        """Questions about the relationships, entities and claims of the evidence, in turn."""
        started = time.perf_counter()
        questions = await asyncio.to_thread(suggest, history, evidence.passages, count)
        return questions, Usage(seconds=time.perf_counter() - started)


def respond(question: str, evidence: Evidence, by_meaning: bool = False) -> Reply:
    """One to three quotations, each with its citation; after `CLOSEST`, if they do not answer the question.

    `by_meaning`: as in `AnswerOptions`.
    """
    analysis = _analyzed(question, evidence.passages)
    if analysis.about_everything:
        points = _overview(evidence.passages, analysis)
        return Reply(_listed(points) or NO_ANSWER)
    points = _quoted(analysis, evidence.passages, by_meaning)
    if points and points[0].score >= MIN_DIRECT:
        return Reply(" ".join(point.text for point in points))
    return Reply(f"{CLOSEST}\n{_listed(points)}" if points else NO_ANSWER)


def map_(question: str, evidence: Evidence, follow_ups: int = 0, by_meaning: bool = False) -> Mapped:
    """Quotations as points, scored by what they have of the question: below 1, if they do not answer it."""
    analysis = _analyzed(question, evidence.passages)
    if analysis.about_everything:
        return Mapped(tuple(_overview(evidence.passages, analysis)))
    points = _quoted(analysis, evidence.passages, by_meaning, reason_needed=True)
    return Mapped(tuple(points), _follow_ups(analysis, points, follow_ups))


def reduce(points: Sequence[Point]) -> Reply:
    """Return a list of the best points, none repeating another; of those that come closest, if none answers."""
    chosen: list[Point] = []
    for point in sorted(points, key=lambda point: -point.score):
        if len(chosen) == MAX_QUOTATIONS or point.score < (_MIN_POINT * chosen[0].score if chosen else 0):
            break
        if not any(_say_the_same(point.text, other.text) for other in chosen):
            chosen.append(point)
    if chosen and chosen[0].score < MIN_DIRECT:
        return Reply(f"{CLOSEST}\n{_listed(chosen)}")
    return Reply(_listed([point for point in chosen if point.score >= MIN_DIRECT]) or NO_ANSWER)


def relevance_of(question: str, passages: Sequence[Passage], rarity: Mapping[str, float]) -> Relevance:
    """Return the passages with half of the question by rarity, at least two of its terms and one of its names, if any.

    `rarity`: of terms in the whole index; among passages that were found by a term it says nothing. A term without a
    rarity has the mean one. A sentence helps if it has half of what the best one has.
    """
    analysis = _analyzed(question, passages)
    mean = sum(rarity.values()) / len(rarity) if rarity else 1.0
    weights = np.array([rarity.get(term, mean) for term in analysis.terms])
    weights /= weights.sum() or 1
    named = np.array([term in analysis.named for term in analysis.terms], bool)
    relevant: dict[int, tuple[int, ...]] = {}
    for passage in passages:
        matches = _occurrences(analysis, [*sentence_lines(passage.text), passage.title])
        has, shares = matches.max(axis=0), (matches @ weights)[:-1]
        enough = has @ weights >= _MIN_ANSWERED and (has > 0).sum() >= min(2, len(has))
        if enough and shares.any() and has[named].any() == named.any():
            relevant[passage.number] = tuple((np.flatnonzero(shares >= shares.max() / 2) + 1).tolist())
    return Relevance(relevant)


def _analyzed(question: str, passages: Sequence[Passage]) -> QuestionAnalysis:
    texts = [passage.text for passage in passages if passage.table == "Sources"] or [p.text for p in passages]
    return QuestionAnalysis.of(question, language_of_question(question, texts[0] if texts else ""))


def _occurrences(analysis: QuestionAnalysis, texts: Sequence[str]) -> np.ndarray:
    """Whether each text has each term of the question, 0 or 1: of shape (texts, terms)."""
    words = search_words(pl.Series(texts, dtype=pl.String)).to_list()
    vocabulary = sorted(set().union(*words))
    places = {form: place for place, forms in enumerate(analysis.forms) for form in forms}
    of_word = {
        word: {places[form] for form in forms if form in places}
        for word, forms in zip(vocabulary, terms_of(vocabulary, analysis.language), strict=True)
    }
    has = np.zeros((len(texts), len(analysis.terms)))
    for row, words_of_text in zip(has, words, strict=True):
        raise_if_canceled()
        row[list(set().union(*(of_word[word] for word in words_of_text)))] = 1
    return has


def _weights(has: np.ndarray) -> np.ndarray:
    """Return the share of the question that each term is, by its rarity: ln(1 + (texts + 1) / (texts with it + 1))."""
    rarity = np.log(1 + (len(has) + 1) / (has.sum(axis=0) + 1))
    return np.asarray(rarity / (rarity.sum() or 1))


def _quoted(
    analysis: QuestionAnalysis, passages: Sequence[Passage], by_meaning: bool, reason_needed: bool = False
) -> list[Point]:
    """Return the best quotations, together at most 1,000 characters; with scores below 1, if they do not answer.

    Behind a sentence that is understood by the one before it, that one is quoted.

    `reason_needed`: a question for a reason is not answered without one.
    """
    passages = sorted(passages, key=lambda p: _TABLES.index(p.table) if p.table in _TABLES else len(_TABLES))
    candidates, rows = _read(passages)
    texts = [*(one.text for one in candidates), *(passage.title for passage in passages)]
    has = _occurrences(analysis, texts)
    if not has.any():
        return _first_passages(candidates, rows) if by_meaning and analysis.terms else []
    in_text, titles = has[: len(candidates)], has[len(candidates) :]
    weights, of_passage = _weights(in_text), [one.passage for one in candidates]
    in_passages = titles.copy()
    np.maximum.at(in_passages, of_passage, in_text)
    above, before = np.zeros_like(in_text), np.zeros_like(in_text)  # what headings have, and what a pronoun stands for
    for place, one in enumerate(candidates):
        raise_if_canceled()
        introductions = [*one.headings, *([] if one.lead is None else [one.lead])]
        above[place] = in_text[introductions].max(axis=0, initial=0)
        if one.before is not None and (begins_with_anaphor(one.text) or candidates[one.before].is_question):
            before[place] = np.maximum(in_text[one.before], before[one.before])
    named = np.array([term in analysis.named for term in analysis.terms], bool)
    matches = np.maximum.reduce([in_text, before, above, titles[of_passage]])
    eligible = np.array([one.is_quotable for one in candidates]) & (in_text + above + before).any(axis=1)
    said_once = eligible & ~_is_notice(candidates, passages)
    eligible = said_once if said_once.any() else eligible
    if labels := _labels(analysis.text):  # P-317 is not P-318
        labeled = eligible & np.array([labels <= _labels(one.text) for one in candidates])
        eligible = labeled if labeled.any() else eligible
    extra = _PASSAGE * (in_passages @ weights)[of_passage]
    near_names = (matches[:, named] > 0).all(axis=1)
    reasons = np.zeros(len(candidates))
    for place in np.flatnonzero(eligible).tolist():
        raise_if_canceled()
        kinds = analysis.kinds_in(texts[place])
        reasons[place] = analysis.reason_in(texts[place]) if near_names[place] else 0
        extra[place] += _KIND * kinds + (
            _DEFINITION if analysis.subject and _defines(texts[place], analysis.subject) else 0
        )
    extra += _REASON * reasons

    left = np.where([term == analysis.deed for term in analysis.terms], 2 * weights, weights)
    most = left.sum() + _PASSAGE + _KIND + _DEFINITION + _REASON * analysis.asks_why
    length, chosen = 0, list[tuple[Quotation, float]]()
    for _ in range(2 * MAX_QUOTATIONS):  # of which some repeat others, or are too long
        # Rounded, so that the last bit of a sum does not decide; then the earlier statement wins.
        gains = np.where(eligible, (matches @ left + extra).round(6), 0)
        best = int(np.argmax(gains))
        if gains[best] <= (_MIN_OF_BEST * chosen[0][1] if chosen else 0):
            break
        eligible[best] = False
        context = candidates[best].before if (before[best] > in_text[best]).any() else None
        for place in (best,) if context is None or not eligible[context] else (best, context):
            said = quotation(candidates, place)
            fits = not chosen or length + len(said.text) <= _MAX_CHARACTERS
            if fits and len(chosen) < MAX_QUOTATIONS and not any(_say_the_same(said.text, o.text) for o, _ in chosen):
                chosen.append((said, float(gains[best])))
                length += len(said.text)
                left = left * (1 - _COVERED * matches[place])
                eligible[list(said.places)] = False
    ends = _ends(passages)
    quoted = [said.place for said, _ in chosen]
    direct = _is_answer(
        analysis, matches[quoted], weights, has.max(axis=0), reasons[quoted], np.array(of_passage)[quoted]
    )
    direct &= not (reason_needed and analysis.asks_why) or bool(reasons[quoted].any())
    scores = [min(gain / most, 0.99) for _, gain in chosen]
    return [
        Point(
            _with_end(_cited(said, candidates, rows), ends),
            max(round(100 * score, 1), MIN_DIRECT) if direct else score,
        )
        for (said, _), score in zip(chosen, scores, strict=True)
    ]


def _is_notice(candidates: Sequence[Statement], passages: Sequence[Passage]) -> np.ndarray:
    """Where a sentence is, but for its numbers, in most sources and at least three, if its source says more."""
    keys = [re.sub(r"\d+", "0", one.text) if one.kind == "sentence" else "" for one in candidates]
    most = max(2, sum(passage.table == "Sources" for passage in passages) / 2)
    stands = Counter(key for key, _ in {(key, one.passage) for key, one in zip(keys, candidates, strict=True)})
    say_more = {one.passage for key, one in zip(keys, candidates, strict=True) if key and stands[key] <= most}
    return np.array(
        [
            key != "" and stands[key] > most and one.passage in say_more
            for key, one in zip(keys, candidates, strict=True)
        ]
    )


def _ends(passages: Iterable[Passage]) -> dict[str, str]:
    """When the statements of claims ended, by statement; without those that still hold by another claim."""
    claims = [passage.text for passage in passages if passage.table == "Claims"]
    ended = sorted((match[1], match[2]) for text in claims if (match := _ENDED.fullmatch(text)))
    latest = dict(ended)  # the last of several ends
    return {statement: end for statement, end in latest.items() if statement not in claims}


def _with_end(quoted: str, ends: Mapping[str, str]) -> str:
    """Return the quotation of a source, with the end behind each statement that has ended."""
    for statement, end in ends.items():
        if statement in quoted and end not in quoted:
            quoted = quoted.replace(statement, f"{statement} (until {end})")
    return quoted


def _labels(text: str) -> set[str]:
    return {label.casefold() for label in _LABEL.findall(text)}


def _is_answer(
    analysis: QuestionAnalysis,
    covered: np.ndarray,
    weights: np.ndarray,
    stands: np.ndarray,
    reasons: np.ndarray,
    of_passage: np.ndarray,
) -> bool:
    """Whether quotations have enough of the question: one of them, or those of a passage, of a long one all, together.

    A reason that is asked for, which may be in other words, counts as a quarter. The evidence must have every name and
    number of the question. (In German all nouns look like names.)
    """
    lacking = {term for term, share in zip(analysis.terms, stands, strict=True) if not share}
    if analysis.language != "de" and lacking & analysis.named:
        return False
    least = min(2, len(weights))
    by_one = (covered @ weights + reasons / 4 >= _MIN_ANSWERED) & ((covered >= _MIN_MATCH).sum(axis=1) >= least)
    groups = [of_passage == passage for passage in set(of_passage)] if len(weights) <= _LONG else [of_passage >= 0]
    together = (1 - np.prod(1 - covered[group], axis=0) for group in groups)
    return bool(by_one.any()) or any(
        has @ weights >= _MIN_TOGETHER and (has >= _MIN_MATCH).sum() >= least for has in together
    )


def _read(passages: Sequence[Passage]) -> tuple[list[Statement], Rows]:
    """Return the statements of the passages, and the rows that have each. A row with no statement of its own is only
    cited.
    """
    candidates: list[Statement] = []
    rows: Rows = defaultdict(dict)
    for number, passage in enumerate(passages):
        of_passage = statements(without_references(passage.text), number, len(candidates))
        if passage.table != "Sources":  # what a row of the graph says was put together: each statement stands sentences
            sentences = (one for one in of_passage if one.kind != "heading")
            of_passage = [
                replace(one, headings=(), before=None, lead=None, block=place)
                for place, one in enumerate(sentences, len(candidates))
            ]
        if passage.table == "Sources" or not all(_key(one.text) in rows for one in of_passage):
            candidates += of_passage
        for one in of_passage:
            rows[_key(one.text)][passage.table, passage.number] = None
    return candidates, rows


def _key(text: str) -> str:
    return " ".join(text.translate(_NO_EMPHASIS).split())


def _cited(said: Quotation, candidates: Sequence[Statement], rows: Rows) -> str:
    """Return the quotation with its reference: to the rows that have all that it shows."""
    every = [rows[_key(candidates[place].text)] for place in said.places]
    return f"{said.text} {reference([row for row in every[0] if all(row in other for other in every)], _MAX_NUMBERS)}"


def _first_passages(candidates: Sequence[Statement], rows: Rows) -> list[Point]:
    """Return the first sentences of the first passages, which an embedding model ranked."""
    first = {one.passage: place for place, one in reversed(list(enumerate(candidates))) if one.kind == "sentence"}
    places = [place for _, place in sorted(first.items())[:MAX_QUOTATIONS]]
    return [Point(_cited(quotation(candidates, place), candidates, rows), 0.1) for place in places]


def _defines(text: str, subject: str) -> bool:
    """Whether a text defines the subject of a question; a name may be given by its last word."""
    last = subject.split()[-1]
    named, length = fold(last.casefold()), len(last)
    ends = (word.start() + length for word in _WORD_START.finditer(text))
    return any(fold(text[end - length : end].casefold()) == named and DEFINES.match(text, end) for end in ends)


def _say_the_same(one: str, other: str) -> bool:
    words, others = (set(_key(without_references(text)).split()) for text in (one, other))
    return len(words & others) >= _SAME * (min(len(words), len(others)) or 1)


def _listed(points: Sequence[Point]) -> str:
    return "\n".join(f"- {point.text}" for point in points)


def _overview(passages: Sequence[Passage], analysis: QuestionAnalysis) -> list[Point]:
    """Return the opening sentences of the reports, or of all passages if there are none, the weightiest first.

    A point's score is the percentage of the corpus that its passage represents.
    """
    points = []
    reports = [passage for passage in passages if passage.table == "Reports"] or passages
    for passage in sorted(reports, key=lambda p: (-p.weight, p.number))[:_MAX_REPORTS]:
        candidates = statements(without_references(passage.text), 0, 0)
        if opening := [_key(one.text) for one in candidates if one.kind == "sentence" and one.is_quotable][:2]:
            text = f"{' '.join(opening)} {reference([(passage.table, passage.number)], 1)}"
            points.append(Point(text, max(round(100 * passage.weight, 1), MIN_DIRECT)))
    return points


def _follow_ups(analysis: QuestionAnalysis, points: Sequence[Point], most: int) -> tuple[FollowUp, ...]:
    """Follow-up questions: the question about each name that is in answering points but not in the question."""
    scores: dict[str, float] = {}
    for point in points if most else ():
        for name in names_in(point.text, analysis.language) if point.score >= MIN_DIRECT else ():
            if not analysis.has_all_of(name):
                scores[name] = max(scores.get(name, 0.0), point.score)
    best = sorted(scores, key=lambda name: (-scores[name], name))[:most]
    return tuple(FollowUp(analysis.with_regard_to(name), scores[name]) for name in best)
