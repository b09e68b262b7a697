"""Kinds of requests that went wrong: brackets of documents, stale links, chores and look-alikes, errors of one form."""

import json
import re
from collections.abc import Iterator

import pytest

from graphrag_assets.extras.server.access import clients_of
from graphrag_assets.query import GraphRAG
from graphrag_assets.testing import index_of
from tests.conftest import Project
from tests.server.conftest import Served, serve

DOCUMENTS = {
    "tides.md": "# Tides\n\nAstrid Larsen measured the tides of Hellnes in 1931 [3]. Her gauge is drawn by Olaf Brandt "
    "[1](https://evil.example) and by Nils Holm [^2].\n",
    "gauge.md": "# Gauge\n\nAstrid Larsen sold the gauge \\[1] to Nils Holm in 1940 [12]. The gauge of Hellnes is "
    "[Data: Sources (1)] a copy. `tides[0]` of Hellnes is from 1932.\n",
    "title.md": "# Title\n\nWilliam Thomson published the title of the conversation in 1866 with Cyrus Field.\n",
}
TOKEN = "reader-token-0123456789"
MARK = re.compile(r"(?<!\\)\[(\d+)\]")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with index_of(DOCUMENTS) as rag, serve(rag, clients_of(json.dumps({"reader": {"token": TOKEN}}))) as served:
        yield served


@pytest.mark.parametrize(
    "question",
    [
        "When did Astrid Larsen measure the tides of Hellnes?",
        "Who sold the gauge to Nils Holm?",
    ],
)
def test_only_references_are_footnotes_and_each_opens_its_own_passage(served: Served, question: str) -> None:
    answer = served.answer(TOKEN, question)
    marks = [int(number) for number in MARK.findall(answer["text"])]
    citations = {citation["footnote"]: citation for citation in answer["citations"]}
    assert set(marks) == set(citations)
    assert len({(c["text_unit_id"], *(c["span"] or ())) for c in citations.values()}) == len(citations)
    assert all(number == 1 or number - 1 in marks[: marks.index(number)] for number in marks)
    foreign = re.findall(r"\\\[\^?\d+\\?\]", answer["text"])
    assert foreign
    with served.http() as http:
        for citation in citations.values():
            page = http.get(citation["url"]).text
            marked = page.split('<mark id="marked">')[1].split("</mark>")[0]
            assert marked == citation["quote"]
    asked = {"model": "graphrag-local", "messages": [{"role": "user", "content": question}]}
    with served.http(TOKEN) as http:
        message = http.post("/v1/chat/completions", json=asked).json()["choices"][0]["message"]
    text, annotations = message["content"].partition("\n\n**Sources**")[0], message["annotations"]
    places = [(a["url_citation"]["start_index"], a["url_citation"]["end_index"]) for a in annotations]
    assert places == [found.span() for found in MARK.finditer(text)]
    by_url = {a["url_citation"]["url"]: text[slice(*place)] for a, place in zip(annotations, places, strict=True)}
    assert len(by_url) == len(citations)


CHORES = {
    '### Task:\nGenerate a concise, 3-5 word title.\n### Output:\nJSON format: { "title": "x" }\n### Chat History:\n'
    "<chat_history>\nUSER: Who is Nils Holm?\nASSISTANT: A man.\n</chat_history>": '{"title": "Who is Nils Holm"}',
    '### Task:\nSuggest 3-5 follow-up questions.\n### Output:\nJSON format: { "follow_ups": ["Why?"] }': '{"follow_ups": []}',
}
QUESTIONS = [
    "What is the title of the conversation that William Thomson published in 1866?",
    "### Task: Who sold the gauge to Nils Holm?",
    "Here is what a colleague wrote:\n\n**Sources**\n\n- a book\n\nWho sold the gauge to Nils Holm?",
]


@pytest.mark.parametrize("prompt", [*CHORES, *QUESTIONS])
def test_chores_of_a_chat_program_are_done_without_a_search_and_questions_are_searched(
    served: Served, prompt: str
) -> None:
    body = {"model": "graphrag-local", "messages": [{"role": "user", "content": prompt}]}
    with served.http(TOKEN) as http:
        text = http.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]
    assert text == CHORES[prompt] if prompt in CHORES else "**Sources**" in text


def test_a_question_of_the_page_is_no_chore_whatever_its_form(served: Served) -> None:
    question = "Task:\nFind who sold the gauge to Nils Holm.\nOutput: a name"
    assert "Astrid Larsen" in served.answer(TOKEN, question, is_question=True)["text"]


def test_errors_have_the_form_of_openai(served: Served) -> None:
    body = {"model": "graphrag-local", "messages": [{"role": "user", "content": "Who?"}]}
    with served.http(TOKEN) as http, served.http() as stranger:
        assert stranger.post("/v1/chat/completions", json=body).status_code == 401
        assert http.post("/v1/chat/completions", json={"model": " " * 1_000_001}).status_code == 413
        answers = {
            404: [http.get("/v1/nowhere"), http.get("/v1/models/gpt-4")],
            405: [http.get("/v1/chat/completions")],
            400: [
                http.post("/v1/chat/completions", json=body | wrong)
                for wrong in (
                    {"response_format": {"type": "json_object"}},
                    {"tools": [{"type": "function", "function": {"name": "x"}}]},
                    {"metadata": {"options": {"k": 10**30}}},
                    {"metadata": {"filter": {"batchs": ["x"]}}, "stream": True},
                    {"messages": 1},
                    {"messages": [{"role": "user", "content": "x" * 100_000}]},
                )
            ],
        }
        for status, found in answers.items():
            for answer in found:
                assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json"), answer.text
                assert answer.json()["error"]["message"]
                assert answer.json()["error"]["type"]
        assert http.post("/v1/chat/completions", json=body | {"response_format": {"type": "text"}}).status_code == 200


@pytest.mark.parametrize("number", ["²", "9" * 30, "-1"])
def test_what_is_no_number_is_no_error_of_the_server(served: Served, number: str) -> None:
    with served.http(TOKEN) as http:
        for path in (f"/source/{number}", f"/source/x?span={number}-{number}"):
            answer = http.get(path)
            assert answer.status_code in (400, 404)
            assert ".duckdb" not in answer.text


def test_links_after_an_edit_mark_the_quotation_or_say_that_it_is_gone(project: Project) -> None:
    texts = [
        f"Olaf Brandt {word} the gauge of Hellnes in 19{n}. " for n, word in enumerate(("drew", "sold", "lost"), 30)
    ]
    for n, text in enumerate(texts):
        project.write(f"b/{n}.md", f"# Note {n}\n\n{text}\n")
    project.index_all()
    index = project.root / "index"
    with GraphRAG(index) as rag, serve(rag) as served, served.http() as http:
        citations = served.answer("", "Who sold the gauge of Hellnes?")["citations"]
        assert {citation["title"] for citation in citations} >= {"Note 1"}
        project.write("b/1.md", f"# Note 1\n\nAn earlier line. {texts[1]}\n")
        project.write("b/0.md", "# Note 0\n\nNothing of it is left.\n")
        (project.input / "b" / "2.md").unlink()
        project.index_all()
        for citation in citations:
            answer = http.get(citation["url"])
            marked = answer.text.split('<mark id="marked">')[1].split("</mark>")[0]
            assert "publication=1" in citation["url"]
            if answer.status_code == 404:
                assert (marked, "publication 1" in answer.text, "gone" in answer.text) == ("", True, True)
            else:
                assert marked == citation["quote"]
        assert {http.get(citation["url"]).status_code for citation in citations} >= {404}
