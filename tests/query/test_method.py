"""Signatures and documentation of `rag.local` and its siblings, wrong names; how results show themselves."""

import inspect
import pydoc
from collections.abc import Coroutine
from dataclasses import fields
from functools import partial
from typing import Any, assert_type

import polars as pl
import pytest

from graphrag_assets.errors import InvalidOption
from graphrag_assets.query import Answer, Filter, GraphRAG
from graphrag_assets.query.local import LocalSearchOptions

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
    for part in (
        "about particular things",
        "top_k_entities: int = 10",
        "top_k_relationships: maximum number",
        "timeout:",
    ):
        assert part in shown
    assert "primer_reports" not in shown


def test_every_option_is_in_the_signature_and_its_type_is_checked(rag: GraphRAG) -> None:
    """mypy, which covers the tests, reports an ignored error that is none."""
    assert [*inspect.signature(rag.local).parameters][1:] == [field.name for field in fields(LocalSearchOptions)]
    assert inspect.signature(rag.local).parameters["hops"].annotation is int
    with pytest.raises(InvalidOption, match=r"hops is .2.*integer"):
        rag.local(QUESTION, hops="2")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="hop"):
        rag.local(QUESTION, hop=2)  # type: ignore[call-arg]
    with pytest.raises(InvalidOption, match="dynamic"):
        rag.global_(QUESTION, dynamic="graph")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="Unknown search method"):
        rag.stream("globl", QUESTION)  # type: ignore[arg-type]
    assert_type(rag.basic(QUESTION, k=3), Answer)
    assert_type(rag.retrieve(QUESTION, 3, "words"), pl.DataFrame)
    assert_type(rag.alocal(QUESTION, hops=2), Coroutine[Any, Any, Answer]).close()


def test_a_wrong_option_gets_the_nearest_name(rag: GraphRAG) -> None:
    for ask in (partial(rag.search, "local"), partial(rag.stream, "local"), partial(rag.astream, "local")):
        with pytest.raises(InvalidOption, match="top_k_entitys: did you mean top_k_entities"):
            ask(QUESTION, top_k_entitys=3)
    with pytest.raises(InvalidOption, match="given by its name"):
        rag.local(QUESTION, 3)  # type: ignore[misc]
    with pytest.raises(InvalidOption, match="Give batches inside the filter"):
        rag.local(QUESTION, batches="b", filter=Filter(documents="Document 0"))
