"""How sure an answer is: computed from its sentences and what they cite."""

import pytest

from graphrag_assets.answering import CLOSEST, NO_ANSWER
from graphrag_assets.query import GraphRAG
from graphrag_assets.query.citations import Citation, CitedRow
from graphrag_assets.query.confidence import cited_statements, confidence_of

QUESTION = "Who commanded the Niagara in 1858?"
HUDSON = "Captain William Hudson commanded the Niagara in 1858."


def passage(number: int, text: str, document: str = "d0") -> Citation:
    row = CitedRow("Sources", number, f"t{number}", document)
    return Citation((row,), f"t{number}", document, document, f"{document}.txt", 0, len(text), text)


def level(answer: str, *citations: Citation, question: str = QUESTION, **more: object) -> str:
    return confidence_of(question, answer, citations, {}, **more).level


def test_a_supported_answer_that_covers_the_question_is_high():
    found = confidence_of(QUESTION, f"{HUDSON} [Data: Sources (0)]", [passage(0, HUDSON)], {})
    assert (found.level, found.supported, found.agreed, found.covered) == ("high", 1.0, 0.0, 1.0)
    assert str(found).startswith("high: 1 of 1 sentences are supported by what they cite; ")


@pytest.mark.parametrize("flaw", [{"contradicted": 1}, {"flaws": ["2 calls failed"]}])
def test_contradictions_and_failures_lower_it(flaw):
    assert level(f"{HUDSON} [Data: Sources (0)]", passage(0, HUDSON), **flaw) == "medium"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (NO_ANSWER, "it says that the data does not answer the question"),
        (f"{CLOSEST}\n- {HUDSON} [Data: Sources (0)]", "it shows the closest passages instead of an answer"),
        (HUDSON, "it cites no passage"),
    ],
)
def test_what_is_no_answer_is_low_and_says_why(answer, reason):
    cited = [passage(0, HUDSON)] if "Data" in answer else []
    assert confidence_of(QUESTION, answer, cited, {}).reasons == (reason,)


def test_sentences_without_a_supporting_passage_count_against_it():
    uncited = "He was born in Ohio. His father sold horses. He died in London."
    assert level(f"{HUDSON} [Data: Sources (0)]\n\n{uncited}", passage(0, HUDSON)) == "low"
    # A reference that has nothing to do with the sentence supports nothing.
    assert level("The cable cost nine pence a gallon. [Data: Sources (0)]", passage(0, HUDSON)) == "low"
    half = f"{HUDSON} [Data: Sources (0)] His father sold horses in Ohio."
    assert confidence_of(QUESTION, half, [passage(0, HUDSON)], {}).supported == 0.5


def test_two_documents_make_up_for_words_of_the_question_that_are_missing():
    question, said = "Who commanded the Niagara on her voyage to Valentia?", "Captain Hudson commanded the Niagara."
    answer = f"{said} [Data: Sources (0, 1)]"
    other = "The Niagara was commanded by Captain Hudson on that voyage."
    assert level(answer, passage(0, said), passage(1, other, "d0"), question=question) == "medium"
    found = confidence_of(question, answer, [passage(0, said), passage(1, other, "d1")], {})
    assert (found.agreed, found.level) == (1.0, "high" if (found.covered or 0) >= 0.7 else "medium")
    assert "1 of 1 by two documents or more" in found.reasons


def test_sentences_of_any_language_are_counted():
    text = "Klara Winter leitete die Werft in Kiel. Sie starb 1871."
    found = confidence_of("Wer leitete die Werft in Kiel?", f"{text} [Data: Sources (0)]", [passage(0, text)], {})
    assert (found.supported, found.level) == (1.0, "high")
    chinese = "船长威廉指挥了尼亚加拉号。他于一八五八年抵达。"
    assert (
        confidence_of("谁指挥了尼亚加拉号？", f"{chinese} [Data: Sources (0)]", [passage(0, chinese)], {}).supported
        == 1.0
    )


def test_an_answer_in_another_language_is_compared_by_names_and_is_never_high():
    german = "Das Schiff wurde im Sommer des Jahres von dem erfahrenen Kapitän Hudson geführt. [Data: Sources (0)]"
    english = "In the summer of that year the experienced captain William Hudson commanded the ship Niagara."
    found = confidence_of("Wer führte das Schiff im Sommer des Jahres?", german, [passage(0, english)], {})
    assert (found.supported, found.covered, found.level) == (1.0, None, "medium")


def test_statements_have_the_rows_cited_at_their_end():
    answer = "# Title\n- One. [Data: Sources (1)] [Data: Reports (2)]\n- Two.\n- Three [Data: Sources (3)]. Rest."
    assert [(said, rows) for said, rows in cited_statements(answer) if rows] == [
        ("- One.", (("Sources", 1), ("Reports", 2))),
        ("- Three", (("Sources", 3),)),
    ]


@pytest.mark.parametrize("method", ["local", "global", "drift", "basic", "lazy", "ask"])
def test_every_method_tells_its_confidence_and_streaming_too(rag: GraphRAG, method: str):
    answer = rag.search(method, "Who commanded the Niagara?")
    assert answer.confidence.level in ("high", "medium", "low")
    assert answer.confidence.reasons
    list(stream := rag.stream(method, "Who commanded the Niagara?"))
    assert stream.result.confidence == answer.confidence
    assert answer.to_dict()["confidence"]["level"] == answer.confidence.level
    assert f"Confidence: {answer.confidence.level}" in answer._repr_markdown_()


def test_an_invalid_reference_keeps_it_from_being_high(rag: GraphRAG):
    assert "references are invalid" not in str(rag.basic("Who commanded the Niagara?").confidence)
    assert level(f"{HUDSON} [Data: Sources (0)]", passage(0, HUDSON), flaws=["1 references are invalid"]) == "medium"
