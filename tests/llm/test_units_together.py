"""Extraction of several text units in one request: what is sent, paid for, stored and asked again."""

import json

import pytest

from graphrag_assets.assets.model_tasks import IndexingTasks
from graphrag_assets.contracts.records import TextUnit, UnitExtraction
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.settings import Settings
from tests.llm.conftest import ONE_DOLLAR_PER_TOKEN, Lab
from tests.openai_content import content_for, task_of

NAMES = ["Ada Bell", "Ben Cole", "Cora Dunn", "Dan Eder", "Eva Frost"]


def row(number: int, source: str = "staff/rooms.csv", words: int = 8) -> TextUnit:
    text = f"{NAMES[number]} keeps room {number} of Harwick House. {'It is cold. ' * (words // 3)}".strip()
    return TextUnit(f"{source}#{number}", text, source=source, headings=f"Room {number}")


ROWS = [row(number) for number in range(5)]


def extract(lab: Lab, units: list[TextUnit], **options) -> dict[str, UnitExtraction]:
    """What was found by unit, by a model that has only the ledger in common with others."""
    settings = Settings(chat_model="openai/test-model", max_gleanings=0)
    found = dict(IndexingTasks(settings, Prompts(), lambda: lab.chat(**options), "staff", "r").extract(units))
    assert not [one for one in found.values() if isinstance(one, Exception)]
    return found


def asked(lab: Lab) -> list[str]:
    """The tasks of the requests since this was last called."""
    tasks = [request.task.removesuffix("WithClaims") for request in lab.server.chats]
    lab.server.requests.clear()
    return sorted(tasks)


def test_rows_of_a_table_share_a_request_an_edit_asks_for_one_and_a_rerun_for_none(lab):
    first = extract(lab, ROWS)
    (request,) = lab.server.chats
    sent = request.body["messages"][-1]["content"]
    assert [
        f"### Passage {n} of 5\n" in sent and f"[Room {n - 1}]\n\n{ROWS[n - 1].text}\n" in sent for n in range(1, 6)
    ]
    assert asked(lab) == ["ExtractGraphs"]
    for unit in ROWS:
        assert {entity.title for entity in first[unit.id].entities} <= {NAMES[int(unit.id[-1])], "Harwick House", "It"}
    assert extract(lab, ROWS[::-1]) == first
    assert asked(lab) == []
    edited = ROWS[2]._replace(text=ROWS[2].text + " It was sold.")
    assert set(extract(lab, [*ROWS[:2], edited, *ROWS[3:]])) == {unit.id for unit in ROWS}
    assert asked(lab) == ["ExtractGraph"]


def test_only_short_units_of_one_file_share_a_request(lab):
    extract(lab, [row(0), row(1, "other.csv"), row(2, "other.csv", 700), row(3, "other.csv"), row(4, "other.csv")])
    assert asked(lab) == ["ExtractGraph", "ExtractGraph", "ExtractGraph", "ExtractGraphs"]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda one: None, id="it is left out"),
        pytest.param(lambda one: one | {"number": 2}, id="the number of another one"),
        pytest.param(lambda one: one | {"number": 99}, id="an unknown number"),
        pytest.param(
            lambda one: one | {"entities": [{"name": "Zoe Quist", "type": "X", "description": ""}]}, id="other names"
        ),
    ],
)
def test_a_unit_without_records_of_its_own_is_asked_alone(lab, spoil):
    honest = extract(lab.with_another_ledger(), ROWS[:3])
    lab.server.requests.clear()

    def content(body):
        if not task_of(body).startswith("ExtractGraphs"):
            return content_for(body)
        first, *others = json.loads(content_for(body))["passages"]
        return json.dumps({"passages": [one for one in (spoil(first), *others) if one]})

    lab.server.content = content
    assert extract(lab, ROWS[:3]) == honest
    assert set(asked(lab)[:-1]) == {"ExtractGraph"}


@pytest.mark.parametrize("fault", ["truncated", "refusal", "wrong-schema", "400"])
def test_without_a_valid_answer_each_unit_is_asked_alone(lab, fault):
    lab.server.fail_next(fault, None if fault == "400" else fault)
    assert len(extract(lab, ROWS[:3])) == 3
    assert [task for task in asked(lab) if task == "ExtractGraph"] == ["ExtractGraph"] * 3


def test_tokens_and_cost_of_a_shared_answer_are_those_of_its_units_together(lab):
    extract(lab, ROWS, prices=ONE_DOLLAR_PER_TOKEN)
    entries = lab.ledger.frame()
    assert entries.select("kind", "task", "batch", "run_id").unique().rows() == [("chat", "extract_all", "staff", "r")]
    assert sorted(entries["unit"]) == [unit.id for unit in ROWS]
    assert entries["prompt_tokens"].min() > 0
    assert entries["cost_usd"].sum() == entries["prompt_tokens"].sum() + entries["completion_tokens"].sum()
