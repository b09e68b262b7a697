"""Values that answer a step of a plan, taken from the sentences of the evidence that answer it best.

The question says what kind of value it wants: a person, a place, a date, a number, or a thing of some class ("which
ship"). Of the values of that kind in the best sentences, those next to the words of the question count most, and names
on the side of the verb where the question has its gap.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from graphrag_assets.answering import Evidence, Finding, Found, Named, Passage
from graphrag_assets.embedded import typing_cues as cues
from graphrag_assets.embedded.candidate_sentences import Candidate, candidates, in_words
from graphrag_assets.embedded.questions import Asked, language_of_question, names, names_in, stems
from graphrag_assets.embedded.tagging import NUMBERS
from graphrag_assets.embedded.term_matches import term_matches
from graphrag_assets.embedded.wanted_values import SYNONYMS, TYPES, Wanted
from graphrag_assets.embedded.wording import MONTH
from graphrag_assets.plans import StepKind
from graphrag_assets.text import title_key

SENTENCES = 20
# Weights and thresholds, set on tests/query/planned_questions.json.
_LEAST = 0.06  # score of a value that is stated
_MIN_COVERED = 0.4  # of the question's weight, by a sentence with its surroundings
_MIN_MATCH = 0.3  # of a word that counts as one of the two that a sentence must have
_PASSAGE, _RANK = 0.4, 0.2  # weights of what the passage covers, and of its rank
_QUOTED = 2  # sentences that are quoted if none states a value
_WITHOUT_KEY = 0.2  # of the score: a sentence without the verb, or the office, that the question asks about
_NEAR = 40  # characters between a value and a word of the question, at which the word counts 1/e
_CLAUSE = 15  # characters that a comma or a semicolon between them counts for
_AROUND, _UNSAID, _ELSEWHERE = 0.8, 0.6, 0.3  # a name or a year of the question: near, not said, another one instead
_NOWHERE = 0.1
_OTHER_YEAR = 0.5  # a year of the main question, which the step does not repeat
_SUBJECT = 25  # characters before the subject of a sentence
_LOOKED_BACK = 8  # sentences
_UNTYPED = 0.4  # fit of a name that is no entity of the index
_ANTECEDENT = 0.4  # least fit of a name for which a pronoun stands
_CLASS = 0.3  # a name beside the class of thing that is wanted: "the steamer James Adger"
_BEFORE = 0.7  # of the score: a name in the sentence before, for which a pronoun stands

_DATE = re.compile(
    rf"\b(?:(?:\d{{1,2}}(?:st|nd|rd|th)? )?{MONTH}(?: \d{{1,2}})?(?:,? \d{{4}})?|1[0-9]{{3}}|20[0-9]{{2}})\b"
)
_YEAR = re.compile(r"\b(?:1[0-9]{3}|20[0-9]{2})\b")
_NUMBER = re.compile(
    r"[£$€]\s?\d[\d,.]*(?<![,.])(?: (?:thousand|million|billion))?"
    rf"|\b\d[\d,.]*(?<![,.])|\b(?:{'|'.join(sorted(NUMBERS))})\b",
    re.I,
)
_SCALES = frozenset(["hundred", "thousand", "million", "half", "dozen", "once"])
_ROUND = 0.3  # "a hundred"
_NONE = re.compile(r"(?!)")
_PRONOUNS_OF = {
    "person": re.compile(r"\b(?:he|she)\b", re.I),
    "body": re.compile(r"\b(?:it|they)\b", re.I),
    "thing": re.compile(r"\b(?:it|she|her)\b", re.I),
}
_BY = re.compile(r"\bby\W+(?:[a-z-]+\W+){0,3}$")


@dataclass(frozen=True, slots=True)
class _Mention:
    """A value in a sentence: as it is stated, its span, and how well its type suits the question."""

    value: str
    start: int
    end: int
    fit: float


@dataclass
class _Reader:
    """What is needed to read the sentences: the question, and the names of each text unit."""

    asked: Asked
    wanted: Wanted
    passages: Sequence[Passage]
    main_question: str
    named: dict[int, list[Named]] = field(default_factory=dict)

    @property
    def known(self) -> str:
        """The questions, whose names are no values."""
        return f"{self.asked.text} {self.main_question}"

    def suits(self, candidate: Candidate, pool: Sequence[Candidate]) -> float:
        """How well a sentence is about the names and the years of the question, 0 to 1."""
        before = list(_before(candidate, pool))
        around = [candidate.text, *(each.text for each in before), candidate.heading]
        score = 1.0
        for name in names_in(self.asked.text, self.asked.language):
            if names(name, candidate.text) is None:
                parts = re.split(r",? and |, ", name)  # "Field, Brett and Bright"
                found = [1.0 if names(p, candidate.text) else self._stood_for(p, candidate, before) for p in parts]
                score *= sum(found) / len(found)
        own = set(_YEAR.findall(self.asked.text))
        stated = next((text for text in around if _YEAR.search(text)), "")
        if stated and stated != candidate.text:
            stated += candidate.heading
        for year in own:
            if year not in candidate.text:
                score *= _AROUND if year in stated else _ELSEWHERE if stated else _UNSAID
        others = set(_YEAR.findall(self.main_question)) - own
        return score * (_OTHER_YEAR if others and stated and not any(year in stated for year in others) else 1.0)

    def _stood_for(self, name: str, candidate: Candidate, before: Sequence[Candidate]) -> float:
        """How probably a sentence without the name is about it: a sentence before it has it, or its heading.

        Less if another thing of its type is the subject of a sentence between them.
        """
        things = (thing for named in self.named.values() for thing in named)
        types = {thing.type for thing in things if name in (thing.title, thing.written)}
        for each in (candidate, *before):
            if names(name, each.text) is not None:
                return _AROUND
            subject = next(iter(self._things(each, each.text)), None)
            if subject and subject[1] < _SUBJECT and subject[0].type in types:
                return _ELSEWHERE
        return _UNSAID if names(name, candidate.heading) is not None else _NOWHERE

    def _things(self, candidate: Candidate, text: str) -> list[tuple[Named, int]]:
        """The things that a sentence names, in order, with where they begin."""
        things = self.named.get(self.passages[candidate.rank].number, ())
        found = [(thing, span[0]) for thing in things if (span := _find(thing, text))]
        return sorted(found, key=lambda pair: pair[1])

    def values(self, candidate: Candidate, pool: Sequence[Candidate]) -> Iterator[tuple[str, str, float]]:
        """The values of a sentence with the statements they rest on and their scores."""
        statement, text = in_words(candidate, pool), candidate.text
        before = list(_before(candidate, pool))
        for mention in self._mentions(candidate, text):
            value, shown = mention.value, statement
            if self.wanted.kind == "date" and not _YEAR.search(value):
                value, shown = self._with_year(value, shown, candidate, before)
            yield value, shown, mention.fit * self._near(text, mention)
        pronouns = _PRONOUNS_OF.get(self.wanted.kind, _NONE)
        for pronoun in pronouns.finditer(text):
            own = [mention for mention in self._mentions(candidate, text) if mention.end <= pronoun.start()][:1]
            for mention in own or self._antecedent(before):
                stood_for = _Mention(mention.value, *pronoun.span(), mention.fit)
                yield mention.value, statement, _BEFORE * mention.fit * self._near(text, stood_for)

    def _antecedent(self, before: Sequence[Candidate]) -> list[_Mention]:
        """The first value of the nearest sentence that has one."""
        for each in before:
            if found := [m for m in self._mentions(each, each.text) if m.fit >= _ANTECEDENT]:
                return found[:1]
        return []

    def _with_year(
        self, value: str, statement: str, candidate: Candidate, before: Sequence[Candidate]
    ) -> tuple[str, str]:
        """A date without a year, with the last year that was stated before it, and the statement that has it."""
        for each in before:
            if found := _YEAR.findall(each.text):
                return f"{value} {found[-1]}", statement if each.cited in statement else f"{each.cited} {statement}"
        found = _YEAR.findall(candidate.heading)
        return (f"{value} {found[-1]}" if found else value), statement

    def _mentions(self, candidate: Candidate, text: str) -> list[_Mention]:
        """The values of the wanted kind in a sentence, in order, without those that the question has itself."""
        if self.wanted.kind in ("date", "number"):
            return self._stated(text)
        found: list[_Mention] = []
        types = TYPES.get(self.wanted.kind)
        if types is None:
            return []
        plain = _plain(text)
        number = self.passages[candidate.rank].number
        things = list(self.named.get(number, ()))
        words = {word for thing in things for form in (thing.written, thing.title) for word in form.split()}
        things += [Named(number, name, name, "") for name in names_in(plain) if not words & set(name.split())]
        for thing in things:
            span = _find(thing, text)
            if span is None or self._is_known(thing):
                continue
            noun = self.wanted.noun
            fit = types.get(thing.type, 0.0) if thing.type else _UNTYPED
            if noun and noun in title_key(thing.title).split():
                fit = 0.0 if thing.type == cues.CONCEPT else 1.0
            elif noun and _beside(noun, plain, *span):
                fit = 1.0 + _CLASS
            if fit:
                found.append(_Mention(thing.title, *span, fit))
        outer = [
            m
            for m in found
            if not any(o.start <= m.start and m.end <= o.end and o.end - o.start > m.end - m.start for o in found)
        ]
        return sorted(outer, key=lambda mention: mention.start)

    def _stated(self, text: str) -> list[_Mention]:
        known = self.asked.text.casefold()
        if self.wanted.kind == "date":
            pattern = _YEAR if self.wanted.noun == "year" else _DATE
            found = list(pattern.finditer(text))
        else:
            dates = [match.span() for match in _DATE.finditer(text)]
            found = [m for m in _NUMBER.finditer(text) if not any(a <= m.start() < b for a, b in dates)]
        return [
            _Mention(match[0], *match.span(), _ROUND if match[0].casefold() in _SCALES else 1.0)
            for match in found
            if match[0].casefold() not in known
        ]

    def _is_known(self, thing: Named) -> bool:
        if thing.type == cues.PERSON and names(thing.title, self.known) is not None:
            return True
        known = title_key(self.known)
        return any(re.search(rf"\b{re.escape(title_key(name))}\b", known) for name in (thing.title, thing.written))

    def _near(self, text: str, mention: _Mention) -> float:
        """How near the words and names of the question are, 0 to 1, and on which side of the verb the value stands."""
        named = names_in(self.asked.text, self.asked.language)
        terms = [term for term in self.asked.terms if not any(term in name for name in self.asked.names)]
        places: dict[str, list[tuple[int, int]]] = {}
        for name in named:
            end = names(name, text)
            if end is not None:
                places[name] = [(max(end - len(name), 0), end)]
        for match in re.finditer(r"[^\W_]+", text):
            for stem in stems(match[0], self.asked.language):
                for term in terms:
                    if self.asked.likeness(term, stem):
                        places.setdefault(term, []).append(match.span())
        wanted = [*terms, *named]
        near = sum(
            max((self._closeness(text, mention, span) for span in places.get(term, ())), default=0.0) for term in wanted
        )
        score = near / max(len(wanted), 1)
        if self.wanted.key and self.wanted.key not in places:
            score *= _WITHOUT_KEY
        gap = self.wanted.kind == "person" or (self.wanted.noun and self.wanted.kind in TYPES)
        if gap and self.wanted.verb in places:
            score += self._side(text, mention, places[self.wanted.verb])
        return score

    @staticmethod
    def _closeness(text: str, mention: _Mention, span: tuple[int, int]) -> float:
        first, last = (mention.end, span[0]) if mention.end <= span[0] else (span[1], mention.start)
        distance = max(last - first, 0)
        distance += _CLAUSE * sum(mark in ",;:" for mark in text[first:last])
        return math.exp(-distance / _NEAR)

    def _side(self, text: str, mention: _Mention, verbs: Sequence[tuple[int, int]]) -> float:
        verb = min(verbs, key=lambda span: abs(span[0] - mention.start))
        agent = bool(_BY.search(text[: mention.start])) and mention.start > verb[1]
        before = mention.end <= verb[0]
        doer = agent or (before and not re.search(r"\b(?:was|were|is|are|been|be)\b", text[mention.end : verb[0]]))
        wants_doer = self.wanted.as_subject and not self.wanted.passive
        return 0.3 if doer == wants_doer else -0.2


def _before(candidate: Candidate, pool: Sequence[Candidate]) -> Iterator[Candidate]:
    """The sentences before it, the nearest first."""
    for _ in range(_LOOKED_BACK):
        if candidate.before is None:
            return
        candidate = pool[candidate.before]
        yield candidate


def _plain(text: str) -> str:
    """The text, of the same length, without emphasis and typographic apostrophes."""
    return text.replace("*", " ").replace("’", "'")


def _beside(noun: str, text: str, start: int, end: int) -> bool:
    """Whether the noun stands right before or after a name, or the name has it in apposition."""
    name = rf"{re.escape(noun)}s?"
    before = re.search(rf"\b{name},?(?: the| named| called)?[ \"']+$", text[:start], re.I)
    after = re.match(rf"['s]*[ \"']+{name}\b|, (?:an?|the) (?:[a-z-]+ ){{0,3}}{name}\b", text[end:], re.I)
    called = re.search(rf"\b{name}\b[^.;:]{{0,60}}\b(?:named|called|name of)[ \"']+$", text[:start], re.I)
    return bool(before or after or called)


def _find(thing: Named, text: str) -> tuple[int, int] | None:
    """Where a sentence names the thing: as written, by its title, or a person by the last word of the name."""
    forms = dict.fromkeys((thing.written, thing.title))
    if thing.type == cues.PERSON:
        forms |= dict.fromkeys(form.split()[-1] for form in list(forms))
    for form in forms:
        if match := re.search(rf"(?<!\w){re.escape(form)}(?!\w)", _plain(text), re.I if form.islower() else 0):
            return match.span()
    return None


def find(
    kind: StepKind, question: str, evidence: Evidence, named: Sequence[Named] = (), main_question: str | None = None
) -> Found:
    """The values that answer the question of a step, best first; nothing if no sentence of the evidence answers it.

    Values that the main question names are none: it asks for something else.
    """
    if kind == StepKind.BETWEEN:
        return Found(tuple(_dated(question, evidence)))
    passages = [passage for passage in evidence.passages if passage.table == "Sources"] or list(evidence.passages)
    asked = Asked.of(question, language_of_question(question, passages[0].text if passages else ""))
    asked = replace(asked, synonyms={term: SYNONYMS[term] for term in asked.terms if term in SYNONYMS})
    pool = candidates(passages, asked.language)
    reader = _Reader(asked, Wanted.of(asked), passages, main_question or "")
    for thing in named:
        reader.named.setdefault(thing.text_unit, []).append(thing)
    scored = sorted(
        ((score * reader.suits(candidate, pool), candidate) for score, candidate in _covering(asked, pool)),
        key=lambda pair: (-round(pair[0], 6), pair[1].order),
    )
    values: dict[str, Finding] = {}
    for about, candidate in scored:
        for value, statement, fit in reader.values(candidate, pool):
            if value not in values or about * fit > values[value].score:
                values[value] = Finding(value, statement, about * fit)
    best = sorted(values.values(), key=lambda finding: -round(finding.score, 6))
    best = [finding for finding in best if finding.score >= _LEAST] or [
        Finding("", in_words(candidate, pool), about, reader.wanted.description)
        for about, candidate in scored[:_QUOTED]
    ]
    return Found(tuple(best))


def _dated(question: str, evidence: Evidence) -> list[Finding]:
    """The statements of the evidence in its order.

    If some have a word of the question, besides its names and dates, those alone.
    """
    asked = Asked.of(_DATE.sub("", question), "en")
    words = [term for term in asked.terms if not any(term in name for name in asked.names) and not term.isdigit()]
    pool = candidates(evidence.passages, asked.language)
    about = [each for each in pool if any(asked.likeness(w, stem) for w in words for stem in asked.words(each.text))]
    return [Finding("", each.cited) for each in about or pool]


def _covering(asked: Asked, pool: Sequence[Candidate]) -> list[tuple[float, Candidate]]:
    """The sentences that, with their surroundings, cover enough of the question, and how much; the best first."""
    if not pool or not asked.terms:
        return []
    has, _, found, passages = term_matches(asked, pool)
    shares = asked.shares(has)
    covered = found @ shares
    enough = (covered >= _MIN_COVERED) & ((found >= _MIN_MATCH).sum(axis=1) >= min(2, len(asked.terms)))
    enough &= has.any(axis=1)
    ranks = np.array([1 / (1 + candidate.rank / 3) for candidate in pool])
    scores = covered + _PASSAGE * (passages @ shares) + _RANK * ranks
    ranked = sorted(np.flatnonzero(enough).tolist(), key=lambda place: (-round(scores[place], 6), place))
    return [(float(scores[place]) / (1 + _PASSAGE + _RANK), pool[place]) for place in ranked[:SENTENCES]]
