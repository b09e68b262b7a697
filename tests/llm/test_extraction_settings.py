"""Settings of extraction on the wire: their words reach the prompt, and concern the stage they are for alone."""

import pytest

from graphrag_assets.llm.indexing_tasks import IndexingTasks
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.tasks.claims import CLAIM_DESCRIPTION
from graphrag_assets.records import TextUnit
from graphrag_assets.settings import Settings

UNIT = TextUnit("u", "Cyrus Field founded the Atlantic Telegraph Company in 1856.")
MODEL = {"chat_model": "openai/test-model"}


def tasks_with(chat=None, **settings) -> IndexingTasks:
    return IndexingTasks(Settings.load(**MODEL, **settings), Prompts(), lambda use: chat, run_id="r")


def prompt(lab, **settings) -> str:
    """The system message of the first request for a text unit."""
    lab.server.requests.clear()
    list(tasks_with(lab.chat(), max_gleanings=0, **settings).extract([UNIT]))
    return lab.server.chats[0].body["messages"][0]["content"]


def test_extraction_asks_for_the_claims_described(lab):
    assert f"Which ones: {CLAIM_DESCRIPTION}" in prompt(lab)
    words = prompt(lab, claim_description=" losses of money ", entity_types="company, ship")
    assert "Which ones: losses of money\n" in words
    assert "one of: company, ship" in words
    assert CLAIM_DESCRIPTION not in words


def test_claims_that_are_off_are_not_described(lab):
    assert "losses of money" not in prompt(lab, claims="off", claim_description="losses of money")


@pytest.mark.parametrize(
    ("settings", "extractions", "reports"),
    [
        ({"claim_description": "losses of money"}, True, False),
        ({"claim_description": "losses of money", "claims": "off"}, False, False),
    ],
)
def test_a_setting_changes_the_fingerprint_of_its_stage_alone(settings, extractions, reports):
    before, after = tasks_with(claims=settings.get("claims", "")), tasks_with(**settings)
    assert (before.extractor != after.extractor) == extractions
    assert (before.reporter != after.reporter) == reports


def test_fingerprints_of_the_defaults_stay_as_they_were():
    tasks = tasks_with()
    assert (tasks.extractor, tasks.reporter) == ("openai/test-model#9155bc51", "openai/test-model#54a38b44")
