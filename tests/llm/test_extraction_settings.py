"""Settings of extraction on the wire: their words reach the prompt, and concern the stage they are for alone."""

import pytest

from graphrag_assets.errors import SettingsError
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


RELATIONS = {"relationship_types": "PART_OF, laid by"}
STRICT = {**RELATIONS, "strict_relationship_types": True}


def test_extraction_asks_for_the_relationship_types_wanted(lab):
    without = prompt(lab)
    assert prompt(lab, **RELATIONS) == (
        f"{without}\n\nTypes of relationships that are wanted: PART_OF, laid by. Prefer them; where none fits, use a "
        "short predicate of your own."
    )
    assert prompt(lab, **STRICT) == (
        f"{without}\n\nThe type of a relationship is one of these and no other: PART_OF, laid by. Leave out every "
        "relationship that none of them fits."
    )


def test_extraction_asks_for_the_entity_types_of_a_closed_list_alone(lab):
    assert "a short general noun of your own" in prompt(lab)
    words = prompt(lab, strict_entity_types=True)
    assert "a short general noun of your own" not in words
    assert words.endswith(
        "The types of entities above are a closed list: leave out every entity that none of them fits."
    )


def test_a_template_without_a_system_message_gets_one_for_the_types(lab, tmp_path):
    template = "{% block user %}{{ entity_types }} {{ claim_description }} {{ text }}{% endblock %}"
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "extract_graph.jinja").write_text(template)
    tasks = IndexingTasks(Settings.load(**MODEL, **STRICT), Prompts(folder), lambda use: lab.chat(), run_id="r")
    list(tasks.extract([UNIT]))
    system, user, *_ = lab.server.chats[0].body["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert system["content"].startswith("The type of a relationship is one of these")


@pytest.mark.parametrize(
    "given", [{"strict_relationship_types": True}, {"strict_entity_types": True, "entity_types": ","}]
)
def test_a_closed_list_without_types_is_an_error(given):
    with pytest.raises(
        SettingsError, match=r"GRAPHRAG_STRICT_\w+_TYPES=true needs GRAPHRAG_\w+_TYPES, which names none"
    ):
        Settings.load(**given)


def test_claims_that_are_off_are_not_described(lab):
    assert "losses of money" not in prompt(lab, claims="off", claim_description="losses of money")


@pytest.mark.parametrize(
    ("settings", "extractions", "reports"),
    [
        ({"claim_description": "losses of money"}, True, False),
        ({"claim_description": "losses of money", "claims": "off"}, False, False),
        (RELATIONS, True, False),
        ({"strict_entity_types": True}, True, False),
    ],
)
def test_a_setting_changes_the_fingerprint_of_its_stage_alone(settings, extractions, reports):
    before, after = tasks_with(claims=settings.get("claims", "")), tasks_with(**settings)
    assert (before.extractor != after.extractor) == extractions
    assert (before.reporter != after.reporter) == reports


def test_preferred_and_strict_types_are_different_extractions():
    assert tasks_with(**RELATIONS).extractor != tasks_with(**STRICT).extractor


def test_fingerprints_of_the_defaults_stay_as_they_were():
    tasks = tasks_with()
    assert (tasks.extractor, tasks.reporter) == ("openai/test-model#9155bc51", "openai/test-model#54a38b44")
