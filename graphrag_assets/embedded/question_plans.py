"""Plans of English questions by rules of grammar: what is described inside a question is found first.

- A relative clause ("the ship that laid the cable") or an office of something ("the brother of Jacob Brett") that the
  question is not itself about becomes a step, and the question refers to its answer.
- A comparison of two things asks for the date or the amount of each.
- "between … and …" with dates asks for dated statements.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from graphrag_assets.embedded.comparisons import comparison
from graphrag_assets.embedded.question_grammar import (
    AUXILIARY,
    COPULAS,
    PEOPLE,
    end_of,
    is_office,
    joined,
    noun_phrase,
    span,
)
from graphrag_assets.embedded.questions import language_of_question
from graphrag_assets.embedded.tagging import TaggedSentence, tagged_sentences
from graphrag_assets.plans import MAX_STEPS, Plan, Step, StepKind

WHOLE = "answer"
"""The variable of the last step."""
_NO_RULE = "No rule splits this question into steps: it is answered in one step."

_RELATIVE = frozenset(("who", "whom", "whose", "which", "that", "where", "when"))
_VARIABLE = "Zqx"  # begins the word that stands for a variable while a question is read
_BETWEEN = re.compile(r"\bbetween (.+?) and (.+?)(?=[?,]|$)", re.IGNORECASE)
_HAPPENED = re.compile(
    r"^(?:what (?:happened|did|took place|occurred)|(?:which|what) (?:\w+ )?(?:events?|things))\b", re.I
)
_YEAR = re.compile(r"\b(?:1[0-9]|20)\d\d\b")
_PRONOUNS = {
    **dict.fromkeys(("its", "his", "her", "their"), "{}'s"),
    **dict.fromkeys(("he", "she", "it", "they"), "{}"),
}
_NEXT_QUESTION = re.compile(r",? and (?=(?:who|what|which|when|where|how|in which|to whom)\b)", re.IGNORECASE)


def plan_question(question: str) -> Plan:
    """The plan of a question; one with a single step and a note if no rule splits it.

    >>> print(plan_question("Who commanded the ship that laid the cable of 1866?"))
    1. A = find: Which ship laid the cable of 1866?
    2. answer = find: Who commanded {A}?
    """
    text = " ".join(question.split())
    if language_of_question(text) != "en":
        return _one_step(text, f"{_NO_RULE} The rules are for English.")
    try:
        steps = _Planner().planned(text)
        if len(steps) > MAX_STEPS:
            return _one_step(text, f"The question has more than {MAX_STEPS} steps: it is answered in one step.")
        plan = Plan(question=text, steps=tuple(steps), planned_by="rules")
    except ValidationError:
        return _one_step(text, _NO_RULE)
    return plan if len(steps) > 1 or plan.steps[0].kind == StepKind.BETWEEN else _one_step(text, _NO_RULE)


def _one_step(question: str, note: str) -> Plan:
    step = Step(variable=WHOLE, kind=_kind(question), question=question.replace("{", "(").replace("}", ")"))
    return Plan(question=question, steps=(step,), planned_by="rules", note=note)


def _kind(question: str) -> StepKind:
    return StepKind.COUNT if re.match(r"how many\b", question, re.IGNORECASE) else StepKind.FIND


@dataclass(frozen=True, slots=True)
class _Described:
    """What a question describes: the question for it, and the rest with a place for the answer."""

    question: str
    before: str
    after: str

    def rest(self, name: str) -> str:
        return joined(self.before, name, self.after)


@dataclass
class _Planner:
    """Collects the steps while a question is taken apart."""

    steps: list[Step] = field(default_factory=list)

    def planned(self, question: str) -> list[Step]:
        """The steps of a question."""
        if compared := self._compared(question):
            return compared
        if between := self._between(question):
            return between
        first, *others = _NEXT_QUESTION.split(question.rstrip("?. "))
        whole = self._reduced(f"{first}?")
        for other in others:
            self._add(whole, self._name())
            subject = next((step.variable for step in reversed(self.steps[:-1])), None)
            whole = self._reduced(f"{_with_antecedent(other, subject)}?")
        self._add(whole, WHOLE)
        return self.steps

    def _name(self) -> str:
        return chr(ord("A") + len(self.steps)) if len(self.steps) < 26 else f"V{len(self.steps)}"

    def _add(self, question: str, variable: str, kind: StepKind | None = None) -> None:
        asked = re.sub(rf"{_VARIABLE}(\w+)", r"{\1}", question)
        asked = asked[:1].upper() + asked[1:]
        self.steps.append(Step(variable=variable, kind=kind or _kind(asked), question=asked))

    def _bound(self, question: str) -> str:
        """A step for the question; the word that stands for its answer."""
        reduced = self._reduced(question)
        name = self._name()
        self._add(reduced, name)
        return f"{_VARIABLE}{name}"

    def _reduced(self, question: str) -> str:
        """The question with words for what it describes, each found by a step."""
        while len(self.steps) <= MAX_STEPS:
            found = _described(question)
            if found is None:
                break
            question = found.rest(self._bound(found.question))
        return question

    def _compared(self, question: str) -> list[Step] | None:
        if (found := comparison(question)) is None:
            return None
        things, questions, order = found
        names = [self._bound(each).removeprefix(_VARIABLE) for each in questions]
        listed = " or ".join(f"{thing} ({{{name}}})" for thing, name in zip(things, names, strict=True))
        asked = f"Which is the {order} of {listed}?"
        self.steps.append(
            Step(variable=WHOLE, kind=StepKind.COMPARE, question=asked, things=tuple(things), order=order)
        )
        return self.steps

    def _between(self, question: str) -> list[Step] | None:
        match = _BETWEEN.search(question)
        if match is None:
            return None
        first, last = match.groups()
        if not _YEAR.search(last):
            if not _HAPPENED.match(question) or not last.casefold().startswith("the "):
                return None
            first, last = (self._bound(f"When was {each}?") for each in (first, last))
        elif not _YEAR.search(first):
            if not re.search(r"\d", first):
                return None
            first = f"{first} {_YEAR.findall(last)[-1]}"
        asked = f"{question[: match.start()]}between {first} and {last}{question[match.end() :]}"
        self._add(asked, WHOLE, StepKind.BETWEEN)
        return self.steps


def _with_antecedent(question: str, subject: str | None) -> str:
    """The question with a variable for its first pronoun."""
    if subject is None:
        return question
    pattern = re.compile(rf"\b(?:{'|'.join(_PRONOUNS)})\b", re.IGNORECASE)
    return pattern.sub(lambda m: _PRONOUNS[m[0].casefold()].format(_VARIABLE + subject), question, count=1)


def _described(question: str) -> _Described | None:
    """The last thing that the question describes by a relative clause, or else by its office."""
    tagged = next(tagged_sentences(question), None)
    if tagged is None or tagged.end < len(question.rstrip()) - 1:
        return None
    return _by_relative_clause(tagged) or _by_office(tagged)


def _by_relative_clause(tagged: TaggedSentence) -> _Described | None:
    words, kinds, end = [word.casefold() for word in tagged.words], tagged.kinds, end_of(tagged)
    for pronoun in range(end - 2, 1, -1):
        if words[pronoun] not in _RELATIVE or kinds[pronoun - 1] in ",a":
            continue
        start = pronoun - (kinds[pronoun - 1] in "po")  # "in which"
        articles = [place for place in range(start) if kinds[place] == "t"]
        article = articles[-1] if articles else 0
        noun = noun_phrase(words, kinds, article, start) if articles else 0
        gap = start - noun
        if noun <= article or not 0 <= gap <= 3 or (gap and "v" not in kinds[noun:start]):
            continue
        if kinds[noun - 1] in "NAIHRE" or (words[pronoun] in ("where", "when") and gap):
            continue  # a name needs no step
        clause = _clause_end(words, kinds, article, start, pronoun, end, bool(gap))
        if clause is None or (not gap and clause == end and article < 3 and words[article - 1] in AUXILIARY):
            continue
        before, after = span(tagged, 0, article), joined(span(tagged, noun, start), span(tagged, clause, end)) + "?"
        phrase = span(tagged, article + 1, noun)
        if pronoun == start and words[pronoun] != "whose" and _finite(words, kinds, pronoun + 1):
            asked = "Who" if phrase.casefold() in PEOPLE else f"Which {phrase}"
            question = f"{asked} {span(tagged, pronoun + 1, clause)}?"
        else:
            question = f"Which {phrase} was it {span(tagged, start, clause)}?"
        return _Described(question, before, after)
    return None


def _finite(words: Sequence[str], kinds: str, place: int) -> bool:
    """Whether a verb follows, perhaps after adverbs."""
    while kinds[place : place + 1] == "f" and words[place] not in AUXILIARY:
        place += 1
    return kinds[place : place + 1] == "v"


def _clause_end(
    words: Sequence[str], kinds: str, article: int, start: int, pronoun: int, end: int, separated: bool
) -> int | None:
    """Where the relative clause ends; None if that cannot be said.

    It goes to the end, unless an auxiliary precedes the noun ("When was the ship that …") whose verb is still to come.
    """
    while article > 2 and words[article - 1] == "of":  # "was the head of the group that …"
        article = max((place for place in range(article - 1) if kinds[place] == "t"), default=0)
    inverted = article > 0 and words[article - 1] in AUXILIARY
    if separated or not inverted:
        return end
    place = pronoun + 1
    while place < end and kinds[place] != "v":
        place += 1
    while place < end and (words[place] in AUXILIARY or (kinds[place] == "f" and words[place] not in _RELATIVE)):
        place += 1
    place += 1  # the verb of the clause
    for later in range(place, end):
        predicate = is_office(words[later]) and words[later + 1 :][:1] == ["of"] and words[article - 1] in COPULAS
        if (kinds[later] == "v" and words[later - 1] != "to") or predicate:
            return later
    is_subject = article == 2 and words[0] in ("who", "what")
    return end if is_subject else None


def _by_office(tagged: TaggedSentence) -> _Described | None:
    words, kinds, end = [word.casefold() for word in tagged.words], tagged.kinds, end_of(tagged)
    for place in range(end - 2, 0, -1):
        if not is_office(words[place]) or kinds[place] not in "nxj" or words[place + 1] != "of":
            continue
        article = place - 1
        while article > 0 and kinds[article] in "nxjJv#":
            article -= 1
        last = noun_phrase(words, kinds, place + 2, end)
        if last < end - 1 and kinds[last] == "o":  # "of the cable of 1866"
            last = max(noun_phrase(words, kinds, last + 1, end), last)
        if kinds[article] != "t" or last == place + 2:
            continue
        before = words[:article]
        if last >= end and len(before) == 2 and before[1] in AUXILIARY:
            continue  # that is what the question asks
        if len(before) < 2 or (before[-1] in ("was", "were", "is") and last >= end):
            continue
        return _Described(
            f"Who was {span(tagged, article, last)}?", span(tagged, 0, article), span(tagged, last, end) + "?"
        )
    return None
