"""Token budgets on a real index: never exceeded, fully used, and a larger budget never holds less."""

import functools
from pathlib import Path

import pytest

from graphrag_assets.query import GraphRAG
from graphrag_assets.query.context import Context, fill
from graphrag_assets.query.local import CLAIMS, ENTITIES, RELATIONSHIPS, REPORTS, SOURCES
from graphrag_assets.text.words import encode

from ..conftest import TEST_DATA, import_once

FOLDER = TEST_DATA / "christmas-carol" / "graphrag-v3"
BUDGETS = [500, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000, 16_000, 32_000]
LAYOUTS = {layout.name: layout for layout in (REPORTS, ENTITIES, RELATIONSHIPS, CLAIMS, SOURCES)}
QUESTIONS = [
    "Who is Scrooge and what are his main relationships?",
    "goose",
    pytest.param("How does Tiny Tim change Scrooge?", marks=pytest.mark.extended),
    pytest.param("What are the top themes in this story?", marks=pytest.mark.extended),
]


@pytest.fixture(scope="module")
def carol(shared_folder: Path) -> GraphRAG:
    return GraphRAG(import_once(shared_folder / "christmas-carol-graphrag-v3", FOLDER) / "index")


@functools.cache
def contexts(rag: GraphRAG, method: str, question: str) -> dict[int, Context]:
    return {budget: rag.context(method, question, max_context_tokens=budget) for budget in BUDGETS}


def tokens(text: str) -> int:
    return len(encode(text))


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("method", ["local", "basic"])
def test_a_context_never_exceeds_its_budget_and_never_shrinks_with_it(
    carol: GraphRAG, method: str, question: str
) -> None:
    found = contexts(carol, method, question)
    lengths = [tokens(context.text) for context in found.values()]
    assert all(length <= budget for length, budget in zip(lengths, BUDGETS, strict=True)), lengths
    assert lengths == sorted(lengths)
    assert lengths[-1] > lengths[0]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("method", ["global", "drift"])
def test_no_batch_exceeds_the_budget_and_all_of_them_never_hold_less(
    carol: GraphRAG, method: str, question: str
) -> None:
    found = contexts(carol, method, question)
    for budget, context in found.items():
        assert max(tokens(section.text) for section in context.sections) <= budget
    # Without headings: the same reports in fewer batches have fewer of them.
    lengths = [
        sum(tokens(p.text) for section in context.sections for p in section.passages) for context in found.values()
    ]
    assert lengths == sorted(lengths)
    assert lengths[-1] > 0


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_no_section_stays_empty_when_a_candidate_fits_what_is_left(carol: GraphRAG, question: str, budget: int) -> None:
    context = contexts(carol, "local", question)[budget]
    left = budget - tokens(context.text)
    for section in context.sections:
        if section.passages or section.frame.is_empty():
            continue
        fitting = fill(LAYOUTS[section.name], section.frame.drop("in_context"), left)
        assert fitting.passages == (), f"{section.name}: {left} tokens are left, and {fitting.text} fits them"


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("budget", [4_000, 8_000, 12_000])
def test_sections_keep_to_their_shares_while_others_need_theirs(carol: GraphRAG, question: str, budget: int) -> None:
    sections = {section.name: section for section in contexts(carol, "local", question)[budget].sections}
    for name, share in {"Reports": 0.15, "Entities": 0.35 * 2 / 3, "Sources": 0.5}.items():
        alone = fill(LAYOUTS[name], sections[name].frame.drop("in_context"), int(share * budget))
        assert sections[name].tokens >= alone.tokens > 0
    if not sections["Relationships"].frame["in_context"].all():
        assert sections["Reports"].tokens <= 0.15 * budget + 100


@pytest.mark.parametrize("question", QUESTIONS)
def test_all_selected_entities_are_in_a_context_of_the_default_size(carol: GraphRAG, question: str) -> None:
    entities = contexts(carol, "local", question)[12_000].frames["entities"]
    assert entities["in_context"].to_list() == [True] * 10


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("budget", [8_000, 12_000, 32_000])
def test_every_section_with_candidates_is_in_a_context_of_usual_size(
    carol: GraphRAG, question: str, budget: int
) -> None:
    context = contexts(carol, "local", question)[budget]
    filled = {section.name for section in context.sections if section.passages}
    assert filled == {section.name for section in context.sections if section.frame.height}
    assert {"Reports", "Entities", "Relationships", "Sources"} <= filled


def test_the_whole_index_is_there(carol: GraphRAG, tmp_path: Path) -> None:
    counts = {
        name: carol.sql(f"SELECT count(*) FROM {name}").item() for name in ("entities", "text_units", "covariates")
    }
    assert counts["text_units"] == 42
    assert counts["entities"] == 529 + 32  # endpoints of relationships without a row of entities
    assert counts["covariates"] > 300
