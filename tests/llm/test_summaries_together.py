"""Summaries of descriptions in shared requests: what is sent, paid for, stored and asked again."""

import json
import random

import polars as pl

from graphrag_assets.assets.model_tasks import IndexingTasks
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.settings import Settings
from tests.llm.conftest import Lab
from tests.openai_content import content_for, task_of

WORDS = ["cable", "ship", "ocean", "engineer", "signal", "copper", "Valentia", "steam", "telegraph", "shore", "winter"]


def described(things: int, words: int = 250, descriptions: int = 2) -> pl.DataFrame:
    """Things with descriptions of so many words, by the same chance every time."""
    rows = []
    for thing in range(things):
        chance = random.Random(thing)
        for number in range(descriptions):
            text = f"Fact {number} of {thing}: {' '.join(chance.choices(WORDS, k=words))}."
            rows.append((f"K{thing:02d}", f"Thing {thing:02d}", text, 1))
    return pl.DataFrame(rows, ["key", "title", "description", "n"], orient="row")


def tasks_with(chat, **settings) -> IndexingTasks:
    return IndexingTasks(Settings(chat_model="openai/test-model", **settings), Prompts(), lambda: chat, run_id="r")


def summarize(lab: Lab, descriptions: pl.DataFrame, **settings) -> dict[str, str]:
    """The summaries by key, by a model that has only the ledger in common with others."""
    return dict(tasks_with(lab.chat(), **settings).summarize(descriptions).iter_rows())


def asked(lab: Lab) -> list[str]:
    """The tasks of the requests since this was last called."""
    tasks = [request.task for request in lab.server.chats]
    lab.server.requests.clear()
    return tasks


def edited(descriptions: pl.DataFrame, key: str) -> pl.DataFrame:
    changed = pl.when(pl.col("key") == key).then(pl.col("description") + " Later it was sold.")
    return descriptions.with_columns(changed.otherwise("description").alias("description"))


def test_thirty_things_share_requests_an_edit_asks_for_one_and_a_rerun_for_none(lab):
    descriptions = described(30)
    first = summarize(lab, descriptions)
    requests = asked(lab)
    assert len(first) == 30
    assert set(requests) == {"Summaries"}
    assert len(requests) == 6
    assert summarize(lab, descriptions.sample(fraction=1, shuffle=True, seed=1)) == first
    assert asked(lab) == []
    second = summarize(lab, edited(descriptions, "K07"))
    assert asked(lab) == ["Summary"]
    assert {key for key in first if first[key] != second[key]} <= {"K07"}
    assert summarize(lab, descriptions.filter(pl.col("key") > "K11")) == {k: v for k, v in first.items() if k > "K11"}
    assert asked(lab) == []  # whatever would be packed with what


def test_what_a_shared_answer_lacks_or_spoils_is_asked_again_alone(lab):
    again = []

    def content(body):
        if task_of(body) == "Summary":
            again.append(body["messages"][1]["content"].splitlines()[1])
            return content_for(body)
        answer = json.loads(content_for(body))["summaries"]
        answer[4]["description"] = {"nonsense": []}
        return json.dumps({"summaries": [one for one in answer if one["number"] != 3]})

    lab.server.content = content
    descriptions = described(5)
    first = summarize(lab, descriptions)
    assert sorted(again) == ["Thing 02", "Thing 04"]
    assert asked(lab) == ["Summaries", "Summary", "Summary"]
    assert len(first) == 5
    assert summarize(lab, descriptions) == first
    assert asked(lab) == []
