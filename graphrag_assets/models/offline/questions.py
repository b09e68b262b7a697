"""What a question asks for, read from its words: its terms, the names in it, and the kind of answer it wants."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from graphrag_assets.models.offline.stop_words import STOP_WORDS

_WORD = re.compile(r"[^\W_]+")
_SUFFIX = re.compile(r"(?:ingly|edly|ings?|ers?|ors?|ed|es|s|ly|e)$")
_GENERIC = """
main major key chief overall general important central theme topic subject summary summarise summarize describe
description tell explain discuss information data dataset corpus document text story book collection content cover
question answer name list give happen kind sort type way thing fact
"""
_REGARD = " — "

_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(rf"\b(?:\d{{1,2}} {_MONTH}|{_MONTH}(?: \d{{1,2}})?,? \d{{4}}|1[0-9]{{3}}|20[0-9]{{2}}|{_MONTH})\b")
_NUMBER_WORDS = """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million half dozen once twice
"""
_AMOUNT = re.compile(rf"[£$€]?\d[\d,.]*|\b(?:{'|'.join(_NUMBER_WORDS.split())})\b", re.IGNORECASE)
_CAPITALISED = r"[^\W\d_a-zà-öø-ÿ][\w'’&.-]*"
_NAME = re.compile(rf"{_CAPITALISED}(?:(?:,? (?:of|and|de|the|for|&) |,? ){_CAPITALISED})*")
_PLACE = re.compile(rf"\b(?:in|at|from|to|off|near|into|on|of|for|by) (?:the )?{_CAPITALISED}")

_KINDS = (
    (re.compile(r"\bwhen\b|\b(?:what|which|on what) (?:day|date|year|month)\b", re.I), "date"),
    (re.compile(r"\bhow (?:much|many|long|far|deep|heavy|fast|large|big|old|wide)\b", re.I), "number"),
    (re.compile(r"\b(?:cost|price|capital|weight|depth|pressure|speed|length)\b", re.I), "number"),
    (
        re.compile(r"\bwho(?:m|se)?\b|\bwhich (?:\w+ )?(?:men|man|people|person|officer|engineer)\b", re.I),
        "name",
    ),
    (
        re.compile(r"\b(?:which|what) (?:\w+ ){0,2}(?:ship|vessel|company|compan|firm|business|member)", re.I),
        "name",
    ),
    (re.compile(r"\bwhere\b", re.I), "place"),
)


@cache
def _stem(word: str) -> str:
    """`word` without its ending: laying, lays → lay; commanded, commander → command."""
    stem = _SUFFIX.sub("", word)
    return stem if len(stem) >= 3 and not word.isdigit() else word


def stems(text: str) -> set[str]:
    """The content words of `text`, case-folded and without their endings."""
    return {_stem(word) for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS}


def names_in(text: str) -> list[str]:
    """Capitalised phrases of `text` of at least two letters, without the words that only begin a sentence."""
    found = []
    for match in _NAME.finditer(re.sub(r"\[Data:[^\]]*\]", "", text)):
        words = match[0].split()
        while words and (words[0].casefold().strip(".,'’") in STOP_WORDS):
            words = words[1:]
        name = " ".join(words).strip(" ,.;:'’")
        name = re.sub(r"['’]s$", "", name)
        if len(name) > 2 and not name.isupper() and not _DATE.fullmatch(name):
            found.append(name)
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Asked:
    """A question taken apart.

    `terms` are its content stems in order, `named` those of them that are names or numbers, `kinds` the kinds of
    answer it wants: date, number, name, place.
    """

    text: str
    terms: tuple[str, ...]
    named: frozenset[str]
    kinds: tuple[str, ...]

    @classmethod
    def of(cls, question: str) -> "Asked":
        """The question as asked; what `with_regard_to` put in front of it counts as part of it."""
        words = [(match[0], match.start()) for match in _WORD.finditer(question)]
        content = [(word, at) for word, at in words if word.casefold() not in STOP_WORDS]
        specific = [(word, at) for word, at in content if _stem(word.casefold()) not in _GENERIC_STEMS]
        terms = tuple(dict.fromkeys(_stem(word.casefold()) for word, _ in specific))
        named = {_stem(w.casefold()) for w, at in specific if w[0].isdigit() or (w[0].isupper() and at > 0)}
        kinds = tuple(dict.fromkeys(kind for pattern, kind in _KINDS if pattern.search(question)))
        return cls(question, terms, frozenset(named), kinds)

    @property
    def about_everything(self) -> bool:
        """Whether it names nothing in particular: "What are the main themes?"."""
        return not self.terms

    def with_regard_to(self, name: str) -> str:
        """The same question, asked of something that came up."""
        return f"{name}{_REGARD}{self.text.rpartition(_REGARD)[2]}"

    def weights(self, texts: Sequence[set[str]]) -> np.ndarray:
        """How much each term counts, 1 in all: rare ones more, names a little more, and numbers half.

        A year is mostly where a text begins, and then for long not repeated.
        """
        counts = np.array([sum(term in words for words in texts) for term in self.terms], float)
        rarity = np.log(1 + (len(texts) + 1) / (counts + 1))
        weights = rarity * np.array([self._emphasis(term) for term in self.terms])
        return np.asarray(weights / (weights.sum() or 1))

    def _emphasis(self, term: str) -> float:
        if term.isdigit():
            return 0.5
        return 1.2 if term in self.named else 1.0

    def coverage(self, words: set[str], weights: np.ndarray) -> float:
        """The part of the question that the words cover, 0 to 1."""
        return float(sum(weight for term, weight in zip(self.terms, weights, strict=True) if term in words))

    def holds(self, kind: str, text: str) -> bool:
        """Whether `text` has something of that kind that the question does not have already."""
        found: list[str] = []
        if kind == "date":
            found = _DATE.findall(text)
        elif kind == "number":
            found = _AMOUNT.findall(text)
        elif kind == "place":
            found = [match[0].split(" ", 1)[1] for match in _PLACE.finditer(text)]
        elif kind == "name":
            found = names_in(text)
        known = self.text.casefold()
        return any(item.casefold() not in known for item in found)


_GENERIC_STEMS = frozenset(_stem(word) for word in _GENERIC.split())
