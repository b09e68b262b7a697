"""`rag.local` and its siblings as objects: signatures, documentation, wrong names; how results show themselves."""

import inspect
import json
import pydoc

import pytest

from graphrag_assets.errors import QueryError
from graphrag_assets.query import GraphRAG

QUESTION = "Who commanded the Niagara?"
NAMES = ("local", "global_", "drift", "basic", "ask", "retrieve")


@pytest.mark.parametrize("name", NAMES)
def test_twins_have_the_same_signature_with_types_and_defaults(rag: GraphRAG, name: str) -> None:
    signature = inspect.signature(getattr(rag, name))
    assert signature == inspect.signature(getattr(rag, f"a{name.rstrip('_')}"))
    assert next(iter(signature.parameters)) == "question"
    assert signature.parameters["timeout"].default is None


def test_help_is_about_the_search(rag: GraphRAG) -> None:
    shown = pydoc.render_doc(rag.local, renderer=pydoc.plaintext)
    for part in ("about particular things", "top_k_entities=10", "top_k_relationships: maximum number", "timeout:"):
        assert part in shown
    assert "primer_reports" not in shown


@pytest.mark.parametrize("method", ["local", "alocal"])
def test_a_wrong_option_gets_the_nearest_name(rag: GraphRAG, method: str) -> None:
    with pytest.raises(QueryError, match="top_k_entitys: did you mean top_k_entities"):
        getattr(rag, method).stream(QUESTION, top_k_entitys=3)
    with pytest.raises(QueryError, match="given by its name"):
        getattr(rag, method).stream(QUESTION, 3)


@pytest.mark.parametrize("name", ["local", "drift", "ask"])
def test_an_answer_is_plain_data(rag: GraphRAG, name: str) -> None:
    answer = getattr(rag, name)(QUESTION, history=[("user", "What was the Niagara?")])
    plain = json.loads(json.dumps(answer.to_dict()))
    assert plain["answer"] == answer.answer
    assert plain["citations"][0]["quote"] == answer.citations[0].quote


def test_a_context_is_plain_data(rag: GraphRAG) -> None:
    context = rag.context("local", QUESTION)
    plain = json.loads(json.dumps(context.to_dict()))
    assert plain["text"] == context.text
    shown = context.frames["sources"].filter("in_context")["human_readable_id"]
    assert plain["rows"]["sources"] == shown.sort().to_list()


def test_an_unknown_method_is_named_with_those_that_there_are(rag: GraphRAG) -> None:
    with pytest.raises(QueryError, match=r"Did you mean 'local'.*local, .*, ask"):
        rag.search("locl", QUESTION)
    with pytest.raises(QueryError, match=r"Unknown search method 'ask'\. The methods are: local, .*planned\.$"):
        rag.context("ask", QUESTION)
