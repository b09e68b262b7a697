"""Counts the sentences of an answer whose names, numbers and dates stand literally in what they cite.

A literal count, not a judgment: it misses paraphrases, names at the start of a sentence, and what a sentence says about
the names. An answer in another language than its sources mostly counts as unsupported.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from graphrag_assets.contracts.answering import NO_ANSWER
from graphrag_assets.query.citations import REMARK, Citation
from graphrag_assets.text.references import BLOCK, rows_cited_in
from graphrag_assets.text.words import sentences

_ENDS_STATEMENT = re.compile(r"\n\s*\n|\n(?=[^\S\n]*(?:[-*•#]|\d+\.)\s)")
_MARKER = re.compile(r"^\s*(?:[-*•…]|\d+\.)\s+")
_WORD = re.compile(r"[^\W_]+(?:[.,]\d+)*")

Row = tuple[str, int]
"""Table and number of a row."""


class Supported(NamedTuple):
    """Of the sentences `of` with a name, a number or a date, those whose cited passages have all of these."""

    sentences: int
    of: int

    def __str__(self) -> str:
        return f"{self.sentences} of {self.of} sentences have their names and numbers in what they cite"


def supported_sentences(answer: str, citations: Sequence[Citation]) -> Supported:
    """Count the supported sentences of an answer. Those without a name or number, and headings, do not count.

    Names are words in capitals other than the first word of a sentence. Each has to be in one of the quotes.
    """
    if answer.startswith(NO_ANSWER):
        return Supported(0, 0)
    found: list[bool] = []
    for statement, rows in cited_statements(answer):
        quotes = [c.quote or "" for c in citations if any((row.table, row.number) in rows for row in c.rows)]
        quoted = set(_WORD.findall(" ".join(quotes).casefold()))
        for span in sentences(statement):
            sentence = statement[span.start : span.end].strip()
            words = _WORD.findall(_MARKER.sub("", sentence))
            names = {word.casefold() for place, word in enumerate(words) if _is_name(word, first=place == 0)}
            if names and not sentence.startswith("#") and not sentence.endswith(":"):
                found.append(names <= quoted)
    return Supported(sum(found), len(found))


def _is_name(word: str, first: bool) -> bool:
    return word[0].isdigit() or (word[0].isupper() and not first)


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
