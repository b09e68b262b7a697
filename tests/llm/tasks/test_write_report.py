"""Community reports: from an answer to a record."""

from graphrag_assets.contracts.records import Finding, ReportMaterial
from graphrag_assets.llm.tasks.write_report import (
    CommunityReport,
    report_record,
)

CONTEXT = "-----Entities-----\nid,entity\n5,Scrooge"
MATERIAL = ReportMaterial(2, 1, ("Scrooge", "Marley"), (), CONTEXT)


def record(**answer: object):
    return report_record(CommunityReport.model_validate({"summary": "S."} | answer), MATERIAL.leading)


def test_findings_without_text_are_dropped_and_headlines_made_where_they_are_missing():
    long = "word " * 60
    findings = record(
        findings=[
            {"summary": "", "explanation": " "},
            {"summary": "Only a headline [Data: Entities (5)]."},
            "He was a miser [Data: Entities (5)]. He was rich.",
            {"explanation": long},
            7,
        ]
    ).findings
    assert findings[:2] == [
        Finding("Only a headline [Data: Entities (5)].", "Only a headline [Data: Entities (5)]."),
        Finding("He was a miser.", "He was a miser [Data: Entities (5)]. He was rich."),
    ]
    assert findings[2].summary == "word " * 22 + "word…"
    assert len(findings) == 3
