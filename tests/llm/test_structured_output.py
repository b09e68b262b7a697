"""Parsing the output of models."""

import json

import pytest

from graphrag_assets.llm.model_errors import InvalidAnswer
from graphrag_assets.llm.structured_output import parse
from tests.llm.conftest import Extraction

GOOD = {"title": "Ada", "type": "PERSON", "strength": 7}


def answer(*records: object) -> str:
    return json.dumps({"entities": records})


@pytest.mark.parametrize(
    "text",
    [
        answer(GOOD),
        f"Here you are:\n\n```\n{answer(GOOD)}\n```\nAnything else?",
        f"Sure! {answer(GOOD)}",
        f"<think>Is Ada {{a person}}?</think>{answer(GOOD)}",
        json.dumps({"entities": GOOD}),  # a single record in place of the list
        f"{answer(GOOD)}\n```\nI hope this helps.",
        answer(GOOD).replace("Ada", "Ada\n"),  # a line break as it is
    ],
)
def test_json_is_read_through_fences_prose_and_thoughts(text: str) -> None:
    parsed = parse(text, Extraction)

    assert [(e.title.strip(), e.type, e.strength) for e in parsed.parsed.entities] == [("Ada", "PERSON", 7)]
    assert parsed.dropped_records == 0
    assert not parsed.doubtful


@pytest.mark.parametrize(
    "text",
    [
        answer(GOOD)[:-1],  # the last brace is missing
        answer(GOOD).replace("]", ",]"),
        answer(GOOD).replace('"', "'"),
        answer(GOOD, GOOD).replace('"title": "Ada"', '"title" "Ada"'),  # a colon is missing
        answer(GOOD, GOOD)[:-40],  # cut off inside a record
        answer(GOOD).replace("}]", "}]}") + ', "relationships": [{"source": "Ada"}]}',  # closed too early
        answer(GOOD).replace("}]", "}, ... and many more]"),
        f"{answer(GOOD)}\n{answer(GOOD)}",
    ],
)
def test_a_repair_is_doubtful_because_it_may_have_lost_something(text: str) -> None:
    parsed = parse(text, Extraction)
    assert parsed.doubtful
    assert (parsed.parsed.entities[0].title, parsed.parsed.entities[0].type) == ("Ada", "PERSON")


def test_a_bad_record_is_dropped_and_counted_and_the_good_ones_stay() -> None:
    parsed = parse(answer(GOOD, {"title": "Charles"}, {**GOOD, "strength": "strong"}, 5), Extraction)

    assert [entity.title for entity in parsed.parsed.entities] == ["Ada"]
    assert parsed.dropped_records == 3


@pytest.mark.parametrize(
    "text", ["I would rather not.", "[1, 2]", "", "{}", '{"unexpected": [1]}', answer({"title": "Ada"}, 5)]
)
def test_anything_but_the_requested_object_is_invalid(text: str) -> None:
    with pytest.raises(InvalidAnswer):
        parse(text, Extraction)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"\beta decay", r"\beta decay"),
        (r"\frac{1}{2} \times \theta", r"\frac{1}{2} \times \theta"),
        (r"D:\tools", r"D:\tools"),
        (r"in C:\new\users\bin, and", r"in C:\new\users\bin, and"),
        (r"see Kvarn\Setup\notes\tables", r"see Kvarn\Setup\notes\tables"),
        (r"\\fileserver\reports\ford", r"\\fileserver\reports\ford"),
    ],
)
def test_backslashes_that_the_model_did_not_escape_are_restored_and_counted(written: str, meant: str) -> None:
    parsed = parse(answer(GOOD).replace("Ada", written), Extraction)
    assert parsed.parsed.entities[0].title == meant
    assert parsed.guessed
    assert not parsed.doubtful


@pytest.mark.parametrize(
    "written",
    [r"D:\\tools and \\beta", r"one\ntwo\tthree\r\n\"four\" \u00e9 a\/b", r"Option A:\nnew line", r"a\nbeta\ttools"],
)
def test_escapes_are_read_as_they_are(written: str) -> None:
    parsed = parse(answer(GOOD).replace("Ada", written), Extraction)
    assert parsed.parsed.entities[0].title == json.loads(f'"{written}"')
    assert not parsed.guessed
