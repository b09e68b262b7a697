"""What goes into and comes out of models, whichever they are: the embedded default or a language model."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

UNKNOWN = "UNKNOWN"
"""The type of an entity that has been given none."""


class TextUnit(NamedTuple):
    """What an extraction is made from: a text unit, and of its document title, language (ISO 639-1), date, metadata.

    `headings`: the document's title and the headings above and in the text unit, with " › " between them.
    `correspondents`: the names of sender and receivers of a mail, one a line. `source`: the file.
    """

    id: str
    text: str
    title: str = ""
    language: str = "en"
    document_date: date | None = None
    metadata: str = ""
    headings: str = ""
    correspondents: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """One entity named in a text unit. `n_sentences`: in how many of its sentences it is named."""

    title: str
    type: str
    description: str
    n_sentences: int = 1


@dataclass(frozen=True, slots=True)
class RelationshipRecord:
    """A relation of two entities stated in a text unit. `strength`: 1 to 10 from a model, or a sentence count.

    `replaces`: what no longer holds because of it, in the words of the text.
    """

    source: str
    target: str
    description: str
    strength: float = 1.0
    type: str = ""
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """A dated or quantified statement. `status` is TRUE, FALSE or SUSPECTED; dates are ISO 8601 or None.

    `replaces`: what no longer holds because of it, in the words of the text.
    """

    subject: str
    object: str
    type: str
    description: str
    source_text: str
    status: str = "TRUE"
    start_date: str | None = None
    end_date: str | None = None
    replaces: str = ""


ENCODING = "encoding"
"""Stage of the index_errors rows of files that are indexed although their encoding is in doubt."""
GLEAN = "glean"
"""Stage of the index_errors rows of text units with a failed gleaning, which the next run tries again."""
GIVEN_UP = "It is given up: two runs got no valid answer."
"""Ends the errors of requests that are not sent again by themselves."""
RETRY = (
    "It is not requested again until the model or the prompt changes. To request it: `graphrag-assets index --retry`."
)
"""The hint of index_errors rows of what is given up."""
EMBED = "embed"
"""Stage of the index_errors rows of text units, entities and reports without a vector."""
LOSS_STAGES = (
    GLEAN,
    "dropped_records",
    "guessed_repairs",
    "invented_claims",
    "ungrounded",
)
"""Stages of the index_errors rows of text units that were extracted with losses."""
OF_READ_TEXT = ("extract", "context", "date", ENCODING, EMBED, *LOSS_STAGES)
"""Stages of index_errors that concern text that was read. The others say what of the input was skipped."""


def problems_in_words(stages: Iterable[str]) -> str:
    """Return how many rows of index_errors are input that was skipped, and how many are not, by their stages."""
    skipped = [stage not in OF_READ_TEXT for stage in stages]
    n_others = len(skipped) - sum(skipped)
    counts = ((sum(skipped), "skipped"), (n_others, "other problems" if n_others > 1 else "other problem"))
    return ", ".join(f"{n:,} {what}" for n, what in counts if n)


@dataclass(frozen=True, slots=True)
class Losses:
    """What the answers for a text unit lack, although the unit is extracted.

    `failed_gleaning`: the error of a gleaning without a usable answer, or "". `dropped_records`: of the wrong form.
    `guessed_repairs`: answers in broken JSON whose repair may have lost something. `invented_claims`: claims whose
    quotation is not in the text. `ungrounded`: entities whose name stands neither in the text unit nor in its context.
    """

    failed_gleaning: str = ""
    dropped_records: int = 0
    guessed_repairs: int = 0
    invented_claims: int = 0
    ungrounded: tuple[str, ...] = ()


NO_LOSSES = Losses()


@dataclass(frozen=True, slots=True)
class UnitExtraction:
    """Everything extracted from one text unit."""

    entities: list[EntityRecord] = field(default_factory=list)
    relationships: list[RelationshipRecord] = field(default_factory=list)
    claims: list[ClaimRecord] = field(default_factory=list)
    losses: Losses = NO_LOSSES


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A row of a report's context: its section, its number, the names it is about, and its text."""

    section: str
    number: int
    names: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class ReportMaterial:
    """What a community report is written from.

    `leading`: the best connected members' titles, best first. `rows` and `context` hold the same evidence, row by
    row and as the text that a prompt takes.
    """

    size: int
    n_text_units: int
    leading: tuple[str, ...]
    rows: tuple[ReportRow, ...]
    context: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a community report: a headline and the sentences, with citations, that carry it."""

    summary: str
    explanation: str


@dataclass(frozen=True, slots=True)
class ReportRecord:
    """A community report. `rating` is its importance from 0 to 10; `writer` tells who stood in for the reporter."""

    title: str
    summary: str
    findings: list[Finding]
    rating: float
    rating_explanation: str
    writer: str = ""

    @property
    def full_content(self) -> str:
        """The report as Markdown, as GraphRAG renders it."""
        findings = "\n\n".join(f"## {finding.summary}\n\n{finding.explanation}" for finding in self.findings)
        return f"# {self.title}\n\n{self.summary}\n\n{findings}".rstrip()
