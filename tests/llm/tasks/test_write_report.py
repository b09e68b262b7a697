"""Community reports: from an answer to a record."""

import asyncio
import json

from graphrag_assets.contracts.records import Finding, ReportMaterial
from graphrag_assets.llm.prompts import Prompts, fence
from graphrag_assets.llm.task import TaskModel
from graphrag_assets.llm.tasks.write_report import (
    GRAPH_REPORT,
    CommunityReport,
    report_record,
    write_report,
)
from tests.llm.tasks.scripted_chat import ScriptedChat

CONTEXT = "-----Entities-----\nid,entity\n5,Scrooge"
MATERIAL = ReportMaterial(2, 1, ("Scrooge", "Marley"), (), CONTEXT)


def record(**answer: object):
    return report_record(CommunityReport.model_validate({"summary": "S."} | answer), MATERIAL.leading)


def test_report_with_all_fields():
    answer = {
        "title": "Scrooge and Marley",
        "summary": "Partners.",
        "findings": [{"summary": "A firm.", "explanation": "They were partners [Data: Entities (5)]."}],
        "rating": "8.5",
        "rating_explanation": "Central.",
    }
    chat = ScriptedChat([json.dumps(answer)])
    report = asyncio.run(write_report(TaskModel(chat, Prompts()), GRAPH_REPORT, MATERIAL, None))
    assert (report.title, report.summary, report.rating) == ("Scrooge and Marley", "Partners.", 8.5)
    assert report.findings == [Finding("A firm.", "They were partners [Data: Entities (5)].")]
    assert report.rating_explanation == "Central."
    (request,) = chat.requests
    assert request.task == "community_report"
    assert request.messages[1]["content"] == fence(CONTEXT, "data")


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
