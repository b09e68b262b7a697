"""Words of questions and the texts they find: stems, spellings, languages; in SQL as in Python."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from graphrag_assets.query.entities import named_entities
from graphrag_assets.query.question import Question, question_terms
from graphrag_assets.query.retrieval import word_scores
from graphrag_assets.store.publication_reader import CurrentPublication, Reader
from graphrag_assets.text.languages import language_of
from tests.query.small_index import write_publication

ENGLISH = [
    "The complaints of our customers were about late deliveries. Every complaint was answered by e-mail.",
    "Cyrus Field's company laid the cable, and the commander of the ship cooperated with the engineers.",
    "Saint-Exupéry flew from Malmö to Zürich, hoping that the weather would be good, and it was.",
    "The planets move around the sun. Each planet has its own period, and planetary tables list them all.",
    "A plane landed on the field near the town, and the pilots walked home through the snow.",
    "The planets were seen again, and a planet of that size had not been seen before by anybody.",
]
GERMAN = [
    "Die Lieferungen kamen zu spät, und die Kunden schrieben an Herrn Müller in der Großen Straße.",
    "Herr Mueller antwortete den Kunden nicht, weil die Lieferung verloren gegangen war.",
]
RUSSIAN = ["Клиенты жаловались на задержки доставки, и ёлка стояла у входа в магазин всю зиму."]


def write(folder: Path, texts: list[str], titles: Sequence[str] = ("Nobody",)) -> Reader:
    """A publication with a document and a text unit for each text, and an entity for each title."""
    documents = [
        {"id": f"d{n}", "title": "", "batch": "b", "language": language_of(text)} for n, text in enumerate(texts)
    ]
    units = [{"id": f"t{n}", "document_id": f"d{n}", "batch": "b", "text": text} for n, text in enumerate(texts)]
    named = [(f"t{n}", title, "", "") for n, title in enumerate(titles)]
    return CurrentPublication(write_publication(folder, documents, units, named)).reader()


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return write(tmp_path_factory.mktemp("english"), ENGLISH)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return write(tmp_path_factory.mktemp("mixed"), ENGLISH + GERMAN + RUSSIAN)


def found(reader: Reader, question: str) -> set[int]:
    return set(word_scores(reader, "text_unit", Question(question), 20))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("customer", {0}),  # only the plural is there
        ("customer’s", {0}),
        ("delivery", {0}),  # of another ending: y becomes i
        ("complain", {0}),  # Snowball's stems differ: "complain" and "complaint"
        ("email", {0}),
        ("Commanded", {1}),
        ("co-operate", {1}),
        ("who was cyrus field", {1, 4}),
        ("Malmo", {2}),
        ("Zuerich", {2}),
        ("Saint-Exupery", {2}),
        ("walking", {4}),
        ("plane", {4}),  # a text has it
        ("planets", {3, 5}),
        ("zebra", set()),
        ("plan", set()),  # four letters are too few for a relation
    ],
)
def test_words_find_texts_with_related_forms(reader: Reader, question: str, expected: set[int]) -> None:
    assert found(reader, question) == expected


def test_of_the_terms_that_a_word_stands_for_the_best_counts_in_a_text(reader: Reader) -> None:
    both, one, other = (
        word_scores(reader, "text_unit", Question(word), 20) for word in ("planeter", "planet", "planetary")
    )
    assert one.keys() & other.keys() == {3}
    assert both[3] == pytest.approx(max(one[3], other[3]))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Lieferung", {6, 7}),
        ("Müller", {6, 7}),
        ("GROSSE STRASSE", {6}),
        ("клиент", {8}),
        ("елка", {8}),
        ("the customer and the Kunde", {0, 6, 7}),
    ],
)
def test_a_question_is_searched_in_every_language_of_the_documents(
    mixed: Reader, question: str, expected: set[int]
) -> None:
    assert found(mixed, question) == expected


def test_stop_words_are_those_of_the_language_that_the_question_seems_to_have(mixed: Reader, reader: Reader) -> None:
    def searched(reader: Reader, question: str) -> set[str]:
        return {term.concept for term in question_terms(reader, Question(question).words)}

    assert searched(mixed, "Who will die in the war?") == {"die", "war"}
    assert searched(mixed, "Wer war die Kundin und was will er?") == {"kundin"}
    assert searched(mixed, "who is who") == {"who", "is"}
    assert searched(reader, "die") == {"die"}


def test_names_are_found_without_diacritics_and_hyphens(tmp_path: Path) -> None:
    titles = ["Malmö", "Saint-Exupéry", "Gutta-percha", "Cyrus Field"]
    reader = write(tmp_path, [f"About {title}." for title in titles], titles)
    for question, number in (
        ("where is malmo?", 0),
        ("MALMÖ'S harbor", 0),
        ("who was saint exupery", 1),
        ("who was Saint-Exupery's friend", 1),
        ("what is gutta percha?", 2),
        ("what is Gutta‐Percha?", 2),
        ("who was cyrus field", 3),
    ):
        assert named_entities(reader, Question(question)) == [number], question
    assert reader.query("FROM entities_called('malmo')")["human_readable_id"].to_list() == [0]
