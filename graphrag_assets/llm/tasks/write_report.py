"""The report on one community."""

from typing import ClassVar

from pydantic import Field, model_validator

from graphrag_assets.contracts.records import Finding, ReportMaterial, ReportRecord
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.task import Task, TaskModel, ask_model
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, Rating, Text
from graphrag_assets.text.references import without_references
from graphrag_assets.text.words import sentences

MIDDLE_RATING = 5.0  # of a report without a rating
MAX_WORDS = 1500
_MAX_HEADLINE_LENGTH = 120  # characters


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


_GIVEN = {"context": "data"}, "", "max_words language dated", "persona rating_scale"
GRAPH_REPORT = Task("community_report", CommunityReport, *_GIVEN)
"""For contexts of entities and relationships."""
TEXT_REPORT = Task("community_report_text", CommunityReport, *_GIVEN)
"""For contexts of passages."""


async def write_report(
    model: TaskModel, task: Task[CommunityReport], material: ReportMaterial, language: str | None
) -> ReportRecord:
    """Return the report on a community."""
    dated = ",document_date\n" in material.context  # without dates, requests stay as they are
    values = {"context": material.context, "max_words": MAX_WORDS, "language": language, "dated": dated}
    answer, _ = await ask_model(model, task, **values)
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


def _finding(finding: ReportFinding) -> Finding | None:
    text = finding.explanation or finding.summary
    return Finding(" ".join(finding.summary.split()) or _headline(text), text) if text else None


def _headline(text: str) -> str:
    """Return the first sentence, without citations, shortened between words."""
    plain = without_references(text)
    first = next(iter(sentences(plain)), None)
    line = " ".join(plain[first.start : first.end].split()) if first else ""
    if len(line) <= _MAX_HEADLINE_LENGTH:
        return line
    return (line[: _MAX_HEADLINE_LENGTH - 1].rpartition(" ")[0] or line[: _MAX_HEADLINE_LENGTH - 1]) + "…"
