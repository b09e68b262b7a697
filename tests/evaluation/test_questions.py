"""questions.jsonl: what is read, what is wrong with a line, and where gold passages are in a publication."""

import json

import pytest

from graphrag_assets.errors import InputError
from graphrag_assets.extras.evaluation.questions import Gold, Question, load_questions, place

GOOD = '{"question": "Who commanded it?", "document": "ship.txt", "quote": "Captain Anderson commanded"}'


def problem(tmp_path, line: str) -> str:
    file = tmp_path / "questions.jsonl"
    file.write_text(f"{GOOD}\n{line}\n", encoding="utf-8")
    loaded = load_questions(file)
    assert [question.text for question in loaded.questions] == ["Who commanded it?"]
    (found,) = loaded.problems
    return str(found)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "Who?"', "line 2: it is not JSON: .* Write {"),
        ("[1]", "line 2: the line: Input should be .*Write {"),
        ('{"document": "a.txt"}', "line 2: question: Field required. Write {"),
        ('{"question": " ", "document": "a.txt"}', "line 2: question: String should match"),
        ('{"question": "Who?"}', "line 2: the question has no gold passage. Name the document that answers it"),
        ('{"question": "Who?", "document": "a", "quotes": "x"}', "'quotes' is not a name .* Did you mean 'quote'"),
        ('{"question": "Who?", "gold": [{"quote": "x"}]}', r"line 2: gold\.0\.document: Field required"),
        (GOOD, "line 2: the question stands in line 1, too. Remove one"),
    ],
)
def test_a_bad_line_is_named_with_its_remedy_and_the_rest_is_used(tmp_path, line, message):
    import re

    assert re.search(rf"^questions\.jsonl, {message}", problem(tmp_path, line)) or re.search(
        message, problem(tmp_path, line)
    )


def test_a_line_that_is_no_text_is_named(tmp_path):
    file = tmp_path / "questions.jsonl"
    file.write_bytes(GOOD.encode() + b'\n{"question": "\xff"}\n')
    assert str(load_questions(file).problems[0]).startswith("questions.jsonl, line 2: it is not JSON")


def test_a_file_without_a_usable_line_is_refused(tmp_path):
    file = tmp_path / "questions.jsonl"
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_questions(file)
    file.write_text("{}\n")
    with pytest.raises(InputError, match=r"no question that can be used\. questions\.jsonl, line 1"):
        load_questions(file)


def test_an_id_depends_on_question_and_passages_alone(tmp_path):
    def ids(*rows: dict) -> list[str]:
        file = tmp_path / "questions.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)))
        return [question.id for question in load_questions(file).questions]

    one, other = {"question": "Who?", "document": "a"}, {"question": "When?", "document": "a"}
    assert ids(one, other) == ids(other, one | {"answer": "Field"})[::-1]
    assert ids({"id": "mine", **one}) == ["mine"]
    assert ids({"question": "Who?", "answerable": False}) != ids(one)


def units(sample, *gold: Gold) -> tuple[frozenset[int], ...]:
    (placed,), unplaced = place(sample, [Question("1", "Who?", gold)])
    assert unplaced == []
    return placed.units


def test_gold_is_found_by_title_path_and_file_name_and_by_its_quote_or_characters(sample):
    document, source, title, text = sample.frame("SELECT id, source, title, text FROM documents ORDER BY id").row(0)
    start = text.index(". ") + 2
    quote = text[start : start + 60]
    (expected,) = units(sample, Gold(document, quote))
    assert expected
    for name in (title, source, source.rpartition("/")[2]):
        assert units(sample, Gold(name, quote)) == (expected,)
    assert units(
        sample, Gold(title, f"{quote[:30]}\n  {quote[30:].lstrip()}" if quote[30] == " " else quote.upper())
    ) == (expected,)
    assert units(sample, Gold(title, start=start, end=start + 60)) == (expected,)
    (whole,) = units(sample, Gold(title))
    assert whole >= expected
    assert len(whole) == sample.frame("SELECT count(*) FROM text_units WHERE document_id = $d", {"d": document}).item()


def test_gold_that_is_not_there_is_named(sample):
    title = sample.frame("SELECT title FROM documents ORDER BY id")["title"][0]
    asked = [Question("1", "Who?", (Gold("missing.txt"),)), Question("2", "Who?", (Gold(title, "no such words"),))]
    placed, unplaced = place(sample, asked)
    assert placed == []
    assert [reason for _, reason in unplaced] == [
        "there is no document 'missing.txt' in the publication. Give its title, file name or path",
        f"{title} does not have the quote “no such words”. Copy the passage from the document's text",
    ]
