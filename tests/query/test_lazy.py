"""Lazy search: a budget of relevance tests, spent where relevant text units are."""

import asyncio
import csv
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_assets.extras.lazy import Exploration
from graphrag_assets.query import GraphRAG
from graphrag_assets.query.passages import rank_passages
from graphrag_assets.query.question import Question
from tests.conftest import index_once
from tests.openai_server import OpenAIServer
from tests.query.modeled import chat_answerer, question_of, says, user_message

TOPICS, UNITS_PER_TOPIC = 200, 10
PLANTED_TOPICS = range(0, 80, 10)
QUESTION = "What was said about the copper tariff?"
ABOUT = "The copper tariff of the harbor was raised."


def names(chance: random.Random) -> Iterator[str]:
    """Names that no other topic has."""
    given = set[str]()
    while True:
        name = " ".join(
            "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(3)).title()
            for _ in range(2)
        )
        if name not in given:
            given.add(name)
            yield name


def write_corpus(file: Path) -> None:
    """2,000 documents about 200 groups of people; in 8 groups, 30 of them are about the copper tariff."""
    chance = random.Random(5)
    people = names(chance)
    groups = [[next(people) for _ in range(5)] for _ in range(TOPICS)]
    about = {topic: (4 if place < 6 else 3) for place, topic in enumerate(PLANTED_TOPICS)}
    rows = []
    for topic, group in enumerate(groups):
        for place in range(UNITS_PER_TOPIC):
            one, two, three = chance.sample(group, 3)
            text = f"Entry {topic * UNITS_PER_TOPIC + place}. {one} met {two} at noon, and {three} wrote a letter."
            rows.append(f"{text} {ABOUT}" if place < about.get(topic, 0) else text)
    file.parent.mkdir(parents=True)
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows([["text"], *([row] for row in chance.sample(rows, len(rows)))])


@pytest.fixture(scope="module")
def planted(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> "Planted":
    documents = tmp_path_factory.mktemp("lazy") / "input"
    write_corpus(documents / "entries" / "entries.csv")
    return Planted(index_once(shared_folder / "lazy", documents) / "index")


class Planted:
    """The index, and its relevant entries: 30 that say so, and 10 of the same groups that no ranking by text finds."""

    def __init__(self, index: Path) -> None:
        self.index = index
        rag = GraphRAG(index)
        units = rag.sql("SELECT human_readable_id, text FROM text_units ORDER BY human_readable_id").rows()
        self.entry_of = {unit: int(re.search(r"Entry (\d+)\.", text)[1]) for unit, text in units}
        unit_of = {entry: unit for unit, entry in self.entry_of.items()}
        near = set(rank_passages(rag.index.reader(), Question(QUESTION), 500, method="words").numbers)
        self.said = {self.entry_of[unit] for unit, text in units if ABOUT in text}
        hidden = [
            entry
            for topic in PLANTED_TOPICS
            for entry in range(topic * UNITS_PER_TOPIC + 5, (topic + 1) * UNITS_PER_TOPIC)
            if unit_of[entry] not in near
        ]
        of_topic = {topic: [e for e in hidden if e // UNITS_PER_TOPIC == topic] for topic in PLANTED_TOPICS}
        counts = {topic: (1 if place < 6 else 2) for place, topic in enumerate(PLANTED_TOPICS)}
        self.hidden = {entry for topic, n in counts.items() for entry in of_topic[topic][:n]}
        assert (len(self.said), len(self.hidden)) == (30, 10)

    @property
    def relevant(self) -> set[int]:
        return self.said | self.hidden

    def found_by(self, tests: Any) -> set[int]:
        units = tests.filter("relevant")["human_readable_id"].to_list()
        return {self.entry_of[unit] for unit in units}


class Oracle:
    """Answers of a model that knows the relevant entries; `asked` are the entries it was asked about."""

    def __init__(self, relevant: set[int]) -> None:
        self.relevant, self.asked = relevant, list[int]()

    def verdicts(self, body: dict[str, Any]) -> dict[str, Any]:
        units = []
        for number, entry in re.findall(r"^\[(\d+)\][^\n]*\n\(1\) Entry (\d+)\.", user_message(body), re.MULTILINE):
            self.asked.append(int(entry))
            if int(entry) in self.relevant:
                units.append({"id": int(number), "sentences": [1]})
        return {"units": units}

    def points(self, body: dict[str, Any]) -> dict[str, Any]:
        numbers = re.findall(r"^(\d+)\|", user_message(body), re.MULTILINE)
        return {"points": [{"description": f"Point {n}. [Data: Sources ({n}.1)]", "score": 60} for n in numbers]}

    def content(self, body: dict[str, Any]) -> str:
        return says(
            SubQuestions={"question": question_of(body), "questions": ["Who spoke of a tariff?", "Is copper dear?"]},
            RelevantUnits=self.verdicts,
            MapAnswer=self.points,
            text=lambda body: " ".join(re.findall(r"Point \d+\. \[Data: Sources \([\d.]+\)\]", user_message(body))[:5]),
        )(body)


@pytest.mark.extended
def test_nine_of_ten_relevant_text_units_are_found_with_a_budget_of_100(planted, server, tmp_path):
    oracle = Oracle(planted.relevant)
    server.content = oracle.content
    rag = GraphRAG(planted.index, answerer=chat_answerer(server, tmp_path))
    answer = rag.lazy(QUESTION, budget=100)
    assert len(planted.found_by(answer.tests)) >= 36
    assert planted.found_by(answer.tests) <= planted.relevant
    basic = {
        planted.entry_of[row]
        for row in rag.context("basic", QUESTION, k=100, max_context_tokens=100_000).frames["sources"][
            "human_readable_id"
        ]
    }
    assert len(basic & planted.relevant) <= 30
    assert len(oracle.asked) == len(set(oracle.asked)) == answer.tests.height <= 100
    assert answer.citations
    assert all(re.fullmatch(r"Entry \d+\.", citation.quote) for citation in answer.citations)  # sentence 1 of each
    assert {
        planted.entry_of[unit] for unit in answer.context["sources"].filter("cited")["human_readable_id"]
    } <= planted.relevant
    by_task = server.counts
    assert by_task["task RelevantUnits"] <= 25
    assert by_task["task SubQuestions"] == by_task["task text"] == 1
    assert answer.usage["test"].calls == by_task["task RelevantUnits"]


@pytest.fixture
def commanded(server: OpenAIServer) -> OpenAIServer:
    """A model that finds the second sentence of the text unit about Hudson relevant, and cites it."""
    hudson = {"id": 1, "sentences": [2]}
    cites = "She was Hudson's. [Data: Sources (0.2, 0.9, 4.1)]"

    def verdicts(body: dict[str, Any]) -> dict[str, Any]:
        return {"units": [hudson] if "Hudson commanded" in user_message(body) else []}

    server.content = says(
        SubQuestions={"question": "Who commanded the Niagara?", "questions": []},
        RelevantUnits=verdicts,
        MapAnswer={"points": [{"description": cites, "score": 70}]},
        text="It was he. [Data: Sources (0.2, 0.1)]",
    )
    return server


def test_points_cite_sentences_and_those_that_were_not_sent_are_dropped(commanded, modeled):
    answer = modeled.lazy("Who was captain?", batch=1)
    (read,) = (user_message(request.body) for request in commanded.chats if request.task == "MapAnswer")
    assert "|(0.1) The Agamemnon and the Niagara met in mid-ocean in June 1858. (0.2) Captain William" in read
    assert "She was Hudson's. [Data: Sources (0.2)]\n" in f"{user_message(commanded.chats[-1].body)}\n"
    assert answer.answer == "It was he. [Data: Sources (0.2)] [unresolved: Sources (0.1)]"  # no point cites 0.1
    assert answer.unresolved == ["Sources (0.9)", "Sources (4.1)", "Sources (0.1)"]
    (citation,) = answer.citations
    assert (citation.document_id, citation.start_char, citation.end_char) == ("d0", 61, 106)
    assert citation.quote == "Captain William Hudson commanded the Niagara."
    assert answer.context["sources"]["text"][0] == modeled.sql("SELECT text FROM text_units LIMIT 1").item()


@settings(max_examples=100, deadline=None)
@given(
    n_units=st.integers(0, 120),
    budget=st.integers(1, 60),
    batch=st.integers(1, 9),
    max_empty=st.integers(1, 6),
    seed=st.integers(0, 10**6),
)
def test_an_exploration_keeps_to_its_budget_and_ends(n_units, budget, batch, max_empty, seed):
    chance = random.Random(seed)
    units = list(range(n_units))
    communities = {c: [unit for unit in units if unit % 7 == c] for c in range(7)}
    relevant = {unit for unit in units if chance.random() < 0.2}
    ranking = chance.sample(units, n_units // 2)
    sent = list[int]()

    async def test(batches: list[list[int]]) -> dict[int, tuple[int, ...] | None]:
        assert max(map(len, batches)) <= batch
        asked = [unit for units in batches for unit in units]
        sent.extend(asked)
        return {unit: (1,) if unit in relevant else () for unit in asked}

    async def to_test(exploration: Exploration) -> dict[int, list[int]]:
        untested = {c: [u for u in of_c if u not in exploration.tests] for c, of_c in communities.items()}
        return {community: of_c for community, of_c in untested.items() if of_c}

    outcomes = []
    for _ in range(2):
        sent.clear()
        exploration = Exploration(budget, batch, max_empty, test, to_test)
        asyncio.run(exploration.run(ranking))
        assert len(sent) == len(set(sent)) == len(exploration.tests) <= budget
        outcomes.append(list(exploration.tests.values()))
    assert outcomes[0] == outcomes[1]
    if budget >= n_units * 2 and relevant & set(ranking[:batch]):
        assert exploration.tests.keys() >= relevant & set(ranking[:batch])
