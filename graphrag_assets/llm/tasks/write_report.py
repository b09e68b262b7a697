"""The report on one community."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field, model_validator

from graphrag_assets.contracts.records import Finding, ReportMaterial, ReportRecord
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, Rating, Text
from graphrag_assets.llm.tasks.chat_protocol import NOWHERE, Chat, Origin, ask
from graphrag_assets.text.references import without_references
from graphrag_assets.text.words import sentences

GRAPH, TEXT = "community_report", "community_report_text"
MIDDLE_RATING = 5.0  # of a report without a rating
_MAX_HEADLINE_LENGTH = 120  # characters


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of reports. `task`: `GRAPH` for contexts of entities and relationships, `TEXT` for passages."""

    max_words: int = 1500
    language: str | None = None
    task: str = GRAPH


_DEFAULTS = ReportOptions()


class ReportFinding(Form):
    other_names: ClassVar = {"headline": "summary", "title": "summary", "description": "explanation"}
    summary: Text = ""
    explanation: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _plain_text(cls, data: object) -> object:
        return {"explanation": data} if isinstance(data, str) else data


class CommunityReport(AnswerForm):
    title: Text = ""
    summary: Text = ""
    findings: Salvaged[ReportFinding] = Field(default_factory=list)
    rating: Rating = None
    rating_explanation: Text = ""

    @model_validator(mode="after")
    def _says_something(self) -> "CommunityReport":
        if not self.summary and not any(finding.explanation for finding in self.findings):
            raise ValueError("the report has neither a summary nor findings")
        return self


async def write_report(
    chat: Chat, prompts: Prompts, material: ReportMaterial, options: ReportOptions = _DEFAULTS, origin: Origin = NOWHERE
) -> ReportRecord:
    """The report on a community.

    Raises:
        Exception: what `chat` raises.
    """
    messages = prompts.render(
        options.task,
        context=material.context,
        max_words=options.max_words,
        language=options.language,
        dated=",document_date\n" in material.context,  # without dates, requests stay as they are
    )
    answer = await ask(chat, origin.request(options.task, messages, CommunityReport), CommunityReport)
    return report_record(answer, material.leading)


def report_record(answer: CommunityReport, leading: tuple[str, ...] = ()) -> ReportRecord:
    """`answer` as a record. Findings without text are dropped; a missing title is made of the leading members."""
    findings = [finding for finding in map(_finding, answer.findings) if finding]
    summary = answer.summary or findings[0].summary
    return ReportRecord(
        title=" ".join(answer.title.split()) or ", ".join(leading[:3]) or _headline(summary),
        summary=summary,
        findings=findings,
        rating=MIDDLE_RATING if answer.rating is None else answer.rating,
        rating_explanation=answer.rating_explanation,
    )


def _finding(found: ReportFinding) -> Finding | None:
    text = found.explanation or found.summary
    return Finding(" ".join(found.summary.split()) or _headline(text), text) if text else None


def _headline(text: str) -> str:
    """The first sentence, without citations, shortened between words."""
    plain = without_references(text)
    first = next(iter(sentences(plain)), None)
    line = " ".join(plain[first.start : first.end].split()) if first else ""
    if len(line) <= _MAX_HEADLINE_LENGTH:
        return line
    return (line[: _MAX_HEADLINE_LENGTH - 1].rpartition(" ")[0] or line[: _MAX_HEADLINE_LENGTH - 1]) + "…"
