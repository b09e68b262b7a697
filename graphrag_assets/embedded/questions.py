"""Analyzes a question: its terms, its names, the kind of answer that it asks for; rates reports by it, suggests others.

The patterns and word lists are English, German, French, Spanish and Russian; of questions in other languages only the
terms count.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, zip_longest

from graphrag_assets.contracts.answering import Passage
from graphrag_assets.embedded.tagging import alternatives, word_list
from graphrag_assets.text import languages
from graphrag_assets.text.languages import LANGUAGES, language_of, stop_words
from graphrag_assets.text.references import without_references
from graphrag_assets.text.words import HYPHEN, UNSPACED, fold, search_words_of, spell_out

_REGARD = " — "
_WORD = re.compile(rf"[^\W_{UNSPACED}]+")
_CAPITALIZED = rf"[^\W\d_a-zà-öø-ÿа-яё{UNSPACED}](?:(?![{UNSPACED}])[\w'’&.-])*"
_NAME = re.compile(rf"{_CAPITALIZED}(?:(?:,? (?:of|and|de|the|for|&) |,? ){_CAPITALIZED})*")
_INNER_NAME = re.compile(rf"(?<=[\w,;] ){_CAPITALIZED}")  # not the first word of a sentence
_PARTICLES = frozenset(["of", "and", "the", "de", "la", "le", "von", "van", "der", "du", "del", "&", "for"])
_MAX_NAME_WORDS = 6
_POSSESSIVE = re.compile(r"['’]s\b|s['’](?!\w)")

_KINDS = {
    "date": re.compile(
        r"(?:^\W*|\b(?:and|or) |[,;:—] )when\b|\b(?:(?:what|which) (?:\w+ )?(?:day|date|year|month)|wann"
        r"|in welchem (?:jahr|monat)|an welchem tag|quand"
        r"|quel(?:le)? (?:jour|date|année|mois)|cuándo|qué (?:día|fecha|año|mes)|когда|в каком (?:году|месяце)"
        r"|какого числа)\b",
        re.IGNORECASE,
    ),
    "number": re.compile(
        r"\b(?:how (?:much|many|long|far|deep|heavy|fast|large|big|old|wide|high|tall|often)|cost|price|amount|number"
        r"|weight|length|height|depth|size|age|wie (?:viele?|lange?|weit|tief|schwer|schnell|groß|alt|breit|hoch|oft"
        r"|teuer)|combien|cuánt[oa]s?|сколько)\b",
        re.IGNORECASE,
    ),
    "name": re.compile(
        r"\b(?:who(?:m|se)?|which|where|wo|wohin|woher|où|dónde|где|куда|откуда|wer|wen|wem|wessen|welche[rsmn]?|qui|quel(?:le)?s?|quién(?:es)?|cuál(?:es)?|кто|кого"
        r"|кому|кем|чь[яёи]|какой|какая|какие)\b",
        re.IGNORECASE,
    ),
}
_ANSWERS = {
    "date": re.compile(r"\b(?:1\d{3}|20\d\d)\b|\b\d{1,2}(?:\.|er| de)? [^\W\d]{3,}|\b[^\W\d]{3,} \d{1,2}\b"),
    "number": re.compile(rf"\d[\d,.]*|\b{alternatives('number words')}\b", re.IGNORECASE),
    "name": _INNER_NAME,
}
_WHO = re.compile(r"\W*(?:who|wer|qui|quién|кто)\b", re.IGNORECASE)
_WHY, _CAUSE, _BECAUSE = (
    re.compile(rf"\b{alternatives(section)}\b", re.IGNORECASE)
    for section in ("questions for a reason", "causes", "conjunctions of a reason")
)
_LANGUAGES = ("en", "de", "fr", "es", "ru")

_ARTICLE = r"(?:(?:an?|the|der|die|das|den|dem|le|la|les|el|los|las) )?"
_ABOUT = re.compile(
    rf"^\W*(?:please )?(?:(?:who|what)(?: exactly)? (?:is|was|are|were)"
    rf"|what (?:is|do we|do you)(?: know| known)? about|tell (?:me|us)(?: everything| more| all)? about|describe"
    rf"|summari[sz]e|(?:(?:give|write|provide|show)(?: me| us)? )?(?:an? )?(?:short |brief )?"
    rf"(?:overview|summary|description|profile) (?:of|about|on)"
    rf"|(?:wer|was) (?:ist|war|sind|waren)|was weißt du über|beschreibe"
    rf"|(?:erzähle?|berichte)(?: mir| uns)? (?:von|über)"
    rf"|(?:qui|qu['’]est-ce que?) (?:est|était|fut|sont|étaient)|qu['’]est-ce que|décri(?:s|vez)"
    rf"|(?:quién|quiénes|qué) (?:es|era|fue|son|eran|fueron)|háblame de"
    rf"|(?:кто|что) (?:такой|такая|такое|такие)|расскажи(?:те)? (?:о|об|про)) {_ARTICLE}(.+?)\W*$"
    rf"|^what (?:part|role) (?:did|does|do) {_ARTICLE}(.+?) play\b",
    re.IGNORECASE,
)


def language_of_question(question: str, text: str = "") -> str:
    """Return the language of a question: the one whose stop words it has most of.

    On a tie, the language that `language_of` finds for the question or else for `text`, the text that it is about.

    >>> language_of_question("Wer war Klara Winter?"), language_of_question("Cyrus Field")
    ('de', 'en')
    """
    wording = question.rpartition(_REGARD)[2]
    words = Counter(_WORD.findall(wording.casefold()))
    counts = {language: sum(words[word] for word in words.keys() & stop_words(language)) for language in LANGUAGES}
    likely = [language for language, count in counts.items() if count == max(counts.values())]
    if len(likely) == 1:
        return likely[0]
    return next((one for one in map(language_of, filter(None, (wording, text))) if one in likely), "en")


def terms_of(words: Sequence[str], language: str) -> list[tuple[str, ...]]:
    """Return the terms of each word: that of the search index, which is its stem without diacritics, then those of the
    ways in which the index finds it, which are the stems of the word without diacritics. Words that share one are the
    same.

    >>> terms_of(["cortés", "cortes", "müller"], "en")
    [('corte', 'cort'), ('cort',), ('muller', 'mueller')]
    """
    terms = (
        map(fold, languages.stems(list(words), language)),
        languages.stems([fold(word) for word in words], language),
        languages.stems([fold(spell_out(word)) for word in words], language),
    )
    return [tuple(dict.fromkeys(forms)) for forms in zip(*terms, strict=True)]


@cache
def _form_terms(language: str) -> frozenset[str]:
    """Return the terms of a question that describe the form of the answer, not its subject."""
    words = word_list(f"cue_words:form of an answer, {language}") if language in _LANGUAGES else ()
    return frozenset(term for term, *_ in terms_of(tuple(words), language))


def names_in(text: str, language: str = "en") -> list[str]:
    """Capitalized phrases of `text` of at least two letters, without the words that only begin a sentence."""
    names = []
    for match in _NAME.finditer(without_references(text)):
        words = match[0].split()
        while words and (words[0].casefold().strip(".,'’") in stop_words(language)):
            words = words[1:]
        name = re.sub(r"['’]s$", "", " ".join(words).strip(" ,.;:'’"))
        if len(name) > 2 and not name.isupper() and not _ANSWERS["date"].fullmatch(name):
            names.append(name)
    return list(dict.fromkeys(names))


@dataclass(frozen=True)
class QuestionAnalysis:
    """A question taken apart.

    `terms` are its content terms in order, `forms` the terms of each that are the same, `named` those that are names or
    numbers, `kinds` the kinds of answer that it wants: date, number, name. `subject` is what it asks about when it asks
    only who or what that is; `asks_why`: it wants a reason; `deed`: what the one did whom it asks for.
    """

    text: str
    terms: tuple[str, ...]
    forms: tuple[tuple[str, ...], ...]
    named: frozenset[str]
    kinds: tuple[str, ...]
    subject: str | None
    language: str
    asks_why: bool
    deed: str | None

    @classmethod
    def of(cls, question: str, language: str | None = None) -> "QuestionAnalysis":
        """Return the question as asked; what `with_regard_to` put in front of it counts as part of it."""
        language = language or language_of_question(question)
        words = [word for word in search_words_of(re.sub(HYPHEN, " ", question)) if word not in stop_words(language)]
        pairs = list(zip(terms_of(words, language), words, strict=True))
        pairs = [(forms, word) for forms, word in pairs if forms[0] not in _form_terms(language)]
        capitals = {word.casefold() for name in names_in(question, language) for word in _WORD.findall(name)}
        named = {forms[0] for forms, word in pairs if word[0].isdigit() or word in capitals}
        kinds = tuple(kind for kind, pattern in _KINDS.items() if pattern.search(question))
        terms = {forms[0]: forms for forms, _ in pairs}
        subject = _subject(question, language)
        asks_why = _WHY.search(question) is not None
        asks_who = subject is None and _WHO.match(question)
        deed = next((term for term in terms if term not in named), None) if asks_who else None
        return cls(
            question, tuple(terms), tuple(terms.values()), frozenset(named), kinds, subject, language, asks_why, deed
        )

    @property
    def about_everything(self) -> bool:
        """Whether it names nothing in particular: "What are the main themes?"."""
        return not self.terms and bool(_WORD.search(self.text))

    def with_regard_to(self, name: str) -> str:
        """Return the same question about another subject."""
        return f"{name}{_REGARD}{self.text.rpartition(_REGARD)[2]}"

    def share_in(self, text: str) -> float:
        """Return the share of its terms that a text has."""
        words = set(chain.from_iterable(terms_of(search_words_of(text), self.language)))
        return sum(not words.isdisjoint(forms) for forms in self.forms) / (len(self.forms) or 1)

    def has_all_of(self, text: str) -> bool:
        """Whether it has all words of a text."""
        own_forms = set(chain.from_iterable(self.forms))
        return not any(own_forms.isdisjoint(forms) for forms in terms_of(search_words_of(text), self.language))

    def kinds_in(self, text: str) -> float:
        """Return share of the kinds of answer wanted of which `text` has something that the question does not have."""
        own_text = fold(self.text.casefold())
        held = [
            any(fold(item[0].casefold()) not in own_text for item in _ANSWERS[kind].finditer(text))
            for kind in self.kinds
        ]
        return sum(held) / len(held) if held else 0.0

    def reason_in(self, text: str) -> float:
        """1 if it wants a reason and `text` names one; 0.5 for a conjunction, which may be about something else."""
        if not self.asks_why:
            return 0.0
        return 1.0 if _CAUSE.search(text) else 0.5 if _BECAUSE.search(text) else 0.0


def _subject(question: str, language: str) -> str | None:
    """X of "Who was X?", "What is the X?", "Give me an overview of X"; None when more is asked than that."""
    match = _ABOUT.match(" ".join(question.rpartition(_REGARD)[2].split()))
    if not match:
        return None
    words = (match[1] or match[2]).split()
    # A phrase with grammar in it, "the capital of the company", is a question of its own, unless it is a name.
    content = [word for word in words if word.casefold() not in stop_words(language)]
    is_name = all(word[0].isupper() or word.casefold() in _PARTICLES for word in words)
    # "Scrooge's clerk" is a question too: whose clerk. "Marley's Ghost" is a name.
    simple = is_name or (len(content) == len(words) <= 3 and not _POSSESSIVE.search(" ".join(words[:-1])))
    return " ".join(words) if simple and content and len(words) <= _MAX_NAME_WORDS else None


_QUESTIONS = {
    "Relationships": "What connects {}?",
    "Entities": "Who or what is {}?",
    "Claims": "What is said of {}, and when was it?",
    "Reports": "What is reported on {}?",
}


def in_conversation(question: str, history: str) -> str:
    """Return the question; if it names nothing, with the subject of the earlier turns."""
    if not history:
        return question
    analysis = QuestionAnalysis.of(question)
    if analysis.named or analysis.subject:
        return question
    for line in reversed(history.splitlines()):
        speaker, _, said = line.partition(": ")
        if speaker == "user" and (names := names_in(said)):
            return analysis.with_regard_to(names[-1])
    return question


def rate(question: str, report: str) -> float:
    """Return the relevance of the report, 0 to 5: a question about everything may be answered by any report."""
    analysis = QuestionAnalysis.of(question, language_of_question(question, report))
    if not analysis.terms:
        return 3.0
    return round(5 * analysis.share_in(report), 2)


def suggest(history: Sequence[str], passages: Sequence[Passage], count: int) -> tuple[str, ...]:
    """Up to `count` new questions about the rows of the evidence: of each table in turn, its best row first."""
    by_table: dict[str, list[str]] = {table: [] for table in _QUESTIONS}
    for passage in passages:
        if passage.table in by_table and passage.title:
            about = passage.title
            about = about.replace(" – ", " and ", 1) if passage.table == "Relationships" else about
            by_table[passage.table].append(_QUESTIONS[passage.table].format(about))
    in_turn = [question for row in zip_longest(*by_table.values()) for question in row if question]
    history_keys = {question.casefold().strip() for question in history}
    return tuple(dict.fromkeys(q for q in in_turn if q.casefold() not in history_keys))[:count]
