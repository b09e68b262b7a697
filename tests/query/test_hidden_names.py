"""A name that only filtered-out documents use appears in no form of an answer, and an empty filter hides everything.

Two names are planted in the hidden document of `test_filters`: Moriarty, an entity of it alone, and "Hudson the Bribed",
which is the title of an entity that a visible document calls Hudson.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from graphrag_assets.contracts.answering import NO_ANSWER, Answerer, Evidence, Point, Reply
from graphrag_assets.errors import QueryError
from graphrag_assets.query import METHODS, Filter, GraphRAG, answer_to_json, answer_to_markdown
from graphrag_assets.query.passages import RankingMethod, passage_frame, rank_passages
from graphrag_assets.query.scope import EVERYTHING, scope_of
from graphrag_assets.store.publication_reader import CurrentPublication
from tests.query.test_filters import DOCUMENTS, SECRETS, write
from tests.word_vectors import embedded_question

QUESTION = "What did Hudson and Gooch do with the Niagara and the Agamemnon?"
VISIBLE = ("voyage", "sale")
ALIASES = [("voyage", "hudson", "hudson the bribed")]


class CitesAll(Answerer):
    """Cites every row of its evidence."""

    async def arespond(self, question: str, evidence: Evidence, *_: object) -> Reply:
        rows = "; ".join(f"{passage.table} ({passage.number})" for passage in evidence.passages)
        return Reply(f"They met. [Data: {rows}]" if rows else NO_ANSWER)

    async def areduce(self, question: str, points: Sequence[Point], *_: object) -> Reply:
        return Reply("\n\n".join(point.text for point in points))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("whole"), list(DOCUMENTS), ALIASES)


@pytest.fixture(scope="module")
def rag(path: Path) -> GraphRAG:
    return GraphRAG(path, answerer=CitesAll())


def hidden_names(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text.casefold()]


def test_the_names_are_in_the_whole_index(rag: GraphRAG) -> None:
    answer = rag.local(QUESTION)
    tables = {row.table for citation in answer.citations for row in citation.rows}
    assert tables >= {"Entities", "Relationships", "Sources"}
    assert {"bribe", "moriarty", "zanzibar"} <= set(hidden_names(str(answer.to_dict())))
    assert ("Entities", "HUDSON THE BRIBED") in {(row.table, row.title) for c in answer.citations for row in c.rows}


@pytest.mark.parametrize("limits", [{"documents": VISIBLE}, {"batches": "ships"}, {"as_of": "1866"}], ids=str)
@pytest.mark.parametrize("method", [*METHODS, "ask"])
def test_no_form_of_an_answer_shows_a_hidden_name(rag: GraphRAG, method: str, limits: dict[str, Any]) -> None:
    stream = rag.stream(method, QUESTION, **limits)
    pieces = list(stream)
    answer = stream.result
    forms = {
        "text": str(answer),
        "markdown": answer_to_markdown(answer),
        "dict": str(answer.to_dict()),
        "json": answer_to_json(answer),
        "citations": str(answer.citations),
        "frames": str([frame.to_dicts() for frame in answer.context.values()]),
        "pieces": "".join(pieces),
        "everything": repr(answer),
    }
    assert {name: found for name, shown in forms.items() if (found := hidden_names(shown))} == {}
    if method in ("local", "drift", "planned", "ask"):
        assert {"Entities", "Relationships"} <= {row.table for c in answer.citations for row in c.rows}


@pytest.mark.parametrize("method", METHODS)
def test_no_context_shows_a_hidden_name(rag: GraphRAG, method: str) -> None:
    context = rag.context(method, QUESTION, documents=VISIBLE)
    forms = [context.text, str(context.to_dict()), str([frame.to_dicts() for frame in context.frames.values()])]
    assert hidden_names(" ".join([*forms, repr(context), context._repr_markdown_()])) == []


def test_no_passage_and_no_suggestion_shows_a_hidden_name(path: Path) -> None:
    rag = GraphRAG(path)
    for ranking in ("graph", "text", "words"):
        passages = rag.retrieve(QUESTION, method=ranking, documents=VISIBLE)
        assert passages.height > 0
        assert hidden_names(str(passages.to_dicts())) == []
    for before in ((), [QUESTION]):
        assert hidden_names(str(rag.questions(before, 20, documents=VISIBLE))) == []


def test_no_passage_of_an_index_with_vectors_shows_a_hidden_name(tmp_path: Path) -> None:
    reader = CurrentPublication(write(tmp_path, list(DOCUMENTS), ALIASES, vectors=True)).reader()
    scope = scope_of(reader, Filter(documents=VISIBLE))
    for ranking in get_args(RankingMethod):
        everything = rank_passages(reader, embedded_question(QUESTION), 10, method=ranking)
        assert hidden_names(str(passage_frame(reader, everything, EVERYTHING).to_dicts())) != []
        allowed = rank_passages(reader, embedded_question(QUESTION), 10, scope, ranking)
        assert allowed.numbers != []
        assert hidden_names(str(passage_frame(reader, allowed, scope).to_dicts())) == []


@pytest.mark.parametrize(
    "limits",
    [
        {"entity_types": "SHIPS"},
        {"relationship_types": "MEET"},
        {"documents": ["Voyages"]},
        {"metadata": {"yeer": 1858}},
        {"metadata": {"year": 1867}},
        {"batches": ["ships", "shops"]},
    ],
    ids=str,
)
def test_no_error_message_lists_what_the_other_conditions_hide(rag: GraphRAG, limits: dict[str, Any]) -> None:
    limits = {"batches": ["ships"], "as_of": "1858"} | limits
    try:
        message = str(rag.local(QUESTION, **limits).errors)
    except QueryError as error:
        message = str(error).replace("'Moriarty'", "")  # as the caller wrote it
    assert message != "[]"
    assert [*hidden_names(message), *(word for word in ("Secret", "money", "1866", "sealed") if word in message)] == []


@pytest.mark.parametrize("condition", ["batches", "documents"])
@pytest.mark.parametrize("empty", [[], ()], ids=str)
@pytest.mark.parametrize("method", [*METHODS, "ask"])
def test_an_empty_list_of_documents_allows_nothing(
    rag: GraphRAG, method: str, empty: Sequence[str], condition: str
) -> None:
    for limits in ({condition: empty}, {"filter": Filter(**{condition: empty})}):
        answer = rag.search(method, QUESTION, **limits)
        assert answer.citations == []
        assert {name: frame.height for name, frame in answer.context.items() if frame.height} == {}
    if method != "ask":
        assert rag.context(method, QUESTION, **{condition: empty}).text == ""


@pytest.mark.parametrize("condition", ["entity_types", "relationship_types"])
def test_an_empty_list_of_types_allows_none(rag: GraphRAG, condition: str) -> None:
    frames = rag.context("local", QUESTION, **{condition: []}).frames
    assert frames["relationships"].is_empty()
    assert frames["entities"].is_empty() == (condition == "entity_types")
    assert frames["sources"].height > 0
