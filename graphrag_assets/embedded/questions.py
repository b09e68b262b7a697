"""Analyzes a question: its terms, the names in it, and the kind of answer it asks for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from graphrag_assets import languages
from graphrag_assets.embedded.defining_sentences import COPULA, IS_A, WHAT
from graphrag_assets.embedded.tagging import word_list
from graphrag_assets.embedded.wording import ABOUT, CAUSE, GENERIC, IMPLIED, KINDS, LESSON, MONTH, NUMBER_WORDS, TROUBLE
from graphrag_assets.languages import LANGUAGES, language_of, stop_words
from graphrag_assets.references import without_references
from graphrag_assets.text import UNSPACED, has_unspaced_script, search_words_of

_WORD = re.compile(rf"[^\W_{UNSPACED}]+")
# Forms of English verbs, and nouns that go with them, that no stemmer brings together; the word itself first.
_IRREGULAR = """
begin began begun; break broke broken; bring brought; build built; buy bought; catch caught; choose chose chosen
choice; come came; deep depth; die died dies dying dead death deaths; draw drew drawn; drive drove driven; fail failure
failures; fall fell fallen; feel felt; fight fought; find found; fly flew flown flight; give gave; grow grew grown
growth; hear heard; high height; hold held; keep kept; know knew known knowledge; lay laid; lead led; learn learnt;
leave left; lend lent; long length; lose lost loss losses; make made; marry marriage; mean meant; meet met; pay paid;
rise rose risen; run ran; see saw seen; seek sought; sell sold sale; send sent; show shown; sink sank sunk; speak spoke
spoken speech; spend spent; stand stood; steal stole stolen; strike struck; strong strength; take took taken; teach
taught; tell told; think thought; throw threw thrown; true truth; understand understood; wear wore worn; weigh weight;
wide width; win won; write wrote written
"""
_BASE_FORMS = {form: group.split()[0] for group in _IRREGULAR.split(";") for form in group.split()[1:]}
_CONNECTED = re.compile(
    r"\b(?:connect(?:s|ed|ions?)?|relat(?:ed?|es|ions?|ionships?)|link(?:s|ed)?|ties?|tied|involved)\b", re.IGNORECASE
)
_REGARD = " — "

_DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:\.|er| de)? {MONTH}|{MONTH}(?: \d{{1,2}})?,? \d{{4}}|1[0-9]{{3}}|20[0-9]{{2}}|{MONTH})\b"
)
_AMOUNT = re.compile(rf"[£$€]?\d[\d,.]*|\b(?:{'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)
_CAPITALIZED = rf"[^\W\d_a-zà-öø-ÿа-яё{UNSPACED}](?:(?![{UNSPACED}])[\w'’&.-])*"
_NAME = re.compile(rf"{_CAPITALIZED}(?:(?:,? (?:of|and|de|the|for|&) |,? ){_CAPITALIZED})*")
_PLACE = re.compile(
    rf"\b(?:in|at|from|to|off|near|into|on|of|for|by|im|am|zu|bei|aus|von|nach|à|au|en|de|du|vers|a|desde|hasta|в|на|из|от|у)"
    rf" ((?:(?:the|der|dem|den|la|le|el) )?{_CAPITALIZED})"
)
_ANSWERS = {"date": _DATE, "number": _AMOUNT, "place": _PLACE, "cause": CAUSE, "lesson": LESSON, "trouble": TROUBLE}
_PARTS = re.compile(r"\band\b|[,;]|\bwhy\b|\bhow (?:did|does|do|was|were|is|are|could|can|had|has|have)\b", re.I)
_SEVERAL = re.compile(r"\b(?:and|und|et|y|и)\b|[,;:]", re.I)
_POSSESSIVE = re.compile(r"['’]s\b|s['’](?!\w)")
_MAX_NAME_WORDS = 6
_WHO_DID = re.compile(r"\bwho (?:had |has |have |was |were |is |are |first |also )*(\w+)", re.I)
_DONE_WEIGHT = 1.2
_HONORIFICS = frozenset[str]().union(
    *map(word_list, ("cue_words:honorifics", "cue_words:titles kept", "foreign_words:titles"))
)
_IS = (
    rf"{IS_A}|(?:,? \([^)]*\))?,? (?:{COPULA} (?:(?:also|then|already|still) )?(?:\w+ of|called|known as)|served as)\b"
)
_DEFINES = re.compile(rf"{_IS}|, (?:{WHAT}\b|(?:[a-z]+ ){{1,2}}(?:of|at|to|in)\b|who\b|which\b)")
_DEFINES_THING = re.compile(rf"{_IS}|, (?:an? |which (?:is|was|are|were) )")  # ", the" is mostly a list's
_MIN_COMMON, _MIN_SHARED = 5, 0.8  # letters that begin both stems of kindred words, and their part of the longer
_KINDRED = 0.8
_DOER = ("er", "or")  # left on by the English stemmer
_PARTICLES = frozenset(["of", "and", "the", "de", "la", "le", "von", "van", "der", "du", "del", "&", "for"])
_PATTERNS = {"trouble": TROUBLE, "lesson": LESSON}  # kinds of answers with words of their own


def language_of_question(question: str, text: str = "") -> str:
    """The language of a question: the one whose stop words it has most of.

    On a tie, the language that `language_of` finds for the question or else for `text`, the text that it is about.

    >>> language_of_question("Wer war Klara Winter?"), language_of_question("Cyrus Field")
    ('de', 'en')
    """
    asked = question.rpartition(_REGARD)[2]
    words = _WORD.findall(asked.casefold())
    found = {language: sum(word in stop_words(language) for word in words) for language in LANGUAGES}
    likely = [language for language, count in found.items() if count == max(found.values())]
    if len(likely) == 1:
        return likely[0]
    return next((one for one in map(language_of, filter(None, (asked, text))) if one in likely), "en")


def stems(text: str, language: str = "en") -> set[str]:
    """The stems of the content words of `text`, which is read as one of that language."""
    left_out = stop_words(language)
    return set(_stemmed([word for word in _words(text) if word not in left_out], language))


def _words(text: str) -> list[str]:
    """The words of `text` in lower case, in order; where it has a script without spaces, those that search has."""
    return search_words_of(text) if has_unspaced_script(text) else _WORD.findall(text.casefold())


def _stemmed(words: list[str], language: str) -> list[str]:
    if language == "en":
        words = [_BASE_FORMS.get(word, word) for word in words]
    return languages.stems(words, language)


def kinship(one: str, other: str) -> float:
    """1 for equal stems, less for those of words that are probably derived from each other, 0 for others.

    >>> kinship("complain", "complaint"), kinship("buy", "buyer"), kinship("contract", "contrast")
    (0.8, 0.8, 0.0)
    """
    if one == other:
        return 1.0
    if one[:3] == other[:3] and any(one + end == other or other + end == one for end in _DOER):
        return _KINDRED
    if one[:_MIN_COMMON] != other[:_MIN_COMMON] or min(len(one), len(other)) < _MIN_COMMON:
        return 0.0
    common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return _KINDRED if common >= _MIN_SHARED * max(len(one), len(other)) else 0.0


def names_in(text: str, language: str = "en") -> list[str]:
    """Capitalized phrases of `text` of at least two letters, without the words that only begin a sentence."""
    found = []
    left_out = stop_words(language)
    for match in _NAME.finditer(without_references(text)):
        words = match[0].split()
        while words and (words[0].casefold().strip(".,'’") in left_out):
            words = words[1:]
        name = " ".join(words).strip(" ,.;:'’")
        name = re.sub(r"['’]s$", "", name)
        if len(name) > 2 and not name.isupper() and not _DATE.fullmatch(name):
            found.append(name)
    return list(dict.fromkeys(found))


def _subject(question: str, language: str) -> str | None:
    """X of "Who was X?", "What is the X?", "Give me an overview of X"; None when more is asked than that."""
    match = ABOUT.match(" ".join(question.rpartition(_REGARD)[2].split()))
    if not match:
        return None
    words = (match[1] or match[2]).split()
    # A phrase with grammar in it, "the capital of the company", is a question of its own, unless it is a name.
    content = [word for word in words if word.casefold() not in stop_words(language)]
    is_name = all(word[0].isupper() or word.casefold() in _PARTICLES for word in words)
    # "Scrooge's clerk" is a question too: whose clerk. "Marley's Ghost" is a name.
    simple = is_name or (len(content) == len(words) <= 3 and not _POSSESSIVE.search(" ".join(words[:-1])))
    return " ".join(words) if simple and content and len(words) <= _MAX_NAME_WORDS else None


def spelled(subject: str, texts: Sequence[str]) -> str:
    """`subject` as the texts spell it: a name that a question has in lower case, with capitals.

    >>> spelled("cyrus field", ["Cyrus Field sailed."]), spelled("gutta-percha", ["Gutta-percha and gutta-percha"])
    ('Cyrus Field', 'gutta-percha')
    """
    if subject != subject.casefold() or any(re.search(rf"\b{re.escape(subject)}\b", text) for text in texts):
        return subject
    words = [word if word in _PARTICLES else word[:1].upper() + word[1:] for word in subject.split()]
    stand = all(any(re.search(rf"\b{re.escape(word)}\b", text) for text in texts) for word in words)
    return " ".join(words) if stand else subject


def names(subject: str, text: str) -> int | None:
    """Where the first mention of `subject` in `text` ends; a name also by its last word, unless another precedes it.

    Cyrus Field is Cyrus West Field, Mr Field and Field, but not Matthew Field.
    """
    words = subject.split()
    is_name = words[-1][0].isupper()
    in_full = r"\s+".join(map(re.escape, words))
    if whole := re.search(rf"\b{in_full}\b", text, re.NOFLAG if is_name else re.IGNORECASE):
        return whole.end()
    if not is_name:
        return None
    for match in re.finditer(rf"\b{re.escape(words[-1])}\b", text):
        before = text[: match.start()].split()
        run = []
        while before and before[-1][0].isupper() and before[-1].casefold() not in stop_words("en") | _PARTICLES:
            run.append(before.pop().casefold())
        others = [word for word in run if word.strip(".,'’") not in _HONORIFICS]
        if not others or others[-1] == words[0].casefold():
            return match.end()
    return None


def definition(subject: str, text: str) -> float:
    """How much `text` says who or what the subject is, 0 to 1.

    1 for "X was a …" and "X, the …"; less for other sentences about X, that is with its full name or X in front;
    least for what only mentions X or what belongs to it; 0 without X.
    """
    plain = text.replace("*", "").replace("_", "")
    end = names(subject, plain)
    if end is None:
        return 0.0
    if plain[end : end + 2] in ("'s", "’s"):
        return 0.1
    end += len(plain[end:]) - len(plain[end:].lstrip('"”)]'))  # Tim Cratchit ("Tiny Tim"), a cripple
    first = subject.split()[0].casefold()
    defines = (_DEFINES if subject[0].isupper() else _DEFINES_THING).match(plain, end)
    # In "In May, on the motion of X, the society met" the second comma belongs to the first.
    before = plain[:end].casefold().rpartition(first)[0] or plain[:end].rpartition(subject.split()[-1])[0]
    is_aside = "," in before and not before.rstrip().endswith(",")
    if defines and not (is_aside and defines[0].startswith(", ")):
        return 1.0
    in_full = " " in subject and first in plain[max(end - 2 * len(subject), 0) : end].casefold()
    return 0.5 if in_full or end <= len(subject) + 12 else 0.1


@dataclass(frozen=True)
class Asked:
    """A question taken apart.

    `terms` are its content stems in order, `named` those of them that are names or numbers, `names` the sets of terms
    that together are one name, `kinds` the kinds of answer it wants: date, number, name, place, cause, lesson,
    trouble. `subject` is what it asks about when it asks only who or what that is.
    """

    text: str
    terms: tuple[str, ...]
    named: frozenset[str]
    kinds: tuple[str, ...]
    subject: str | None = None
    language: str = "en"
    names: tuple[frozenset[str], ...] = ()

    @classmethod
    def of(cls, question: str, language: str | None = None) -> "Asked":
        """The question as asked; what `with_regard_to` put in front of it counts as part of it."""
        language = language or language_of_question(question)
        kinds = tuple(kind for kind, pattern in KINDS.items() if pattern.search(question))
        left_out = stop_words(language).union(*(IMPLIED.get(kind, ()) for kind in kinds))
        found = names_in(question, language)
        capitals = {
            match[0].casefold() for match in _WORD.finditer(question) if match.start() and match[0][0].isupper()
        }
        content = [word for word in _words(question) if word not in left_out]
        stemmed = _stemmed(content, language)
        generic = _generic(language)
        if len(found) > 1:  # "How are X and Y connected?" is about X and Y
            generic |= stems(" ".join(_CONNECTED.findall(question)), language)
        specific = [(stem, word) for stem, word in zip(stemmed, content, strict=True) if stem not in generic]
        terms = list(dict.fromkeys(stem for stem, _ in specific))
        named = {stem for stem, word in specific if word[0].isdigit() or word in capitals}
        names = [frozenset(stems(name, language)) & named for name in found]
        terms += [_term_of(kind) for kind in kinds if kind in _PATTERNS]
        about = _subject(question, language)
        return cls(question, tuple(terms), frozenset(named), kinds, about, language, tuple(filter(None, names)))

    @property
    def about_everything(self) -> bool:
        """Whether it names nothing in particular: "What are the main themes?"."""
        return not self.terms and bool(_words(self.text))

    @property
    def has_parts(self) -> bool:
        """Whether it asks several things, or why or how something was: which one sentence rarely answers."""
        return bool(_PARTS.search(self.text))

    @property
    def asks_one_fact(self) -> bool:
        """Whether a date, number, name or place is all that it asks for."""
        return bool(self.kinds) and set(self.kinds) <= {"date", "number", "name", "place"}

    @property
    def asks_several(self) -> bool:
        """Whether it asks several things."""
        return bool(_SEVERAL.search(self.text))

    def with_regard_to(self, name: str) -> str:
        """The same question about another subject."""
        return f"{name}{_REGARD}{self.text.rpartition(_REGARD)[2]}"

    def words(self, text: str) -> set[str]:
        """The stems of a text, and the terms of the kinds of answers that it mentions."""
        kinds = (kind for kind in self.kinds if kind in _PATTERNS and _PATTERNS[kind].search(text))
        return stems(text, self.language).union(map(_term_of, kinds))

    def occurrences(self, texts: Sequence[set[str]]) -> np.ndarray:
        """How well each text matches each term, 0 to 1: float of shape (texts, terms)."""
        vocabulary = set().union(*texts)
        kindred = [{word: k for word in vocabulary if (k := kinship(term, word))} for term in self.terms]
        found = [[max((k for w, k in kin.items() if w in words), default=0.0) for kin in kindred] for words in texts]
        return np.array(found, float).reshape(len(texts), len(self.terms))

    def weights(self, has: np.ndarray) -> np.ndarray:
        """How much each term counts, 1 in all: rare ones more, names a little more, and numbers half.

        A year is mostly where a text begins, and then for long not repeated.
        """
        weights = _rarity(has) * np.array([self._emphasis(term) for term in self.terms])
        return np.asarray(weights / (weights.sum() or 1))

    def shares(self, has: np.ndarray) -> np.ndarray:
        """What part of the question each term is, 1 in all: by rarity alone, the words of a name counting as one."""
        return self.shares_by(_rarity(has))

    def shares_by(self, rarity: np.ndarray) -> np.ndarray:
        """`shares` with the rarity of each term."""
        rarity = rarity.astype(float)
        for name in self.names:
            places = [place for place, term in enumerate(self.terms) if term in name]
            rarity[places] = rarity[places].mean() / len(places)
        return np.asarray(rarity / (rarity.sum() or 1))

    def _emphasis(self, term: str) -> float:
        if term.isdigit():
            return 0.5
        if term == self._done:
            return _DONE_WEIGHT
        return 1.2 if term in self.named else 1.0

    @cached_property
    def _done(self) -> str | None:
        """The stem of the action in a question "Who did it?", which an answer is likely to contain as its main verb."""
        match = _WHO_DID.search(self.text)
        return _stemmed([match[1].casefold()], self.language)[0] if match else None

    def holds(self, kind: str, text: str) -> bool:
        """Whether `text` has something of that kind that the question does not have already."""
        found = names_in(text, self.language) if kind == "name" else _ANSWERS[kind].findall(text)
        known = self.text.casefold()
        return any(item.casefold() not in known for item in found)


def _rarity(has: np.ndarray) -> np.ndarray:
    """How rare each term is among the texts, from (texts, terms): ln(1 + (texts + 1) / (texts with it + 1))."""
    return np.asarray(np.log(1 + (len(has) + 1) / (has.sum(axis=0) + 1)))


def _term_of(kind: str) -> str:
    return f"?{kind}"


@cache
def _generic(language: str) -> frozenset[str]:
    return frozenset(stems(GENERIC.get(language, ""), language))
