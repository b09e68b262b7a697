"""The public interface: every method, the result, new publications, isolation."""

import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from graphrag_assets.contracts.answering import NO_ANSWER, Evidence, Mapped, Point, Reply, Usage
from graphrag_assets.embedded.answerer import EmbeddedAnswerer
from graphrag_assets.errors import QueryError, StoreError
from graphrag_assets.query import METHODS, Answer, GraphRAG, answer_to_markdown
from graphrag_assets.store.schema import PUBLISHED
from graphrag_assets.text.words import count_tokens

from .conftest import write_index

HUDSON = "Captain William Hudson commanded the Niagara."


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


@pytest.mark.parametrize("method", METHODS)
def test_every_method_reports_missing_information(rag: GraphRAG, method: str) -> None:
    answer = rag.search(method, "What is the capital of Mongolia?")
    assert answer.answer.partition("\n\n")[0] == NO_ANSWER  # planned search names the step after it
    assert answer.citations == []


@pytest.mark.parametrize("method", METHODS)
def test_the_same_question_has_the_same_answer(index_file: Path, method: str) -> None:
    one, other = (GraphRAG(index_file).search(method, "What did the Great Eastern do?") for _ in range(2))
    assert (one.answer, one.citations, one.actions) == (other.answer, other.citations, other.actions)
    assert all(one.context[name].equals(other.context[name]) for name in one.context)


def test_a_fact_only_the_text_has_is_found_by_local_basic_and_drift_search(rag: GraphRAG) -> None:
    for method in ("local", "basic", "drift"):
        assert "nine pence a gallon" in rag.search(method, "What did the oil of the lamps cost?").answer


def test_a_question_about_everything_is_answered_from_the_weightiest_reports(rag: GraphRAG) -> None:
    answer = rag.global_("What are the main themes?").answer
    assert answer.startswith("- Valentia is an island in Ireland.")
    assert "[Data: Reports (4)]" in answer
    assert "[Data: Reports (3)]" in answer


def test_basic_search_keeps_the_order_of_similarity(rag: GraphRAG) -> None:
    sources = rag.context("basic", "When did the Great Eastern leave Valentia?").frames["sources"]
    assert sources["human_readable_id"][0] == 3
    assert rag.context("basic", "cable Valentia", k=2).frames["sources"].height == 2


def test_contexts_can_be_had_without_an_answer(rag: GraphRAG) -> None:
    assert list(rag.context("local", "Niagara").frames) == ["reports", "entities", "relationships", "claims", "sources"]
    assert list(rag.context("global", "Niagara").frames) == ["reports"]
    assert list(rag.context("drift", "Niagara").frames) == ["reports"]
    assert list(rag.context("basic", "Niagara").frames) == ["sources"]


def test_drift_returns_its_steps_within_its_limits(rag: GraphRAG) -> None:
    answer = rag.drift("Who headed the buyers of the Great Eastern?", max_calls=7, breadth=2, depth=1)
    assert len(answer.actions) <= 7
    assert [action.depth for action in answer.actions].count(1) <= 2
    for action in answer.actions:
        assert action.parent is None or answer.actions[action.parent].depth == action.depth - 1
    assert answer.context["relationships"]["in_context"].any()
    assert "Daniel Gooch headed the buyers." in answer.answer


def test_drift_asks_no_question_twice(rag: GraphRAG) -> None:
    actions = rag.drift("What happened to the Great Eastern in Valentia?", depth=3, max_calls=30).actions
    followed = [action.question for action in actions if action.depth]
    assert len(followed) == len(set(followed))


def test_answer_as_markdown_quotes_its_citations(rag: GraphRAG) -> None:
    markdown = answer_to_markdown(rag.basic("Who commanded the Niagara?"))
    assert markdown.startswith("## Who commanded the Niagara?\n\nCaptain")
    assert f"  > {HUDSON}" in markdown
    assert "answered by embedded/extractive" in markdown


def test_a_quote_can_be_shown_with_its_surroundings(rag: GraphRAG) -> None:
    (citation,) = rag.basic("Who commanded the Niagara?").citations
    assert rag.quote(citation, around=6) == f"1858. {HUDSON}\nThe A"


def test_sql_reads_everything_and_writes_nothing(rag: GraphRAG) -> None:
    assert rag.sql("SELECT title FROM entities WHERE degree = $d", {"d": 1})["title"].to_list() == [
        "William Hudson",
        "Daniel Gooch",
    ]
    for query in ("DELETE FROM entities", "CREATE TABLE x (a INT)", "FROM nowhere"):
        with pytest.raises(StoreError):
            rag.sql(query)


class Inventor(EmbeddedAnswerer):
    """An answerer that cites a row outside its context."""

    def __init__(self) -> None:
        super().__init__(model="inventor")

    async def arespond(self, question: str, evidence: Evidence, *_: Any) -> Reply:
        return Reply("He did. [Data: Sources (0); Entities (77)]", Usage(calls=1, prompt_tokens=len(evidence.text)))

    async def amap(self, question: str, evidence: Evidence, *_: Any) -> Mapped:
        return Mapped((Point("Nothing.", 0.0),), usage=Usage(calls=1))

    async def areduce(self, question: str, points: Sequence[Point], *_: Any) -> Reply:
        return Reply(f"{len(points)} points", Usage(calls=1))


def test_invented_references_are_reported_not_cited(index_file: Path) -> None:
    answer = GraphRAG(index_file, answerer=Inventor()).local("Who commanded the Niagara?")
    assert [citation.table for citation in answer.citations] == ["Sources"]
    assert answer.unresolved == ["Entities (77)"]
    assert "Invalid references: Entities (77)" in str(answer)
    assert (answer.model, answer.usage["response"].calls) == ("inventor", 1)


def test_points_without_relevance_do_not_reach_the_reduction(index_file: Path) -> None:
    answer = GraphRAG(index_file, answerer=Inventor()).global_("Who?", max_context_tokens=300)
    assert answer.answer == "0 points"
    assert answer.usage["map"].calls > 1


def test_a_new_publication_is_seen_by_the_next_question(tmp_path: Path) -> None:
    (tmp_path / "publications").mkdir()
    write_index(tmp_path / "publications/graphrag-1.duckdb", number=1)
    (tmp_path / "CURRENT").write_text("publications/graphrag-1.duckdb\n")
    rag = GraphRAG(tmp_path)
    assert rag.basic("Niagara").publication == 1
    write_index(tmp_path / "publications/graphrag-2.duckdb", number=2)
    (tmp_path / "CURRENT").write_text("publications/graphrag-2.duckdb\n")
    assert rag.basic("Niagara").publication == 2


def test_threads_share_one_object(rag: GraphRAG) -> None:
    answers: list[Answer] = []
    threads = [
        threading.Thread(target=lambda: answers.append(rag.local("Who commanded the Niagara?"))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 6
    assert {answer.answer for answer in answers} == {answers[0].answer}


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


def test_questions_load_neither_the_tokenizer_nor_pyarrow(index_file: Path) -> None:
    code = f"""if True:
        import sys
        from graphrag_assets import GraphRAG
        with GraphRAG({str(index_file)!r}) as rag:
            rag.local("Who commanded the Niagara?"), rag.global_("What happened?"), rag.basic("Who?")
        print([m for m in ("tiktoken", "pyarrow", "numpy.ma") if m in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_rows_that_are_cited_for_the_same_passage_share_a_line(rag: GraphRAG) -> None:
    lines = str(rag.local("Who commanded the Niagara?")).split("Citations\n")[1].splitlines()
    assert lines[0] == ("  Sources (0); Entities (2); Reports (0, 3): Document 0, b/document-0.txt, characters 61-106")


@pytest.mark.parametrize("method", METHODS)
def test_an_index_without_rows_answers_that_it_cannot(tmp_path: Path, method: str) -> None:
    path = tmp_path / "empty.duckdb"
    with duckdb.connect(str(path)) as connection:
        for table in PUBLISHED:
            connection.execute(table.ddl().replace("{dimensions}", "4"))
    answer = GraphRAG(path).search(method, "Who commanded the Niagara?")
    assert (answer.answer.partition("\n\n")[0], answer.citations, answer.unresolved) == (NO_ANSWER, [], [])
    assert GraphRAG(path).context(method, "Who commanded the Niagara?").text == ""


def test_global_search_without_a_report_of_the_rank_answers_that_it_cannot(rag: GraphRAG) -> None:
    assert rag.global_("Who commanded the Niagara?", min_community_rank=11).answer == NO_ANSWER


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("local", {"top_k_entities": -1}, r"top_k_entities is -1; .* whole number from 0"),
        ("local", {"text_unit_prop": 1.5}, r"text_unit_prop is 1\.5; .* share from 0 to 1"),
        ("local", {"text_unit_prop": 0.7, "community_prop": 0.4}, r"text_unit_prop is 0\.7, .*at most 1"),
        ("global", {"community_level": "2"}, r"community_level is '2'"),
        ("drift", {"max_calls": True}, r"max_calls is True"),
        ("drift", {"local": 3}, r"local is .*LocalOptions"),
        ("basic", {"k": 10**30}, r"k is 10+; .* to 1,000,000,000"),
    ],
)
def test_option_out_of_range_is_named_with_its_range(
    rag: GraphRAG, method: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(QueryError, match=said):
        rag.search(method, "Who commanded the Niagara?", **options)


@pytest.mark.parametrize("method", METHODS)
def test_empty_question_is_rejected(rag: GraphRAG, method: str) -> None:
    questions: list[Any] = ["", "  \n", None, 7, ["Who?"]]
    for question in questions:
        with pytest.raises(QueryError, match="The question is"):
            rag.search(method, question)


def test_no_step_of_drift_reads_more_than_its_limit(index_file: Path) -> None:
    read: list[str] = []

    class Listener(Inventor):
        async def amap(self, question: str, evidence: Evidence, *_: Any) -> Mapped:
            read.append(evidence.text)
            return Mapped()

    GraphRAG(index_file, answerer=Listener()).drift("Who commanded the Niagara?", max_context_tokens=120)
    assert len(read) > 1
    assert max(count_tokens(read)) <= 120


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
        ("Reports", 3),
    ]
    assert (citations[0].table, citations[0].number, citations[0].id) == ("Sources", 0, "t0")


@pytest.mark.parametrize("ask", ["local", "context", "retrieve"])
def test_a_question_that_cannot_be_searched_is_an_error_with_the_remedy(rag: GraphRAG, ask: str) -> None:
    call = {"local": rag.local, "context": partial(rag.context, "local"), "retrieve": rag.retrieve}[ask]
    with pytest.raises(QueryError, match="Character 5 of the question is half of a character"):
        call("Who \ud800 commanded the Niagara?")
    with pytest.raises(QueryError, match=r"32,001 characters; at most 32,000 .* index it as a document"):
        call("x" * 32_001)


def test_earlier_turns_are_searched_for_as_far_as_a_question_goes(rag: GraphRAG) -> None:
    earlier = [{"role": "user", "content": "cable " * 10_000}]
    assert rag.retrieve("Who commanded the Niagara?", history=earlier).height


@pytest.mark.extended
def test_a_script_that_closes_nothing_ends_without_a_word(tmp_path: Path) -> None:
    path = write_index(tmp_path / "graphrag-1.duckdb")
    script = f"""
from graphrag_assets.query import GraphRAG
rag = GraphRAG({str(path)!r})
entities, answer = rag.sql("FROM entities"), rag.local("Who commanded the Niagara?")
stream = rag.stream("basic", "Who commanded the Niagara?")
next(iter(stream))
try:
    rag.sql("FROM no_such_table")
except Exception as error:
    kept = error
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
