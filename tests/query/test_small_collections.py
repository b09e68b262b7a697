"""Collections that one context can hold are read whole."""

import pytest

from graphrag_assets.query import Filter, GraphRAG, LocalOptions
from tests.openai_server import OpenAIServer
from tests.query.conftest import TEXT_UNITS
from tests.query.modeled import says, user_message

QUESTION = "Who commanded the Niagara?"
SAID = "William Hudson. [Data: Sources (0)]"


@pytest.mark.parametrize("method", ["local", "drift", "planned"])
def test_one_request_reads_all_passages_once_and_nothing_that_repeats_them(
    modeled: GraphRAG, server: OpenAIServer, method: str
) -> None:
    server.content = says(text=SAID)
    answer = modeled.search(method, QUESTION)
    (request,) = server.chats
    assert all(user_message(request.body).count(text.strip()) == 1 for _, text, _ in TEXT_UNITS)
    assert "-----Reports-----" not in user_message(request.body)
    assert (answer.answer, answer.method, list(answer.context)) == (SAID, method, ["sources"])


def test_a_filter_that_leaves_few_passages_is_read_whole(rag: GraphRAG) -> None:
    total = rag.context("local", QUESTION).tokens
    limits = {"read_all_tokens": total // 2}
    assert "entities" in rag.context("local", QUESTION, **limits).frames
    (sources,) = rag.context("local", QUESTION, filter=Filter(documents=["Document 1"]), **limits).sections
    assert {passage.number for passage in sources.passages} == {2, 3}


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("local", {"read_all_tokens": 0}),
        ("drift", {"local": LocalOptions(read_all_tokens=0)}),
        ("planned", {"read_all_tokens": 0}),
    ],
)
def test_zero_reads_the_graph_instead(rag: GraphRAG, method: str, options: dict) -> None:
    frames = rag.context(method, QUESTION, **options).frames
    assert {"reports", "entities"} & set(frames)
