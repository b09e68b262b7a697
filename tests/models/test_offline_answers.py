"""Extractive answers: which sentences are chosen, how they are cited, when there is no answer."""

import re

import pytest

from graphrag_assets.models.answering import NO_ANSWER, Evidence, Passage, Point
from graphrag_assets.models.offline.answers import MAX_POINTS, MAX_SENTENCES, ExtractiveAnswerer
from graphrag_assets.models.offline.questions import Asked, names_in, stems
from graphrag_assets.models.offline.sentence_pool import candidates

BROOKE = "John Mercer Brooke devised a sounding apparatus with a detachable ball."
DEPTH = "The depth proved to be about two miles."
SOLD = "In 1864 the Great Eastern was sold for £25,000."
SOURCES = (
    Passage("Sources", 12, "Soundings", f"# The plateau\n\n{DEPTH} {BROOKE} It was used in the Dolphin."),
    Passage("Sources", 15, "The ship", f"{SOLD} Penguins know nothing of it. She was broken up in 1889."),
    Passage("Entities", 5, "Brooke", BROOKE),
    Passage("Reports", 3, "Soundings", f"# Soundings\n\n{BROOKE} [Data: Entities (5)]\n\n## Depth\n\nNobody knew."),
)
ANSWERER = ExtractiveAnswerer()


def respond(question: str, *passages: Passage) -> str:
    return ANSWERER.respond(question, Evidence("", passages or SOURCES)).text


def test_the_sentence_that_answers_is_quoted_with_all_rows_that_hold_it() -> None:
    answer = respond("Who devised the sounding apparatus?")
    assert f"{BROOKE} [Data: Sources (12); Entities (5); Reports (3)]" in answer


def test_sentences_stand_in_reading_order_each_with_a_citation() -> None:
    answer = respond("Who devised the sounding apparatus, and for how much was the Great Eastern sold?")
    assert answer.index(BROOKE) < answer.index(SOLD)
    parts = re.findall(r"(.+?) \[Data: [^\]]+\]", answer)
    assert answer.endswith("]")
    assert 2 <= len(parts) <= MAX_SENTENCES
    texts = " ".join(passage.text for passage in SOURCES)
    assert all(part.strip() in texts for part in parts)


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("When did the ship leave?", "The ship left on 5 May 1866.", "The ship left with the new cable."),
        ("How much did the ship cost?", "The ship cost £25,000.", "The ship cost more than was right."),
        ("Who commanded the ship?", "Captain Hudson commanded the ship.", "He commanded the ship for long."),
        ("Where did the ship anchor?", "The ship anchored off Valentia.", "The ship anchored very late again."),
    ],
)
def test_a_sentence_with_the_kind_of_thing_asked_for_is_preferred(question: str, right: str, wrong: str) -> None:
    passages = (Passage("Sources", 1, "", wrong), Passage("Sources", 2, "", right))
    points = ANSWERER.map(question, Evidence("", passages)).points
    assert points[0].text == f"{right} [Data: Sources (2)]"


def test_he_means_whom_the_sentence_before_names() -> None:
    passage = Passage("Sources", 1, "", "Whitehouse was the electrician. He was dismissed on 17 August by the board.")
    other = Passage("Sources", 2, "", "The horses of the farm were dismissed from service by the board.")
    points = ANSWERER.map("When did the board dismiss Whitehouse?", Evidence("", (other, passage))).points
    assert points[0].text.startswith("He was dismissed on 17 August")


@pytest.mark.parametrize(
    "question", ["What is the capital of Mongolia?", "Did Napoleon buy the Great Northern?", "???"]
)
def test_what_the_evidence_does_not_tell_is_not_answered(question: str) -> None:
    assert respond(question) == NO_ANSWER
    assert ANSWERER.map(question, Evidence("", SOURCES[:2])).points == () or question == "???"


def test_without_evidence_there_is_no_answer() -> None:
    assert ANSWERER.respond("Who?", Evidence("", ())).text == NO_ANSWER
    assert ANSWERER.reduce("Who?", []).text == NO_ANSWER


def test_headings_references_and_fragments_are_never_sentences_of_an_answer() -> None:
    texts = [candidate.text for candidate in candidates(SOURCES)]
    assert texts == [DEPTH, BROOKE, "It was used in the Dolphin.", SOLD, "Penguins know nothing of it.",
                     "She was broken up in 1889."]  # fmt: skip


def test_a_heading_says_what_the_sentences_under_it_are_about() -> None:
    found = candidates(
        [Passage("Sources", 1, "Document", "# One\n\nFirst of all things.\n\n## Two\n\nSecond of all things.")]
    )
    assert [candidate.heading for candidate in found] == ["Document One", "Document Two"]


def test_a_question_about_everything_is_answered_by_the_weightiest_passages() -> None:
    reports = tuple(
        Passage("Reports", number, "", f"Report {number} speaks of its own subject.", weight)
        for number, weight in ((1, 0.2), (2, 1.0), (3, 0.5))
    )
    points = ANSWERER.map("What are the main themes of the documents?", Evidence("", reports)).points
    assert [(point.text[-18:], point.score) for point in points] == [
        ("[Data: Reports (2)]"[-18:], 100.0),
        ("[Data: Reports (3)]"[-18:], 50.0),
        ("[Data: Reports (1)]"[-18:], 20.0),
    ]


def test_points_become_a_list_without_repetition_best_first() -> None:
    points = [
        Point("The cable broke near Ireland. [Data: Reports (1)]", 40),
        Point("The cable broke near Ireland. [Data: Reports (1); Sources (2)]", 60),
        Point("The broken cable was found near Ireland. [Data: Reports (3)]", 50),
        Point("Sheep eat grass on the hills. [Data: Reports (4)]", 5),
    ]
    assert ANSWERER.reduce("Where did the cable break?", points).text == (
        "- The cable broke near Ireland. [Data: Reports (1); Sources (2)]"
    )


def test_the_reduction_does_not_depend_on_the_order_of_the_points() -> None:
    points = [Point(f"Ship {name} laid cable number {name}. [Data: Reports (1)]", 50) for name in "ABCDEFGHIJ"]
    answer = ANSWERER.reduce("Which ship laid cable?", points).text
    assert answer == ANSWERER.reduce("Which ship laid cable?", points[::-1]).text
    assert answer.count("\n") < MAX_POINTS


def test_follow_ups_ask_the_question_of_names_that_came_up() -> None:
    mapped = ANSWERER.map("Who devised the sounding apparatus?", Evidence("", SOURCES[:1]), follow_ups=2)
    assert mapped.follow_ups[0].question == "John Mercer Brooke — Who devised the sounding apparatus?"
    assert len(mapped.follow_ups) <= 2
    again = ANSWERER.map(mapped.follow_ups[0].question, Evidence("", SOURCES[:1]), follow_ups=3)
    assert all(follow_up.question.count(" — ") == 1 for follow_up in again.follow_ups)


def test_a_question_is_taken_apart() -> None:
    asked = Asked.of("When did the Great Eastern leave Valentia in 1866, and who commanded her?")
    assert asked.terms == ("great", "eastern", "leav", "valentia", "1866", "command")
    assert asked.named == {"great", "eastern", "valentia", "1866"}
    assert asked.kinds == ("date", "name")
    assert not asked.about_everything
    assert Asked.of("What are the main themes?").about_everything


def test_endings_do_not_matter_and_names_are_phrases() -> None:
    assert stems("commanded commander commands the laying") == {"command", "lay"}
    assert names_in("The cable of William Thomson, in July 1858, reached Heart’s Content. [Data: Sources (1)]") == [
        "William Thomson",
        "Heart’s Content",
    ]
