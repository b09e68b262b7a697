"""questions.jsonl: what is read, what is wrong with a line, and where gold passages are in a publication."""

import re

import pytest

from graphrag_assets.extras.evaluation.questions import Gold, Question, load_questions, place
from graphrag_assets.store.publication_reader import CurrentPublication, Reader

GOOD = '{"question": "Who commanded it?", "document": "ship.txt", "quote": "Captain Anderson commanded"}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "Who?"', "it is not JSON: .* Write {"),
        ('{"question": "Who?"}', "the question has no gold passage. Name the document that answers it"),
        ('{"question": "Who?", "document": "a", "quotes": "x"}', "quotes: Extra inputs .* Names are .*quote"),
        ('{"question": "Who?", "gold": [{"quote": "x"}]}', r"gold\.0\.document: Field required"),
        (GOOD, "an earlier line has the same question. Remove one"),
    ],
)
def test_a_bad_line_is_named_with_its_remedy_and_the_rest_is_used(tmp_path, line, message):
    file = tmp_path / "questions.jsonl"
    file.write_bytes(f"{GOOD}\n{line}\n".encode() + b'{"question": "\xff"}\n')
    questions, (found, no_text) = load_questions(file)
    assert questions == [
        Question(question="Who commanded it?", gold=[Gold(document="ship.txt", quote="Captain Anderson commanded")])
    ]
    assert re.match(rf"questions\.jsonl, line 2: {message}", found)
    assert no_text.startswith("questions.jsonl, line 3: it is not JSON")


@pytest.fixture
def sample(sample_index) -> Reader:
    return CurrentPublication(sample_index.root / "index").reader()


def asked(*gold: Gold) -> Question:
    return Question(question="Who?", gold=list(gold))


def units(sample, **gold) -> frozenset[int]:
    (placed,), problems = place(sample, [asked(Gold(**gold))])
    assert problems == []
    (found,) = placed.units
    return found


def test_gold_is_found_by_title_path_and_file_name_and_by_its_quote(sample):
    document, source, title, text = sample.query("SELECT id, source, title, text FROM documents ORDER BY id").row(0)
    start = text.index(". ") + 2
    quote = text[start : start + 60]
    expected = units(sample, document=document, quote=quote)
    assert expected
    for name in (title, source, source.rpartition("/")[2]):
        assert units(sample, document=name, quote=quote) == expected
    assert units(sample, document=title, quote=quote.upper().replace(" ", "\n  ")) == expected
    whole = units(sample, document=title)
    assert whole >= expected
    assert len(whole) == sample.query("SELECT count(*) FROM text_units WHERE document_id = $d", {"d": document}).item()


def test_a_text_unit_with_half_of_a_passage_or_more_holds_it(sample):
    first, second, document, start, text = sample.query(
        "SELECT a.human_readable_id AS first, b.human_readable_id AS second, d.id, b.start_char, d.text "
        "FROM text_units a JOIN text_units b ON b.document_id = a.document_id AND b.ordinal = a.ordinal + 1 "
        "AND b.start_char > a.end_char JOIN documents d ON d.id = a.document_id ORDER BY a.id"
    ).row(0)
    for before, after, expected in ((30, 10, first), (20, 20, second), (10, 30, second)):
        assert units(sample, document=document, quote=text[start - before : start + after]) == {expected}


def test_gold_that_is_not_there_is_named(sample):
    title = sample.query("SELECT title FROM documents ORDER BY id")["title"][0]
    placed, problems = place(sample, [asked(Gold(document="gone")), asked(Gold(document=title, quote="no such words"))])
    assert placed == []
    assert problems == [
        "“Who?”: there is no document 'gone' in the publication. Give its title, file name or path.",
        f"“Who?”: {title} does not have the quote “no such words”. Copy the passage from the document's text.",
    ]
