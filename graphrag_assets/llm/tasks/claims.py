"""The claims of an extraction, each with the passage of the text that supports it."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, WithJsonSchema

from graphrag_assets.contracts.records import ClaimRecord
from graphrag_assets.llm.tasks.answer_forms import Form, Text, as_text
from graphrag_assets.text.iso_dates import period
from graphrag_assets.text.words import sentences, title_key

NONE = "NONE"
_NOTHING = {"", NONE, "NULL", "N/A", "UNKNOWN"}
CLAIM_DESCRIPTION = "dated or quantified facts, decisions, changes, and whatever else about an entity can be checked."
MIN_SIMILARITY = 0.6  # Dice coefficient of words from which a sentence counts as the quoted one

_STATUS = {
    "TRUE": "TRUE",
    "CONFIRMED": "TRUE",
    "YES": "TRUE",
    "FALSE": "FALSE",
    "REFUTED": "FALSE",
    "DENIED": "FALSE",
    "NO": "FALSE",
}


Status = Annotated[
    str, BeforeValidator(as_text), WithJsonSchema({"type": "string", "enum": ["TRUE", "FALSE", "SUSPECTED"]})
]


class ExtractedClaim(Form):
    other_names: ClassVar = {
        "subject_id": "subject",
        "object_id": "object",
        "claim_type": "type",
        "source": "source_text",
    }
    subject: Text
    object: Text = ""
    type: Text = ""
    status: Status = ""
    start_date: Text | None = None
    end_date: Text | None = None
    description: Text = ""
    source_text: Text = ""
    replaces: Text = ""


def claim_records(claims: Iterable[ExtractedClaim], text: str) -> tuple[list[ClaimRecord], int]:
    """Return the claims, each once, and the number of invented ones.

    A claim without a subject, without a statement, or without a similar passage in `text` (invented by the model)
    is dropped. `source_text` is always a literal part of `text`.
    """
    source = SourceText(text)
    records: dict[tuple[str, str, str, str], ClaimRecord] = {}
    n_invented = 0
    for claim in claims:
        subject, object_ = (" ".join(name.split()) for name in (claim.subject, claim.object))
        stated = claim.source_text or claim.description
        if not title_key(subject) or subject.upper() in _NOTHING or not stated:
            continue
        quoted = source.find(stated)
        if quoted is None:
            n_invented += 1
            continue
        start, end = period(claim.start_date, claim.end_date)
        record = ClaimRecord(
            subject=subject,
            object=NONE if object_.upper() in _NOTHING else object_,
            type=" ".join(claim.type.split()).upper() or "CLAIM",
            description=claim.description or quoted,
            source_text=quoted,
            status=_STATUS.get(claim.status.upper(), "SUSPECTED"),
            start_date=start,
            end_date=end,
            replaces=claim.replaces,
        )
        key = (title_key(subject), title_key(record.object), record.type, quoted)
        first = records.setdefault(key, record)
        if len(record.description) > len(first.description):
            records[key] = replace(first, description=record.description)
    return list(records.values()), n_invented


# A word, or a single character of the scripts that put no spaces between words.
_CHARACTER = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(f"[{_CHARACTER}]|[^\\W{_CHARACTER}]+")
_UNSPACED = re.compile(f"[{_CHARACTER}]")
_ELLIPSIS = re.compile(r"\s*(?:\[(?:\.{3}|…)\]|\.{3,}|…)\s*")


@dataclass(frozen=True)
class SourceText:
    """A text in which quotations are located."""

    text: str

    def find(self, quotation: str) -> str | None:
        """Return the quoted part of the text, in the text's own wording; None if there is none.

        The same words in the same order, regardless of case, white space and punctuation, with "…" standing for any
        words between; else the one to three sentences with the most similar words.
        """
        if quotation in self.text:
            return quotation
        span = self._span(quotation)
        if span is None and (parts := [part for part in _ELLIPSIS.split(quotation) if part])[1:]:
            spans: list[tuple[int, int]] = []
            for part in parts:
                part_span = self._span(part, spans[-1][1] if spans else 0)
                if part_span is None:
                    break
                spans.append(part_span)
            else:
                span = spans[0][0], spans[-1][1]
        return self.text[slice(*span)] if span else self._most_similar(quotation)

    def _span(self, quotation: str, start: int = 0) -> tuple[int, int] | None:
        words = _WORD.findall(quotation)
        if not words:
            return None
        unspaced = _UNSPACED.search(quotation)
        pattern = (r"\W*" if unspaced else r"\W+").join(map(re.escape, words))
        match = re.compile(pattern if unspaced else rf"\b{pattern}\b", re.IGNORECASE).search(self.text, start)
        return match.span() if match else None

    @cached_property
    def _sentences(self) -> list[tuple[int, int, Counter[str]]]:
        spans = [(span.start, span.end) for span in sentences(self.text)]
        return [(start, end, _words(self.text[start:end])) for start, end in spans]

    def _most_similar(self, quotation: str) -> str | None:
        wanted = _words(quotation)
        best, similarity = (0, 0), 0.0
        for first, (start, _, _) in enumerate(self._sentences):
            held: Counter[str] = Counter()
            for _, end, words in self._sentences[first : first + 3]:
                held += words
                candidate = 2 * (held & wanted).total() / ((held.total() + wanted.total()) or 1)
                if candidate > similarity:
                    best, similarity = (start, end), candidate
        return self.text[slice(*best)].strip() if similarity >= MIN_SIMILARITY else None


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.casefold()))
