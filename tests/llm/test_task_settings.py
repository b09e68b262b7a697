"""Settings of extraction, summaries and reports on the wire: their words reach the prompt of their stage alone."""

import pytest

from graphrag_assets.assets.model_tasks import IndexingTasks
from graphrag_assets.contracts.records import ReportMaterial, TextUnit
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.tasks.claims import CLAIM_DESCRIPTION
from graphrag_assets.settings import Settings

UNIT = TextUnit("u", "Cyrus Field founded the Atlantic Telegraph Company in 1856.")
MODEL = {"chat_model": "openai/test-model"}


def tasks_with(chat=None, **settings) -> IndexingTasks:
    return IndexingTasks(Settings.load(**MODEL, **settings), Prompts(), lambda: chat, run_id="r")


def prompt(lab, **settings) -> str:
    """The system message of the first request for a text unit."""
    lab.server.requests.clear()
    list(tasks_with(lab.chat(), max_gleanings=0, **settings).extract([UNIT]))
    return lab.server.chats[0].body["messages"][0]["content"]


def test_extraction_asks_for_the_claims_described(lab):
    assert f"may want to check: {CLAIM_DESCRIPTION}\n" in prompt(lab)
    words = prompt(lab, claim_description=" losses of money ", entity_types="company, ship")
    assert "may want to check: losses of money\n" in words
    assert "one of: company, ship" in words
    assert CLAIM_DESCRIPTION not in words


RELATIONS = {"relationship_types": "PART_OF, laid by"}


def test_a_community_of_two_has_a_report_without_a_request(lab):
    reports = tasks_with(lab.chat()).write_reports([ReportMaterial(2, 1, ("Ada", "Ben"), (), "Ada met Ben.")])
    assert len(list(reports)) == 1
    assert lab.server.chats == []


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        ({"claim_description": "losses of money"}, ["extractor"]),
        ({"claim_description": "losses of money", "claims": "off"}, []),
        (RELATIONS, ["extractor"]),
        ({"text_unit_context": "none"}, ["extractor"]),
        ({"language": "Welsh"}, ["extractor", "summarizer", "reporter"]),
    ],
)
def test_a_setting_changes_the_fingerprint_of_its_stage_alone(settings, changed):
    before, after = tasks_with(claims=settings.get("claims", "")), tasks_with(**settings)
    stages = ("extractor", "summarizer", "reporter")
    assert [name for name in stages if getattr(before, name) != getattr(after, name)] == changed
