"""Counts the sentences of an answer that what they cite supports: names, numbers and dates literally, words by share.

A count, not a judgment: it does not see what a sentence says about its names. Of an answer in another language than its
sources only names and numbers are compared.
"""

import re
from collections.abc import Callable, Iterable, Sequence, Set
from typing import NamedTuple

from graphrag_assets.contracts.answering import NO_ANSWER
from graphrag_assets.embedded import Period, periods
from graphrag_assets.query.citations import REMARK, Citation
from graphrag_assets.query.contradictions import ContradictingClaim, Contradiction
from graphrag_assets.query.question_terms import words_of_texts
from graphrag_assets.runtime.cancellation import raise_if_canceled
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.iso_dates import MONTHS
from graphrag_assets.text.references import BLOCK, rows_cited_in
from graphrag_assets.text.words import fold, sentences

_ENDS_STATEMENT = re.compile(r"\n\s*\n|\n(?=[^\S\n]*(?:[-*•#]|\d+\.)\s)")
_MARKER = re.compile(r"^\s*(?:[-*•…]|\d+\.)\s+")
_WORD = re.compile(r"[^\W_]+(?:[.,]\d+)*")
_GAP = re.compile(
    r"\b(?:(?:do|does|did|is|are|was|were|has|have|can|could) ?(?:not|n['’]t)|cannot|nothing|no|neither|never) "
    r"(?:\w+ ){0,3}(?:mention|state|say|said|specif|provide|contain|include|indicate|reveal|record|describ|tell|give|"
    r"information|data|evidence|detail|determine|known|answer)"
    r"|\b(?:kein|nicht) (?:\w+ ){0,3}(?:Angabe|Information|Hinweis|genannt|erwähnt|angegeben|bekannt)",
    re.IGNORECASE,
)
_MIN_LETTERS = 4
_MIN_SHARE = 0.5  # of the words of a sentence in what it cites

Row = tuple[str, int]
"""Table and number of a row."""


class Supported(NamedTuple):
    """Of the sentences `of` that state something, those that what they cite supports."""

    sentences: int
    of: int

    def __str__(self) -> str:
        return f"{self.sentences} of {self.of} sentences are supported by what they cite"


def supported_sentences(
    answer: str,
    citations: Sequence[Citation],
    contradictions: Sequence[Contradiction] = (),
    read: Iterable[str] = (),
    reader: Reader | None = None,
) -> Supported:
    """Count the supported sentences of an answer: headings, and sentences that say what is not known, do not count.

    Each name and number has to be in one of the quotes, each date on the same day, and half of the words. A sentence
    that states a claim which a later one contradicts is not supported, unless the answer cites that one, too.

    Args:
        read: the texts that the answer was written from; they tell names at the beginning of a sentence from words.
        reader: its index; words that it does not have do not count.
    """
    if answer.startswith(NO_ANSWER):
        return Supported(0, 0)
    disputed = [claim for found in contradictions for claim in _disputed(found)]
    texts, found = "\n".join(read), list[bool]()
    for statement, rows in cited_statements(answer):
        quotes = " ".join(c.quote or "" for c in citations if any((row.table, row.number) in rows for row in c.rows))
        for span in sentences(statement):
            raise_if_canceled()
            sentence = statement[span.start : span.end].strip()
            if sentence.startswith("#") or sentence.endswith(":") or _GAP.search(sentence):
                continue
            stated = _Stated.of(_MARKER.sub("", sentence), texts or quotes)
            if not stated.names and (not rows or len(stated.words) < 2):
                continue
            contradicted = any(_share(_words(claim.description), sentence) >= _MIN_SHARE for claim in disputed)
            found.append(not contradicted and stated.is_in(quotes, lambda words: words_of_texts(reader, words)))
    return Supported(sum(found), len(found))


class _Stated(NamedTuple):
    """What a sentence states: its names and numbers, its dates, its other words."""

    names: Set[str]
    dates: Sequence[Period]
    words: Set[str]

    @classmethod
    def of(cls, sentence: str, texts: str) -> "_Stated":
        words = _WORD.findall(sentence)
        first = words[:1] if len(words) > 1 and _is_name_in(words[0], texts, words[1][0].isupper()) else []
        names = {word.casefold() for word in (*first, *words[1:]) if word[0].isupper()}
        return cls(names | {word for word in words if word[0].isdigit()}, periods(sentence), _words(sentence) - names)

    def is_in(self, quotes: str, counted: Callable[[Set[str]], Set[str]]) -> bool:
        quoted, dates = set(_WORD.findall(quotes.casefold())), periods(quotes) if self.dates else []
        if not self.names - quoted <= {part for date in self.dates if _has_date(date, dates) for part in _parts(date)}:
            return False
        missing = {word for word in self.words if not _share({word}, quotes)}
        present = len(self.words) - len(missing)
        if len(missing) > max(present, 1):
            missing = set(counted(missing))
        return len(missing) <= max(present, 1)


def _is_name_in(word: str, texts: str, before_name: bool) -> bool:
    """Whether a word at the beginning of a sentence is a name: the texts have it in capitals alone."""
    if not word[0].isupper() or len(word) < _MIN_LETTERS or re.search(rf"\b{re.escape(word.lower())}\b", texts):
        return False
    return before_name or re.search(rf"[\w,;] {re.escape(word)}\b", texts) is not None


def _has_date(date: Period, dates: Sequence[Period]) -> bool:
    """Whether one of the dates is this one, or within it."""
    return any(
        date.start <= one.start and one.end[: len(date.end)] <= date.end and one.start[:4] >= date.start[:4]
        for one in dates
    )


def _parts(date: Period) -> set[str]:
    """The words that a date may be written with."""
    found = set[str]()
    for day in date:
        year, *rest = day.split("-")
        found |= {year, year[2:], *rest, *(part.lstrip("0") for part in rest)}
        found |= {name for name, number in MONTHS.items() if rest and number == int(rest[0])}
        found |= {f"{int(part)}{end}" for part in rest[1:] for end in ("st", "nd", "rd", "th")}
    return found


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text) if len(word) >= _MIN_LETTERS and word[0].isalpha()}


def _share(words: Set[str], text: str) -> float:
    """The share of the words that the text has, with four fifths of their letters."""
    folded = " " + " ".join(re.findall(r"\w+", fold(text.casefold())))
    beginnings = [f" {fold(word)[: max(_MIN_LETTERS, round(0.8 * len(word)))]}" for word in words]
    return sum(beginning in folded for beginning in beginnings) / max(len(words), 1)


def _disputed(found: Contradiction) -> list[ContradictingClaim]:
    """The claims that the answer cites without the one that contradicts them, if that is not the earlier one."""
    one, other = found.claims
    pairs = ((one, other), (other, one))
    return [claim for claim, against in pairs if claim.cited and not claim.later and not against.cited]


def cited_statements(answer: str) -> list[tuple[str, tuple[Row, ...]]]:
    """Return the parts of an answer, each with the rows cited at its end: none for what ends without a reference.

    >>> cited_statements("First.\\n\\nShe broke it. [Data: Sources (3)]")
    [('First.', ()), ('She broke it.', (('Sources', 3),))]
    """
    answer = REMARK.sub("", answer)
    found: list[tuple[str, tuple[Row, ...]]] = []
    end = 0
    for block in BLOCK.finditer(answer):
        rows, said = tuple(rows_cited_in(block["rows"])), answer[end : block.start()]
        end = block.end()
        if said.strip():
            *before, last = _ENDS_STATEMENT.split(said)
            found += [(part, ()) for part in before] + [(last, rows)]
        elif found:  # of consecutive blocks
            found[-1] = (found[-1][0], (*found[-1][1], *rows))
    found += [(part, ()) for part in _ENDS_STATEMENT.split(answer[end:])]
    return [(part.strip(), rows) for part, rows in found if part.strip()]
