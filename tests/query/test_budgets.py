"""Token budgets on a real index: never exceeded, fully used, and a larger budget never holds less."""

import functools
from pathlib import Path

import pytest

from graphrag_assets.query import GraphRAG
from graphrag_assets.query.context import Context
from graphrag_assets.text.words import encode

from ..conftest import TEST_DATA, import_once

FOLDER = TEST_DATA / "christmas-carol" / "graphrag-v3"
BUDGETS = [500, 1_500, 4_000, 12_000, 32_000]
QUESTIONS = [
    "Who is Scrooge and what are his main relationships?",
    pytest.param("How does Tiny Tim change Scrooge?", marks=pytest.mark.extended),
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
    lengths = [tokens(context.text) for context in contexts(carol, method, question).values()]
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
