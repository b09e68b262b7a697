"""The public interface: every method, the result, new publications, isolation."""

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from graphrag_assets.contracts.answering import NO_ANSWER
from graphrag_assets.errors import QueryError, StoreError
from graphrag_assets.query import METHODS, GraphRAG
from graphrag_assets.query.methods import SEARCH_METHODS
from graphrag_assets.store.index_files import point_to
from graphrag_assets.store.schema import PUBLISHED

from .conftest import write_index

HUDSON = "Captain William Hudson commanded the Niagara."


def test_every_search_method_has_its_name_its_twins_and_its_row_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs/query.md").read_text(encoding="utf-8")
    assert tuple(SEARCH_METHODS) == METHODS
    for name in METHODS:
        method = "global_" if name == "global" else name
        assert hasattr(GraphRAG, method)
        assert hasattr(GraphRAG, f"a{name}")
        assert f"\n| `rag.{method}` |" in guide


@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_with_a_citation_found_in_a_document(rag: GraphRAG, method: str) -> None:
    answer = rag.search(method, "Who commanded the Niagara?")
    assert HUDSON in answer.answer
    assert answer.unresolved == []
    assert answer.citations[0].quote == HUDSON
    assert all(rag.quote(citation) == citation.quote for citation in answer.citations)
    assert (answer.method, answer.publication) == (method, 1)
    assert answer.usage["build_context"].seconds > 0
    assert {usage.calls for usage in answer.usage.values()} == {0}


def test_a_quote_can_be_shown_with_its_surroundings(rag: GraphRAG) -> None:
    (citation,) = rag.basic("Who commanded the Niagara?").citations
    assert rag.quote(citation, around=6) == f"1858. {HUDSON}\nThe A"


def test_sql_reads_everything_and_writes_nothing(rag: GraphRAG) -> None:
    assert rag.sql("SELECT title FROM entities WHERE degree = $d", {"d": 1})["title"].to_list() == [
        "William Hudson",
        "Daniel Gooch",
    ]
    assert rag.sql("SELECT NULL AS a, [NULL] AS b, 1::HUGEINT AS c").rows() == [(None, [None], 1)]
    for query in ("DELETE FROM entities", "CREATE TABLE x (a INT)", "FROM nowhere", "SELECT [INTERVAL 1 DAY] AS age"):
        with pytest.raises(StoreError):
            rag.sql(query)


def test_a_new_publication_is_seen_by_the_next_question(tmp_path: Path) -> None:
    (tmp_path / "publications").mkdir()
    write_index(tmp_path / "publications/graphrag-1.duckdb")
    point_to(tmp_path, 1)
    rag = GraphRAG(tmp_path)
    assert rag.basic("Niagara").publication == 1
    shutil.copy(tmp_path / "publications/graphrag-1.duckdb", tmp_path / "publications/graphrag-2.duckdb")
    with duckdb.connect(str(tmp_path / "publications/graphrag-2.duckdb")) as connection:
        connection.execute("UPDATE publication SET number = 2")
    point_to(tmp_path, 2)
    assert rag.basic("Niagara").publication == 2


def test_importing_the_query_module_imports_nothing_heavy() -> None:
    heavy = [
        "dagster",
        "litellm",
        "textblob",
        "igraph",
        "leidenalg",
        "onnxruntime",
        "graphrag_assets.pipeline",
    ]
    code = f"import sys, graphrag_assets.query; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_questions_do_not_load_the_tokenizer(index_file: Path) -> None:
    code = f"""if True:
        import sys
        from graphrag_assets import GraphRAG
        with GraphRAG({str(index_file)!r}) as rag:
            rag.local("Who commanded the Niagara?"), rag.global_("What happened?"), rag.basic("Who?")
        print([m for m in ("tiktoken", "numpy.ma") if m in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("method", METHODS)
def test_an_index_without_rows_answers_that_it_cannot(tmp_path: Path, method: str) -> None:
    path = tmp_path / "empty.duckdb"
    with duckdb.connect(str(path)) as connection:
        for table in PUBLISHED:
            connection.execute(table.ddl().replace("{dimensions}", "4"))
    answer = GraphRAG(path).search(method, "Who commanded the Niagara?")
    assert (answer.answer.partition("\n\n")[0], answer.citations, answer.unresolved) == (NO_ANSWER, [], [])
    assert GraphRAG(path).context(method, "Who commanded the Niagara?").text == ""


@pytest.mark.parametrize("method", METHODS)
def test_empty_question_is_rejected(rag: GraphRAG, method: str) -> None:
    questions: list[Any] = ["", "  \n", None, 7, ["Who?"]]
    for question in questions:
        with pytest.raises(QueryError, match="The question is"):
            rag.search(method, question)


def test_questions_are_suggested_with_and_without_a_history(rag: GraphRAG) -> None:
    asked = ["Who commanded the Niagara?"]
    suggested = rag.questions(asked, count=4)
    assert len(suggested) == 4
    assert suggested == rag.questions([("user", asked[0]), ("assistant", "Hudson.")], count=4)
    assert any("Niagara" in question for question in suggested)
    again = rag.questions([*suggested, *asked], count=4)
    assert not set(again) & set(suggested)
    assert all(question.startswith("What is reported on") for question in rag.questions(count=3))
    with pytest.raises(QueryError, match="number of questions is 0"):
        rag.questions(asked, count=0)


def test_an_answer_cites_each_passage_once(rag: GraphRAG) -> None:
    citations = rag.local("Who commanded the Niagara?").citations
    passages = [(citation.text_unit_id, citation.start_char, citation.end_char) for citation in citations]
    assert len(passages) == len(set(passages))
    assert [(row.table, row.number) for row in citations[0].rows] == [
        ("Sources", 0),
        ("Entities", 2),
        ("Reports", 0),
    ]


@pytest.mark.parametrize("ask", ["local", "context", "retrieve"])
def test_a_question_that_cannot_be_searched_is_an_error_with_the_remedy(rag: GraphRAG, ask: str) -> None:
    call = {"local": rag.local, "context": partial(rag.context, "local"), "retrieve": rag.retrieve}[ask]
    with pytest.raises(QueryError, match="Character 5 of the question is half of a character"):
        call("Who \ud800 commanded the Niagara?")
    with pytest.raises(QueryError, match=r"32,001 characters; at most 32,000 .* index it as a document"):
        call("x" * 32_001)
