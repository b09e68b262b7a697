"""Answers of the embedded default on real texts: direct, the closest passages, or none.

The corpora are the sample, two novels, customers' e-mails, and short texts in German, French, Spanish and Russian.
"""

from pathlib import Path

import pytest

from graphrag_assets.contracts.answering import CLOSEST, NO_ANSWER
from graphrag_assets.query import METHODS, GraphRAG
from graphrag_assets.query.results import Answer

from ..conftest import Project, index_once

CORPORA = Path(__file__).parent / "corpora"
every_method = pytest.mark.parametrize("method", [*METHODS, "ask"])

ABSENT = [
    "Who won the 1998 World Cup?",
    "Who invented the telephone?",
    "When did Cyrus Field visit Tokyo?",
    "Who was Napoleon Bonaparte?",
]


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
def languages(shared_folder: Path) -> GraphRAG:
    return GraphRAG(index_once(shared_folder / "languages", CORPORA / "languages") / "index")


@every_method
def test_overview_of_a_person_begins_with_a_definition(sample: GraphRAG, method: str) -> None:
    for question in ("Give me an overview of Cyrus Field", "who was cyrus field"):
        answer = asked(sample, method, question)
        assert is_direct(answer)
        first = answer.answer.split("]")[0]
        assert "Cyrus West Field, a paper merchant" in first or "Cyrus West Field was an American citizen" in first


@every_method
def test_closest_passages_are_shown_if_nothing_answers(sample: GraphRAG, method: str) -> None:
    answer = asked(sample, method, "How did investors react?")
    first = "The novelist Thackeray and Lady Byron were among the smaller investors."
    assert answer.answer.startswith(f"{CLOSEST}\n- ")
    assert first in answer.answer.split("[Data: ")[0]
    assert answer.citations[0].quote.endswith(first)


@every_method
@pytest.mark.parametrize("question", ABSENT)
def test_question_beyond_the_sample_is_not_answered_directly(sample: GraphRAG, method: str, question: str) -> None:
    assert not is_direct(asked(sample, method, question))


@every_method
@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Wer entwarf die Brücke von Altmoor?", "von der Ingenieurin Klara Winter entworfen"),
        ("Pourquoi la tempête de 1848 détruisit-elle la galerie ?", "parce que les vis de fer étaient rouillées"),
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
