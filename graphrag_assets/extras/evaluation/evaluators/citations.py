"""Whether the passages that an answer cites say what it says: citation precision and recall (ALCE, Gao et al. 2023).

A passage supports a sentence if it has at least 0.6 of the sentence's content words, by their stems. That is a count,
not a judgment: it misses paraphrases. Names, numbers and dates are counted apart (`facts`).
"""

import re
from collections.abc import Mapping, Sequence

from graphrag_assets.text.languages import STOP_WORDS, stems

SUPPORT = 0.6
_WORD = re.compile(r"[^\W_]+")

Row = tuple[str, int]


def supports(passage: str, sentence: str, language: str = "en") -> bool:
    """Whether a passage has enough of a sentence's content words. A sentence without any is supported."""
    said = _content_words(sentence, language)
    return not said or len(said & _content_words(passage, language)) >= SUPPORT * len(said)


def citation_precision(
    statements: Sequence[tuple[str, Sequence[Row]]], quotes: Mapping[Row, Sequence[str]]
) -> list[bool]:
    """For each row cited with a statement, whether one of its passages supports the statement."""
    return [any(supports(quote, said) for quote in quotes.get(row, ())) for said, rows in statements for row in rows]


def citation_recall(statements: Sequence[tuple[str, Sequence[Row]]], quotes: Mapping[Row, Sequence[str]]) -> list[bool]:
    """For each statement, whether a passage that it cites supports it."""
    return [
        any(supports(quote, said) for row in rows for quote in quotes.get(row, ()))
        for said, rows in statements
        if _content_words(said)
    ]


def _content_words(text: str, language: str = "en") -> set[str]:
    words = [word.casefold() for word in _WORD.findall(text)]
    return set(stems([word for word in words if word not in STOP_WORDS], language))
