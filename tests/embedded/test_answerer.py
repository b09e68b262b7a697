"""Extractive answers: which sentences are chosen, how they are cited, when there is no answer."""

import asyncio
import re

import pytest

from graphrag_assets.contracts.answering import (
    CLOSEST,
    NO_ANSWER,
    Answerer,
    AnswerOptions,
    Evidence,
    Passage,
)
from graphrag_assets.embedded import answerer
from graphrag_assets.embedded.answerer import MAX_QUOTATIONS, MIN_DIRECT, EmbeddedAnswerer
from graphrag_assets.embedded.questions import QuestionAnalysis, in_conversation

BROOKE = "John Mercer Brooke devised a sounding apparatus with a detachable ball."
DEPTH = "The depth proved to be about two miles."
SOLD = "In 1864 the Great Eastern was sold for £25,000."
SOURCES = (
    Passage("Sources", 12, "Soundings", f"# The plateau\n\n{DEPTH} {BROOKE} It was used in the Dolphin."),
    Passage("Sources", 15, "The ship", f"{SOLD} Penguins know nothing of it. She was broken up in 1889."),
    Passage("Entities", 5, "Brooke", BROOKE),
    Passage("Reports", 3, "Soundings", f"# Soundings\n\n{BROOKE} [Data: Entities (5)]\n\n## Depth\n\nNobody knew."),
)
ANSWERER: Answerer = EmbeddedAnswerer()


def respond(question: str, *passages: Passage) -> str:
    return answerer.respond(question, Evidence("", passages or SOURCES)).text


def test_the_sentence_that_answers_is_quoted_with_all_rows_that_hold_it() -> None:
    passages = (Passage("Sources", 12, "Soundings", BROOKE), *SOURCES[1:])
    answer = respond("Who devised the sounding apparatus?", *passages)
    assert answer == f"{BROOKE} [Data: Sources (12); Entities (5); Reports (3)]"


def test_the_best_quotation_comes_first_and_each_has_a_citation() -> None:
    answer = respond("For how much was the Great Eastern sold, and who devised the sounding apparatus?")
    assert answer.index(SOLD) < answer.index(BROOKE)
    parts = re.findall(r"(.+?) \[Data: [^\]]+\]", answer)
    assert answer.endswith("]")
    assert 2 <= len(parts) <= MAX_QUOTATIONS == 3
    texts = " ".join(passage.text for passage in SOURCES)
    assert all(part.strip() in texts for part in parts)


def test_no_heading_and_no_sentence_is_quoted_twice_in_one_answer() -> None:
    voyage = (
        "# The expedition of 1865\n\nThe Great Eastern sailed in July under Captain James Anderson. Captain Anderson commanded "
        "the expedition, and they agreed. The cable of the expedition was lost in August when it parted."
    )
    question = "Who commanded the expedition of 1865, and when was the cable lost?"
    answer = respond(question, Passage("Sources", 1, "", voyage))
    shown = re.split(r"(?<=[.])\s", re.sub(r" \[Data: [^\]]+\]", "", answer))
    assert len(shown) == len(set(shown)) == 3
    assert not any("The expedition of 1865" in sentence or "…" in sentence for sentence in shown)


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("When did the ship leave?", "The ship left on 5 May 1866.", "The ship left with the new cable."),
        ("How much did the ship cost?", "The ship cost £25,000.", "The ship cost more than was right."),
        ("Who commanded the ship?", "Captain Hudson commanded the ship.", "He commanded the ship for long."),
        ("Where did the ship anchor?", "The ship anchored off Valentia.", "The ship anchored very late again."),
    ],
)
def test_sentence_with_the_expected_kind_of_answer_is_preferred(question: str, right: str, wrong: str) -> None:
    passages = (Passage("Sources", 1, "", wrong), Passage("Sources", 2, "", right))
    points = answerer.map_(question, Evidence("", passages)).points
    assert points[0].text == f"{right} [Data: Sources (2)]"


def test_a_question_with_a_label_is_answered_by_a_sentence_that_has_it() -> None:
    other = Passage("Sources", 1, "", "Pump P-318 runs at a pressure of 6 bar.")
    meant = Passage("Sources", 2, "", "The limit of P-317 is 4 bar.")
    answer = respond("At what pressure does pump P-317 run?", other, meant)
    assert meant.text in answer
    assert other.text not in answer


def test_he_means_whom_the_sentence_before_names() -> None:
    passage = Passage("Sources", 1, "", "Whitehouse was the electrician. He was dismissed on 17 August by the board.")
    other = Passage("Sources", 2, "", "The horses of the farm were dismissed from service by the board.")
    points = answerer.map_("When did the board dismiss Whitehouse?", Evidence("", (other, passage))).points
    assert [point.text for point in points[:2]] == [
        "He was dismissed on 17 August by the board. [Data: Sources (1)]",
        "Whitehouse was the electrician. [Data: Sources (1)]",
    ]


@pytest.mark.parametrize(
    ("question", "event", "cause"),
    [
        ("Why did the tower of Lund fall?", "The tower of Lund fell in 1900.", "It was destroyed by a storm."),
        (
            "What led to the fall of Lund tower?",
            "Lund tower had a great fall.",
            "Its wood was rotten, and this is why.",
        ),
        ("Warum fiel der Turm von Lund?", "Der Turm von Lund fiel 1900.", "Er wurde durch den Sturm zerstört."),
        ("Почему упала башня в Лунде?", "Башня в Лунде упала в 1900 году.", "Она упала из-за бури."),
    ],
)
def test_a_question_for_a_reason_is_answered_by_a_sentence_with_a_cause(question: str, event: str, cause: str) -> None:
    assert respond(question, Passage("Sources", 1, "", f"{event} {cause}")) == (
        f"{cause} [Data: Sources (1)] {event} [Data: Sources (1)]"
    )
    without_cause = answerer.map_(question, Evidence("", (Passage("Reports", 2, "", event),))).points
    assert all(point.score < MIN_DIRECT for point in without_cause)


@pytest.mark.parametrize("question", ["What is the capital of Mongolia?", "???"])
def test_without_a_common_word_nothing_is_found(question: str) -> None:
    assert respond(question) == NO_ANSWER
    assert answerer.map_(question, Evidence("", SOURCES[:2])).points == ()


def test_closest_passages_are_shown_when_the_evidence_has_no_answer() -> None:
    question = "Did Napoleon buy the Great Northern?"
    assert respond(question) == f"{CLOSEST}\n- {SOLD} [Data: Sources (15)]"
    points = answerer.map_(question, Evidence("", SOURCES[:2])).points
    assert [point.text for point in points] == [f"{SOLD} [Data: Sources (15)]"]
    assert 0 < points[0].score < MIN_DIRECT
    assert answerer.reduce(points).text == respond(question, *SOURCES[:2])


def test_passages_ranked_by_meaning_are_close_without_a_common_word() -> None:
    question = "What frightened the sailors?"
    evidence = Evidence("", SOURCES[:2])
    assert answerer.respond(question, evidence).text == NO_ANSWER
    assert answerer.respond(question, evidence, by_meaning=True).text.startswith(f"{CLOSEST}\n- {DEPTH}")
    assert answerer.respond("???", evidence, by_meaning=True).text == NO_ANSWER


def test_lines_that_most_sources_repeat_but_for_numbers_are_no_answer() -> None:
    letters = tuple(
        Passage("Sources", year, "", f"The club met at {place}. To leave the club, write in {year}. © {year} The club.")
        for year, place in ((2022, "the roof"), (2023, "the pond"), (2024, "the fence"))
    )
    assert respond("Where did the club meet in 2023?", *letters).count("[Data:") == 1
    assert "the pond" in respond("Where did the club meet at the pond?", *letters)
    assert "write" not in respond("What did the club do in 2023?", *letters)


def test_a_question_about_everything_is_answered_by_the_weightiest_passages() -> None:
    reports = tuple(
        Passage("Reports", number, "", f"Report {number} speaks of its own subject.", weight)
        for number, weight in ((1, 0.2), (2, 1.0), (3, 0.5))
    )
    points = answerer.map_("What are the main themes of the documents?", Evidence("", reports)).points
    assert [(point.text[-18:], point.score) for point in points] == [
        ("[Data: Reports (2)]"[-18:], 100.0),
        ("[Data: Reports (3)]"[-18:], 50.0),
        ("[Data: Reports (1)]"[-18:], 20.0),
    ]


def test_a_question_mostly_about_something_else_is_not_answered() -> None:
    hotel = Passage("Sources", 1, "", "The directors visited the works. Many visited London. Thomson visited Paris.")
    assert respond("Who visited the Hotel Gillet?", hotel).startswith(CLOSEST)
    assert respond("Did Thomson visit the Hotel Gillet?", hotel).startswith(CLOSEST)
    founded = Passage("Sources", 1, "", "The company was founded in 1856 by merchants.")
    assert respond("Was the company founded in 1856 by Bright?", founded).startswith(CLOSEST)
    # The deed alone, done to something else, is no answer either.
    clock = Passage("Sources", 1, "", "He invented a lamp and a clock. Many clocks were made.")
    assert respond("Who invented the telephone?", clock).startswith(CLOSEST)


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("Who was Cyrus Field?", "Cyrus Field"),
        ("What is gutta-percha?", "gutta-percha"),
        ("Give me an overview of Cyrus Field", "Cyrus Field"),
        ("What part did Cyrus Field play in the enterprise from 1854 to 1866?", "Cyrus Field"),
        ("What was Marley's Ghost?", "Marley's Ghost"),
        ("Who was Scrooge's clerk?", None),
        ("Wer war Klara Winter?", "Klara Winter"),
        ("Кто такой Павел Громов?", "Павел Громов"),
        ("What was the capital of the company?", None),
    ],
)
def test_subject_of_a_bare_overview_question_is_recognized(question: str, subject: str | None) -> None:
    assert QuestionAnalysis.of(question).subject == subject


def test_question_without_a_name_is_about_the_last_named_subject() -> None:
    said = AnswerOptions(history="user: Who was Whitehouse?\nassistant: The electrician of Thomson.")
    passages = (
        Passage("Sources", 1, "", "Whitehouse was dismissed on 17 August by the board of the company."),
        Passage("Sources", 2, "", "Penguins were dismissed on 3 May by the board of the zoo."),
    )
    with_history = asyncio.run(ANSWERER.arespond("When was he dismissed?", Evidence("", passages), said))
    assert with_history.text.startswith("Whitehouse was dismissed")
    assert in_conversation("When was he dismissed?", said.history) == "Whitehouse — When was he dismissed?"
    assert in_conversation("When did Field die?", said.history) == "When did Field die?"
    assert in_conversation("When was he dismissed?", "") == "When was he dismissed?"


def test_one_quotation_is_enough_for_a_fact_but_not_for_an_overview() -> None:
    passages = (
        Passage("Sources", 1, "", "In 1856 Cyrus Field founded the company with John Brett."),
        Passage("Sources", 2, "", "Cyrus Field was a paper merchant of New York."),
    )
    assert respond("When did Cyrus Field found the company?", *passages) == f"{passages[0].text} [Data: Sources (1)]"
    assert respond("Who was Cyrus Field?", *passages) == (
        f"{passages[1].text} [Data: Sources (2)] {passages[0].text} [Data: Sources (1)]"
    )


def test_reports_are_rated_by_the_terms_of_the_question_that_they_have() -> None:
    ratings, _ = asyncio.run(ANSWERER.arate("Who devised the sounding apparatus?", [BROOKE, "An apparatus.", DEPTH]))
    assert ratings == [5.0, 1.67, 0.0]
