"""How sure an answer is: measured on its text, its citations and its search, never asked of a model.

A sentence is supported if the passages and rows that it cites have half of its content words. The question is covered
by the share of its words, weighted by rarity, that the cited passages have.

- low: no answer, nothing cited, less than half of the sentences supported, or less than half of the question covered;
- high: 90 % of the sentences supported; 90 % of the question covered, or 70 % where two documents support at least half
  of the sentences; no contradicted claim cited, no failure, no invalid reference, no step that found nothing;
- medium: everything else, and whatever cannot be measured.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphrag_assets.answering import CLOSEST, NO_ANSWER
from graphrag_assets.embedded import Asked, language_of_question, stems
from graphrag_assets.languages import UNKNOWN, language_of
from graphrag_assets.query.citations import REMARK, Citation
from graphrag_assets.references import BLOCK, rows_cited_in, without_references
from graphrag_assets.text import sentences

MEDIUM, HIGH, HIGH_BY_SEVERAL = 0.5, 0.9, 0.7
"""Minimum shares of supported sentences and of the question that is covered, by level."""
_SHARED = 0.5  # of a sentence's content words, in what it cites
_ENDS_STATEMENT = re.compile(r"\n\s*\n|\n(?=[^\S\n]*(?:[-*•#]|\d+\.)\s)")
_NAME_OR_NUMBER = re.compile(r"(?:[^\W\d_a-zß-öø-ÿ]|\d)\w*")

Row = tuple[str, int]
"""Table and number of a row."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """The confidence in an answer: `level` is high, medium or low.

    `supported`: the share of its sentences that a cited passage supports. `agreed`: the share that passages of two
    documents support. `covered`: the share of the question's words in the cited passages. They are None where they
    cannot be measured.
    """

    level: str
    reasons: tuple[str, ...]
    supported: float | None = None
    agreed: float | None = None
    covered: float | None = None

    def __str__(self) -> str:
        """The level and the reasons in one line."""
        return f"{self.level}: {'; '.join(self.reasons)}"


def confidence_of(
    question: str,
    answer: str,
    citations: Sequence[Citation],
    rows: Mapping[Row, str],
    contradicted: int = 0,
    flaws: Sequence[str] = (),
) -> Confidence:
    """The confidence in an answer.

    Args:
        question: understandable by itself.
        rows: the texts of the context by table and number.
        contradicted: number of contradictions among the cited claims.
        flaws: what else speaks against it: failures, invalid references, steps that found nothing.
    """
    if answer.startswith(NO_ANSWER):
        return Confidence("low", ("it says that the data does not answer the question",))
    if answer.startswith(CLOSEST):
        return Confidence("low", ("it shows the closest passages instead of an answer",))
    if not any(citation.quote for citation in citations):
        return Confidence("low", ("it cites no passage",))
    documents = _documents_by_sentence(answer, citations, rows)
    covered = _covered(question, citations, rows)
    n = len(documents)
    supported = sum(found is not None for found in documents) / n if n else None
    agreed = sum(found is not None and found > 1 for found in documents) / n if n else None
    reasons = [f"{_share(supported, n)} sentences are supported by what they cite"] if supported is not None else []
    reasons += [f"{_share(agreed, n)} by two documents or more"] if agreed else []
    reasons += (
        ["the cited passages cannot be compared with the question by words"]
        if covered is None
        else [f"the cited passages have {covered:.0%} of the question's words, by rarity"]
    )
    against = [f"{contradicted} claims that it cites are contradicted"] if contradicted else []
    against += flaws
    enough = HIGH_BY_SEVERAL if (agreed or 0) >= MEDIUM else HIGH
    if (supported or 0) < MEDIUM or (covered is not None and covered < MEDIUM):
        level = "low"
    elif (supported or 0) >= HIGH and (covered or 0) >= enough and not against:
        level = "high"
    else:
        level = "medium"
    return Confidence(level, (*reasons, *against), supported, agreed, covered)


def _share(share: float | None, of: int) -> str:
    return f"{round((share or 0) * of)} of {of}"


def cited_statements(answer: str) -> list[tuple[str, tuple[Row, ...]]]:
    """The parts of an answer, each with the rows cited at its end: none for what ends without a reference.

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


def _documents_by_sentence(answer: str, citations: Sequence[Citation], rows: Mapping[Row, str]) -> list[int | None]:
    """For each sentence that says something, the number of documents that support it; None: it is not supported."""
    plain = without_references(answer)
    language = language_of(plain)
    language = language_of_question(plain) if language == UNKNOWN else language
    found: list[int | None] = []
    for statement, cited in cited_statements(answer):
        passages = [c for c in citations if c.quote and any((row.table, row.number) in cited for row in c.rows)]
        for span in sentences(statement, language):
            sentence = statement[span.start : span.end].strip()
            words = stems(sentence, language)
            if not words or sentence.startswith("#") or sentence.endswith(":"):
                continue
            texts = [*(c.quote or "" for c in passages), *(rows[row] for row in cited if row in rows)]
            supporting = {c.document_id for c in passages if _supports(sentence, words, c.quote or "", language)}
            found.append(
                len(supporting) if supporting or _supports(sentence, words, "\n".join(texts), language) else None
            )
    return found


def _supports(sentence: str, words: set[str], text: str, language: str) -> bool:
    """Whether `text` has half of the content words; in another language, one of the names and numbers."""
    if not text:
        return False
    if _same_language(language, text):
        return len(words & stems(text, language)) >= _SHARED * len(words)
    known = text.casefold()
    return any(name.casefold() in known for name in _NAME_OR_NUMBER.findall(sentence))


def _same_language(language: str, text: str) -> bool:
    return language_of(text) in (language, UNKNOWN)


def _covered(question: str, citations: Sequence[Citation], rows: Mapping[Row, str]) -> float | None:
    """The share of the question's words in the cited passages, by their rarity among these and the context."""
    quotes = list(dict.fromkeys(citation.quote for citation in citations if citation.quote))
    asked = Asked.of(question, language_of_question(question, quotes[0]))
    if not asked.terms or not any(_same_language(asked.language, quote) for quote in quotes):
        return None
    words = [asked.words(text) for text in (*quotes, *rows.values())]
    has = asked.occurrences(words)
    return float(has[: len(quotes)].max(axis=0) @ asked.shares(has))
