"""Answers of the embedded default on real texts: direct, the closest passages, or none.

The corpora are the sample, two novels, customers' e-mails, and short texts in German, French, Spanish and Russian.
"""

import json
from pathlib import Path

import pytest

from graphrag_assets.contracts.answering import CLOSEST, NO_ANSWER
from graphrag_assets.query import METHODS, GraphRAG
from graphrag_assets.query.results import Answer

from ..conftest import TEST_DATA, Project, index_once

CORPORA = Path(__file__).parent / "corpora"
TRUTH = json.loads((Path(__file__).parents[1] / "ground_truth.json").read_text(encoding="utf-8"))
every_method = pytest.mark.parametrize("method", [*METHODS, "ask"])

TOLD = {
    "operation-dulce": [
        "Where is the Dulce base located?",
        "What did Taylor Cruz order?",
        "How did the team decode the message?",
        "Why is the team cautious about contact?",
        "who is jordan hayes",
    ],
    "christmas-carol": [
        "What did Marley's Ghost wear?",
        "Who was Scrooge's clerk?",
        "Why do the poor suffer?",
        "What did Scrooge send to the Cratchits?",
        "Give me an overview of Tiny Tim",
    ],
}
ABSENT = {
    "sample": [
        "Who won the 1998 World Cup?",
        "Who invented the telephone?",
        "When did Cyrus Field visit Tokyo?",
        "Who was Napoleon Bonaparte?",
    ],
    "operation-dulce": [
        "Who wrote the Magna Carta?",
        "How much does a train ticket to Berlin cost?",
        "What did Alex Mercer eat for breakfast?",
        "How many children does Jordan Hayes have?",
        "Who was Queen Victoria?",
    ],
    "christmas-carol": [
        "What is the capital of Mongolia?",
        "Who won the 1998 World Cup?",
        "How many ships did Fezziwig own?",
        "When did Bob Cratchit travel to America?",
        "What did the telegraph company charge?",
    ],
}


def asked(rag: GraphRAG, method: str, question: str) -> Answer:
    answer = rag.ask(question) if method == "ask" else rag.search(method, question)
    assert answer.unresolved == []
    return answer


def is_direct(answer: Answer) -> bool:
    return not answer.answer.startswith((CLOSEST, NO_ANSWER))


@pytest.fixture(scope="module")
def sample(sample_index: Project) -> GraphRAG:
    return GraphRAG(sample_index.root / "index")


@pytest.fixture(scope="module")
def tickets(shared_folder: Path) -> GraphRAG:
    return GraphRAG(index_once(shared_folder / "tickets", CORPORA / "tickets") / "index")


@pytest.fixture(scope="module")
def languages(shared_folder: Path) -> GraphRAG:
    return GraphRAG(index_once(shared_folder / "languages", CORPORA / "languages") / "index")


@pytest.fixture(scope="module", params=list(TOLD))
def novel(request: pytest.FixtureRequest, shared_folder: Path) -> tuple[str, GraphRAG]:
    folder = TEST_DATA / request.param / "input"
    return request.param, GraphRAG(index_once(shared_folder / request.param, folder.resolve()) / "index")


@every_method
def test_overview_of_a_person_begins_with_a_definition(sample: GraphRAG, method: str) -> None:
    for question in ("Give me an overview of Cyrus Field", "who was cyrus field"):
        answer = asked(sample, method, question)
        assert is_direct(answer)
        first = answer.answer.split("]")[0]
        assert "Cyrus West Field, a paper merchant" in first or "Cyrus West Field was an American citizen" in first


@every_method
def test_question_about_problems_is_answered_directly(sample: GraphRAG, method: str) -> None:
    answer = asked(sample, method, "What were the biggest problems?")
    assert is_direct(answer)
    assert answer.citations


@every_method
def test_closest_passages_are_shown_if_nothing_answers(sample: GraphRAG, method: str) -> None:
    answer = asked(sample, method, "How did investors react?")
    first = "The novelist Thackeray and Lady Byron were among the smaller investors."
    assert answer.answer.startswith(f"{CLOSEST}\n- ")
    assert first in answer.answer.split("[Data: ")[0]
    assert answer.citations[0].quote.endswith(first)


@every_method
@pytest.mark.parametrize("question", ABSENT["sample"])
def test_question_beyond_the_sample_is_not_answered_directly(sample: GraphRAG, method: str, question: str) -> None:
    assert not is_direct(asked(sample, method, question))


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "every", "least"),
    [("ask", 1, 20), ("local", 1, 20), ("basic", 1, 20), ("drift", 3, 7), ("global", 1, 17)],
)
def test_questions_with_known_answers_are_answered_as_often_as_before(
    sample: GraphRAG, method: str, every: int, least: int
) -> None:
    def right(question: dict) -> bool:
        said = asked(sample, method, question["question"]).answer.replace("*", "").replace("’", "'").casefold()
        return all(fact.casefold() in said for fact in question["answer_contains"])

    assert sum(map(right, TRUTH[::every])) >= least  # DRIFT asks several questions for each


@pytest.mark.long
@pytest.mark.parametrize("method", ["local", "basic"])
def test_novels_answer_questions_about_their_content_and_no_others(novel: tuple[str, GraphRAG], method: str) -> None:
    name, rag = novel
    assert [question for question in TOLD[name] if not is_direct(asked(rag, method, question))] == []
    assert [question for question in ABSENT[name] if is_direct(asked(rag, method, question))] == []


@every_method
def test_customer_complaints_are_found_in_any_form_of_the_words(tickets: GraphRAG, method: str) -> None:
    answer = asked(tickets, method, "What do customers complain about?")
    assert is_direct(answer)
    assert "several customers in your forum complain that the app loses its connection" in answer.answer
    assert "Six customers complained about cracked glass" in answer.answer


@every_method
def test_a_fact_of_an_email_is_answered_by_every_method(tickets: GraphRAG, method: str) -> None:
    assert "nine days on average" in asked(tickets, method, "How long do refunds take?").answer
    assert asked(tickets, method, "Who won the 1998 World Cup?").answer.startswith(NO_ANSWER)


@every_method
@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Wer entwarf die Brücke von Altmoor?", "von der Ingenieurin Klara Winter entworfen"),
        ("Pourquoi la galerie fut-elle détruite ?", "parce que les vis de fer étaient rouillées"),
        ("¿Quién fundó el molino de Riofrío?", "por la viuda Teresa Salcedo"),
        ("На что жаловались жители долины?", "на закрытую дорогу"),
    ],
)
def test_questions_in_other_languages_are_answered_from_texts_in_these(
    languages: GraphRAG, method: str, question: str, said: str
) -> None:
    answer = asked(languages, method, question)
    assert is_direct(answer)
    assert said in answer.answer


@every_method
def test_an_absent_fact_in_another_language_is_not_answered(languages: GraphRAG, method: str) -> None:
    assert not is_direct(asked(languages, method, "Wer gewann die Weltmeisterschaft 1998?"))


UNSPACED = {
    "王明": "王明出生于江城。他在青川大学学习物理。毕业后，他在江城工作了十年。",
    "青川大学": "青川大学位于江城。学校成立于1921年，设有五个学院。图书馆收藏了三十万册图书。",
    "田中一郎": "田中一郎は桜川大学で物理を学んだ。卒業後は港町の造船所で働いた。",
    "桜川大学": "桜川大学は港町にある。一九二一年に設立され、五つの学部がある。図書館の蔵書は三十万冊である。",
}


@pytest.fixture(scope="module")
def unspaced(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> GraphRAG:
    folder = tmp_path_factory.mktemp("unspaced")
    for name, text in UNSPACED.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return GraphRAG(index_once(shared_folder / "unspaced", folder) / "index")


@pytest.mark.parametrize("method", ["ask", "basic", "local"])
@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("王明学习的大学成立于哪一年？", "学校成立于1921年"),
        ("桜川大学はいつ設立されたか？", "一九二一年に設立され"),
    ],
)
def test_questions_in_scripts_without_spaces_are_answered_with_cited_passages(
    unspaced: GraphRAG, method: str, question: str, said: str
) -> None:
    answer = asked(unspaced, method, question)
    assert said in answer.answer
    assert answer.citations
