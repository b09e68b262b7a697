"""Candidates of a planted corpus: forms of one thing are found, and nothing is merged that is two things."""

import itertools
import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from graphrag_assets.assets.embeddings import find_candidates
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.knowledge_graph import knowledge_graph
from graphrag_assets.contracts.records import EntityRecord, RelationshipRecord, TextUnit, UnitExtraction
from graphrag_assets.extras.resolution.decide import split as split_name
from graphrag_assets.extras.resolution.judge import judge
from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.text.words import title_key
from tests.comparison import index_at, no_settings
from tests.llm.tasks.scripted_chat import ScriptedChat

SYLLABLES = "bar cel dov fen gal hul jor kem lun mor nas pol quin ros sel tam vor wex yar zim".split()  # noqa: SIM905
KINDS = ("Institute", "Company", "Laboratory", "Society", "Museum", "Railway", "Hospital", "Observatory")
N_THINGS, N_HOMONYMS = 40, 5
Thing = tuple[str, ...]


def word(chance: random.Random) -> str:
    return "".join(chance.sample(SYLLABLES, 3)).capitalize()


def misspelled(name: str, chance: random.Random) -> str:
    place = chance.randrange(1, len(name.split()[0]))
    match chance.randrange(3):
        case 0:
            return name[:place] + name[place + 1 :]
        case 1:
            return name[:place] + chance.choice("aeiou") + name[place:]
    return name[: place - 1] + name[place] + name[place - 1] + name[place + 1 :] if place > 1 else f"{name}e"


def planted(chance: random.Random) -> list[Thing]:
    """The names of each thing: a full one and three other forms of it."""
    things: list[Thing] = []
    for number in range(N_THINGS):
        first, second = word(chance), word(chance)
        if number % 2:
            full = f"{first} {second} {chance.choice(KINDS)} of {word(chance)}"
            letters = "".join(w[0] for w in full.split())
            things.append((full, letters.upper(), misspelled(full, chance), " ".join(full.split()[:3])))
        else:
            full = f"{first} {second.lower()} {chance.choice(('valve', 'engine', 'battery', 'lens'))}"
            plural = f"{full[:-1]}ies" if full.endswith("y") else f"{full}es" if full.endswith("s") else f"{full}s"
            things.append((full, plural, misspelled(full, chance), " ".join(full.split()[:2])))
    return things


class Corpus:
    """Documents that name each form of a thing beside two neighbors of the thing, and homonyms of two types."""

    def __init__(self) -> None:
        chance = random.Random(7)
        self.things = planted(chance)
        self.of = {title_key(name): number for number, thing in enumerate(self.things) for name in thing}
        self.homonyms = [f"{word(chance)}a" for _ in range(N_HOMONYMS)]
        self.found: dict[str, UnitExtraction] = {}
        for number, thing in enumerate(self.things):
            kind = "ORGANIZATION" if number % 2 else "PRODUCT"
            neighbors = [word(chance), word(chance)]
            for name in thing:
                self.add(name, kind, neighbors)
                self.add(name, kind, neighbors[:1])
        for name in self.homonyms:
            for kind in ("PERSON", "GEO"):
                self.add(name, kind, [word(chance)])

    def add(self, name: str, kind: str, neighbors: list[str]) -> None:
        text = f"{name} ({kind}) with {' and '.join(neighbors)}, document {len(self.found)}."
        entities = [EntityRecord(name, kind, text), *(EntityRecord(other, "EVENT", text) for other in neighbors)]
        related = [RelationshipRecord(name, other, text, 5, "NEAR") for other in neighbors]
        self.found[text] = UnitExtraction(entities, related)

    def extract(self, units: Iterable[TextUnit]) -> Iterator[tuple[str, UnitExtraction | Exception]]:
        return ((unit.id, self.found[unit.text]) for unit in units)

    def merged(self, index: Index) -> set[tuple[str, str]]:
        """The pairs of forms that are one entity, by their keys."""
        rows = index.working.read(
            "SELECT list_sort(list_distinct(list(m.title_key))) FROM (SELECT title_key, unnest(text_unit_ids) AS unit "
            "FROM entities) e JOIN entity_mentions m ON m.text_unit_id = unit "
            "WHERE e.title_key IN (SELECT unnest($forms)) AND m.title_key IN (SELECT unnest($forms)) GROUP BY e.title_key",
            {"forms": list(self.of)},
        )
        return {pair for (keys,) in rows.iter_rows() for pair in itertools.combinations(keys, 2)}

    def true(self, pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
        return {pair for pair in pairs if self.of[pair[0]] == self.of[pair[1]]}


@pytest.fixture
def corpus() -> Corpus:
    return Corpus()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, corpus: Corpus) -> Index:
    no_settings(monkeypatch)
    monkeypatch.setenv("GRAPHRAG_INPUT", str(tmp_path / "input"))
    monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/judge")
    (tmp_path / "input").mkdir()
    rows = [json.dumps({"text": text, "title": f"d{number}"}) for number, text in enumerate(corpus.found)]
    (tmp_path / "input" / "planted.jsonl").write_text("\n".join(rows))
    index = index_at(tmp_path / "index", monkeypatch)
    merge(index)
    index_batch(index, "planted.jsonl", replace(index.models(), extract=corpus.extract), "test")
    merge(index)
    find_candidates(index)
    return index


def merge(index: Index) -> None:
    from graphrag_assets.embedded import summarize

    knowledge_graph.update(index, "test", replace(index.models(), summarize=summarize))


def judging(corpus: Corpus) -> ScriptedChat:
    """A test model that answers by the truth, in the form that the prompt asks for."""

    def answer(request: ChatRequest) -> str:
        blocks = re.split(r"^\[(\d+)\] ", request.messages[-1]["content"], flags=re.MULTILINE)[1:]
        verdicts = []
        for number, block in zip(blocks[::2], blocks[1::2], strict=True):
            names = re.findall(r"^(.+) \([A-Z]+\): ", block, flags=re.MULTILINE)
            things = [corpus.of.get(title_key(name)) for name in names]
            same = len(things) == 2 and things[0] is not None and things[0] == things[1]
            verdicts.append({"id": int(number), "reason": "", "verdict": "same" if same else "different"})
        return json.dumps({"verdicts": verdicts})

    return ScriptedChat(answer)


def test_forms_of_one_thing_are_candidates_and_the_judge_merges_them(index: Index, corpus: Corpus) -> None:
    merged, possible = corpus.merged(index), corpus.true(itertools.combinations(sorted(corpus.of), 2))
    assert merged == corpus.true(merged), "wrong automatic merges"
    proposed = {
        tuple(sorted(pair))
        for pair in index.working.read("SELECT name_key, other_key FROM entity_candidates").iter_rows()
    }
    aliased = dict(index.working.read("SELECT alias_key, title_key FROM entity_aliases").iter_rows())
    full = [(title_key(thing[0]), title_key(form)) for thing in corpus.things for form in thing[1:]]
    roots = [tuple(sorted((aliased.get(one, one), aliased.get(form, form)))) for one, form in full]
    wanted = {pair for pair in roots if pair[0] != pair[1]}
    assert len(wanted) >= 2 * N_THINGS
    assert len(wanted & proposed) >= 0.95 * len(wanted), sorted(wanted - proposed)[:20]

    assert judge(index, 10_000, chat=judging(corpus)).n_without == 0
    merge(index)
    merged = corpus.merged(index)
    right = corpus.true(merged)
    precision, recall = len(right) / len(merged), len(right) / len(possible)
    assert 2 * precision * recall / (precision + recall) >= 0.95

    find_candidates(index)
    assert judge(index, 10_000, chat=judging(corpus)).decisions == []  # nothing is proposed twice
    for name in corpus.homonyms:
        split_name(index, name, "type")
    merge(index)
    find_candidates(index)
    split = {f"{title_key(name)} ({kind})" for name in corpus.homonyms for kind in ("person", "geo")}
    assert split <= set(index.working.read("SELECT title_key FROM entities")["title_key"])
    pairs = index.working.read("SELECT name_key, other_key FROM entity_candidates").iter_rows()
    names = [(one.partition(" (")[0], other.partition(" (")[0]) for one, other in pairs if {one, other} <= split]
    assert [one for one, other in names if one == other] == []


def test_an_abbreviation_with_points_is_no_candidate_of_itself(tmp_path, monkeypatch) -> None:
    no_settings(monkeypatch)
    index = index_at(tmp_path, monkeypatch)
    with index.working.transaction() as connection:
        connection.execute(
            "INSERT INTO entities BY NAME SELECT unnest(['u.s.', 'united states']) AS title_key, unnest([1, 2]) AS "
            "human_readable_id, title_key AS id, 'GEO' AS type, 1 AS frequency"
        )
    find_candidates(index)
    pairs = index.working.read("FROM entity_candidates ORDER BY decision, score DESC NULLS LAST, name_key, other_key")
    assert pairs.select("name_key", "other_key", "evidence").rows() == [("u.s.", "united states", "abbreviation")]
