"""What is planted into an answer lowers exactly the metric concerned."""

from graphrag_assets.contracts.answering import CLOSEST, NO_ANSWER
from graphrag_assets.extras.evaluation.answers import answer_scores, score_answer
from graphrag_assets.extras.evaluation.evaluators.facts import facts_in
from graphrag_assets.extras.evaluation.evaluators.refusal import is_refusal
from graphrag_assets.extras.evaluation.questions import Question
from graphrag_assets.query.citations import Citation, CitedRow

QUOTES = {
    1: "In July 1865 the ship Great Eastern left Valentia with 2,300 nautical miles of cable for the company.",
    2: "The committee of the board met in the large hall and spoke of dividends.",
}
CITATIONS = [
    Citation((CitedRow("Sources", number, str(number), ""),), None, None, None, None, None, None, quote)
    for number, quote in QUOTES.items()
]
ANSWER = "The ship Great Eastern left Valentia with 2,300 nautical miles of cable in July 1865. [Data: Sources (1)]"
PERFECT = dict.fromkeys(("citation precision", "citation recall", "names", "numbers", "dates"), 1.0)


def lowered(answer: str) -> set[str]:
    scores = score_answer(answer, CITATIONS)
    assert set(scores) == set(PERFECT)
    return {metric for metric, value in scores.items() if value < 1}


def test_a_true_answer_has_full_marks():
    assert score_answer(ANSWER, CITATIONS) == PERFECT


def test_a_false_citation_lowers_precision_alone():
    assert lowered(ANSWER.replace("(1)", "(1, 2)")) == {"citation precision"}


def test_a_missing_citation_lowers_recall_alone():
    assert lowered(f"{ANSWER} It left with the cable of the company.") == {"citation recall"}


def test_an_invented_name_number_or_date_lowers_its_own_metric_alone():
    assert lowered(ANSWER.replace("Valentia", "Lisbon")) == {"names"}
    assert lowered(ANSWER.replace("2,300", "2,400")) == {"numbers"}
    assert lowered(ANSWER.replace("1865", "1866")) == {"dates"}
    assert lowered(ANSWER.replace("July", "August")) == {"dates"}


def test_names_numbers_and_dates_of_a_text():
    assert facts_in("- Cables were laid by Cyrus Field's men.\nIn May 1866, 12.5 tons sank on 3 July.") == {
        "names": {"cyrus", "field", "may"},
        "numbers": {"12.5", "3"},
        "dates": {"1866", "july"},
    }


def test_refusals():
    assert is_refusal(NO_ANSWER)
    assert is_refusal(f"{CLOSEST}\n\n- Something.")
    assert not is_refusal(ANSWER)


def test_an_unanswerable_question_is_scored_by_its_refusal_alone():
    class Said:
        answer, citations = NO_ANSWER, ()

    question = Question("1", "Who?", (), None, "user", False)
    assert [score[2:] for score in answer_scores(question, "local", Said())] == [("refused", 1.0)]
    answerable = Question("2", "Who?", (), "Field", "user")
    scores = answer_scores(answerable, "local", Said())
    assert [score[2:] for score in scores] == [("answered", 0.0), ("has the answer", 0.0)]
