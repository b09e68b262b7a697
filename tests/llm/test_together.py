"""Several in one request: what is sent, paid for, stored, and asked again alone."""

import asyncio
import json
import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_assets.assets.model_tasks import IndexingTasks
from graphrag_assets.contracts.answering import Passage
from graphrag_assets.contracts.records import TextUnit, UnitExtraction
from graphrag_assets.llm.model_errors import InvalidAnswer
from graphrag_assets.llm.model_options import ChatRequest, Completion
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.task import TaskModel
from graphrag_assets.llm.tasks.verdicts import ratings_of, verdicts_on
from graphrag_assets.llm.together import packs_of
from graphrag_assets.settings import Settings
from tests.llm.conftest import ONE_DOLLAR_PER_TOKEN, Lab
from tests.openai_content import content_for, task_of
from tests.openai_server import running
from tests.query.modeled import chat_answerer, says

NAMES = ["Ada Bell", "Ben Cole", "Cora Dunn", "Dan Eder", "Eva Frost"]
WORDS = ["cable", "ship", "ocean", "engineer", "signal", "copper", "Valentia", "steam", "telegraph", "shore", "winter"]


def row(number: int, source: str = "staff/rooms.csv", words: int = 8) -> TextUnit:
    text = f"{NAMES[number]} keeps room {number} of Harwick House. {'It is cold. ' * (words // 3)}".strip()
    return TextUnit(f"{source}#{number}", text, source=source, headings=f"Room {number}")


ROWS = [row(number) for number in range(5)]


def tasks_of(lab: Lab, **options) -> IndexingTasks:
    """The tasks by a model that has only the ledger in common with others."""
    settings = Settings(chat_model="openai/test-model", max_gleanings=0)
    return IndexingTasks(settings, Prompts(), lambda: lab.chat(**options), "staff", "r")


def extract(lab: Lab, units: list[TextUnit], **options) -> dict[str, UnitExtraction]:
    extracted = dict(tasks_of(lab, **options).extract(units))
    assert not [one for one in extracted.values() if isinstance(one, Exception)]
    return extracted


def summarize(lab: Lab, descriptions: pl.DataFrame) -> dict[str, str]:
    return dict(tasks_of(lab).summarize(descriptions).iter_rows())


def asked(lab: Lab) -> list[str]:
    """The tasks of the requests since this was last called."""
    tasks = [request.task.removesuffix("WithClaims") for request in lab.server.chats]
    lab.server.requests.clear()
    return sorted(tasks)


def test_rows_of_a_table_share_a_request_an_edit_asks_for_one_and_a_rerun_for_none(lab):
    first = extract(lab, ROWS)
    (request,) = lab.server.chats
    sent = request.body["messages"][-1]["content"]
    for n, unit in enumerate(ROWS):
        assert f"### Passage {n + 1} of 5\n" in sent
        assert f"[Room {n}]\n\n{unit.text}\n" in sent
        assert {entity.title for entity in first[unit.id].entities} <= {NAMES[n], "Harwick House", "It"}
    assert asked(lab) == ["ExtractGraphs"]
    assert extract(lab, ROWS[::-1]) == first
    assert asked(lab) == []
    edited = ROWS[2]._replace(text=ROWS[2].text + " It was sold.")
    assert set(extract(lab, [*ROWS[:2], edited, *ROWS[3:]])) == {unit.id for unit in ROWS}
    assert asked(lab) == ["ExtractGraph"]


def test_only_short_units_of_one_file_share_a_request(lab):
    extract(lab, [row(0), row(1, "other.csv"), row(2, "other.csv", 700), row(3, "other.csv"), row(4, "other.csv")])
    assert asked(lab) == ["ExtractGraph", "ExtractGraph", "ExtractGraph", "ExtractGraphs"]


@pytest.mark.parametrize(
    ("spoil", "n_alone"),
    [
        pytest.param(lambda one: None, 1, id="it is left out"),
        pytest.param(lambda one: one | {"number": 2}, 2, id="the number of another one"),
        pytest.param(lambda one: one | {"number": 99}, 1, id="an unknown number"),
        pytest.param(
            lambda one: one | {"entities": [{"name": "Zoe Quist", "type": "X", "description": ""}]}, 1, id="other names"
        ),
    ],
)
def test_a_unit_without_records_of_its_own_is_asked_alone(lab, spoil, n_alone):
    honest = extract(lab.with_another_ledger(), ROWS[:3])
    lab.server.requests.clear()

    def content(body):
        if not task_of(body).startswith("ExtractGraphs"):
            return content_for(body)
        first, *others = json.loads(content_for(body))["passages"]
        return json.dumps({"passages": [one for one in (spoil(first), *others) if one]})

    lab.server.content = content
    assert extract(lab, ROWS[:3]) == honest
    assert asked(lab) == [*["ExtractGraph"] * n_alone, "ExtractGraphs"]


def test_units_that_are_given_up_are_in_no_request(lab):
    lab.server.content = lambda body: "{}" if "Ada" in str(body) or "Ben" in str(body) else content_for(body)
    for _ in range(2):
        assert [unit for unit, one in tasks_of(lab).extract(ROWS[:3]) if isinstance(one, Exception)] != []
    asked(lab)
    given_up = {unit for unit, one in tasks_of(lab).extract(ROWS[:3]) if isinstance(one, Exception)}
    assert given_up == {ROWS[0].id, ROWS[1].id}
    assert asked(lab) == []


def test_packs_keep_to_room_number_and_group():
    items = ["a1", "a2", "a3", "a4", "a5", "b1", "b2"]
    packs = packs_of(items, [3, 3, 4, 1, 1, 9, 1], room=6, most=2, group=lambda item: item[0])
    assert [pack.items for pack in packs] == [["a1", "a2"], ["a3", "a4"], ["a5"], ["b1"], ["b2"]]


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


def described(things: int) -> pl.DataFrame:
    """Things with two descriptions of 250 words, by the same chance every time."""
    rows = []
    for thing in range(things):
        chance = random.Random(thing)
        for number in range(2):
            text = f"Fact {number} of {thing}: {' '.join(chance.choices(WORDS, k=250))}."
            rows.append((f"K{thing:02d}", f"Thing {thing:02d}", text, 1))
    return pl.DataFrame(rows, ["key", "title", "description", "n"], orient="row")


def test_thirty_summaries_share_requests_an_edit_asks_for_one_and_a_rerun_for_none(lab):
    descriptions = described(30)
    first = summarize(lab, descriptions)
    assert len(first) == 30
    assert asked(lab) == ["Summaries"] * 6
    assert summarize(lab, descriptions.sample(fraction=1, shuffle=True, seed=1)) == first
    assert asked(lab) == []
    changed = pl.when(pl.col("key") == "K07").then(pl.col("description") + " Later it was sold.")
    second = summarize(lab, descriptions.with_columns(changed.otherwise("description").alias("description")))
    assert asked(lab) == ["Summary"]
    assert {key for key in first if first[key] != second[key]} <= {"K07"}
    assert summarize(lab, descriptions.filter(pl.col("key") > "K11")) == {k: v for k, v in first.items() if k > "K11"}
    assert asked(lab) == []  # whatever would be packed with what
    changed = pl.when(pl.col("key").is_in(["K03", "K13", "K23"])).then(pl.col("description") + " Later it was sold.")
    summarize(lab, descriptions.with_columns(changed.otherwise("description").alias("description")))
    assert asked(lab) == ["Summaries"]  # though they would not share a request if all were new


def test_what_a_shared_answer_lacks_spoils_or_gives_to_another_title_is_asked_again_alone(lab):
    again = []

    def content(body):
        if task_of(body) == "Summary":
            again.append(body["messages"][1]["content"].splitlines()[1])
            return content_for(body)
        answer = json.loads(content_for(body))["summaries"]
        answer[4]["description"] = {"nonsense": []}
        answer[1]["title"] = "Thing 00"
        return json.dumps({"summaries": [one for one in answer if one["number"] != 3]})

    lab.server.content = content
    descriptions = described(5)
    first = summarize(lab, descriptions)
    assert sorted(again) == ["Thing 01", "Thing 02", "Thing 04"]
    assert asked(lab) == ["Summaries", *["Summary"] * 3]
    assert len(first) == 5
    assert summarize(lab, descriptions) == first
    assert asked(lab) == []


def counts_of(lab: Lab, work: Callable[[TaskModel], Coroutine[Any, Any, object]]) -> list[int]:
    """The number of requests after each of four runs."""
    counts = list[int]()
    for run in "abcd":
        asyncio.run(work(TaskModel(lab.chat(), Prompts(), run_id=run)))
        counts.append(len(lab.server.chats))
    return counts


@pytest.mark.parametrize("numbers", [(), (3,), (1, 1)], ids=["none", "an unknown one", "twice"])
def test_an_answer_without_a_verdict_on_a_single_pair_is_paid_for_once(lab, numbers):
    lab.server.content = says(NameVerdicts={"verdicts": [{"id": n, "verdict": "same"} for n in numbers]})
    assert counts_of(lab, lambda model: verdicts_on(model, ["Ada and A. Bell"])) == [1, 1, 1, 1]


def test_a_report_that_is_always_left_out_is_asked_for_once_more(lab):
    lab.server.content = says(CommunityRatings={"ratings": [{"id": n, "rating": 3} for n in (2, 3)]})
    assert counts_of(lab, lambda model: ratings_of(model, "Who?", ["One.", "Two.", "Three."])) == [1, 2, 2, 2]


@pytest.mark.parametrize("pairs", [["Ada and A. Bell"], ["Ada and A. Bell", "Ben and B. Cole"]])
def test_pairs_that_are_given_up_say_so_in_every_run(lab, pairs):
    async def is_refused(model: TaskModel) -> None:
        with pytest.raises(InvalidAnswer):
            await verdicts_on(model, pairs)

    lab.server.content = lambda body: "{}"
    assert counts_of(lab, is_refused) == [2, 4, 4, 4]


PASSAGES = [Passage("Sources", n, f"Report {n}", f"The Niagara met ship {n}.") for n in range(3)]


def test_what_was_answered_since_it_was_looked_for_is_not_paid_for_again(tmp_path: Path) -> None:
    with running() as server:
        server.content = says(RelevantUnits={"units": [{"id": n, "sentences": [1]} for n in (1, 2, 3)]})
        first = chat_answerer(server, tmp_path)
        answers = asyncio.run(first.atest("What did the Niagara meet?", PASSAGES))
        assert len(server.chats) == 1

        late, looked = chat_answerer(server, tmp_path), list[ChatRequest]()
        stored_answer = type(late.chat).stored_answer

        async def looked_too_early(self: object, request: ChatRequest) -> Completion | None:
            """As in another thread, which looked a moment before the answers were stored."""
            looked.append(request)
            return None if len(looked) <= len(PASSAGES) else await stored_answer(self, request)

        late.chat.__class__ = type("Late", (type(late.chat),), {"stored_answer": looked_too_early})
        again = asyncio.run(late.atest("What did the Niagara meet?", PASSAGES))
        assert len(server.chats) == 1
        assert again.sentences == answers.sentences
