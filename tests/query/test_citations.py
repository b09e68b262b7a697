"""Citations in answers: parsed, checked against the context, resolved to documents."""

import re
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.query.citations import Checked, references, resolve
from graphrag_assets.store.publication_reader import CurrentPublication, Reader
from tests.query.conftest import write_index

EVERYTHING = {
    name: {number: {1, 2} for number in range(10)}
    for name in ("Sources", "Entities", "Relationships", "Claims", "Reports")
}


def test_a_source_leads_to_the_cited_sentence_in_its_document(reader: Reader) -> None:
    answer = "Captain William Hudson\ncommanded the Niagara. [Data: Sources (0)]"
    (citation,), unresolved = resolve(reader, answer, EVERYTHING)
    assert unresolved == []
    assert [(row.table, row.number, row.id) for row in citation.rows] == [("Sources", 0, "t0")]
    assert (citation.document, citation.source) == ("Document 0", "b/document-0.txt")
    # The first sentence has 60 characters and a blank.
    assert (citation.start_char, citation.end_char) == (61, 106)
    assert citation.quote == "Captain William Hudson commanded the Niagara."


def test_a_cited_sentence_is_the_quote_whatever_the_statement_says(reader: Reader) -> None:
    citations, unresolved = resolve(reader, "They met, and he led her. [Data: Sources (0.1-0.3)]", EVERYTHING)
    assert [(c.rows[0].number, c.start_char, c.end_char) for c in citations] == [(0, 0, 60), (0, 61, 106)]
    assert citations[1].quote == "Captain William Hudson commanded the Niagara."
    assert unresolved == ["Sources (0.3)"]


def test_a_claim_in_other_words_leads_to_what_it_quotes(tmp_path: Path) -> None:
    path = write_index(tmp_path / "graphrag-1.duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "UPDATE covariates SET source_text = 'where the\n people cheered' WHERE human_readable_id = 1"
        )
    reader = CurrentPublication(path).reader()
    (citation,), _ = resolve(reader, "They were glad. [Data: Claims (1)]", EVERYTHING)
    assert (citation.quote, citation.text_unit_id) == ("where the people cheered", "t1")
    (citation,), _ = resolve(reader, "The Agamemnon reached Valentia [Data: Claims (1)]", EVERYTHING)
    assert citation.quote == "The Agamemnon reached Valentia"


@pytest.mark.parametrize(
    ("reference", "title", "text_units"),
    [
        # Valentia is in units 1 and 3, with one relationship stated in each.
        ("Entities (3)", "Valentia", ["t1", "t3"]),
        ("Relationships (4)", "Great Eastern – Valentia", ["t3"]),
        ("Claims (1)", "The Agamemnon reached Valentia on 5 August 1858, where the people cheered.", ["t1"]),
        # Two members of community 4 are named in units 2 and 3, one in unit 1.
        ("Reports (4)", "Valentia, Great Eastern, Daniel Gooch", ["t2", "t3", "t1"]),
    ],
)
def test_graph_rows_lead_on_to_text_units(reader: Reader, reference: str, title: str, text_units: list[str]) -> None:
    citations, unresolved = resolve(reader, f"So it was. [Data: {reference}]", EVERYTHING)
    assert unresolved == []
    assert {citation.rows[0].title for citation in citations} == {title}
    assert [citation.text_unit_id for citation in citations] == text_units


def test_a_report_leads_to_the_rows_of_the_finding_that_the_statement_stands_in(reader: Reader) -> None:
    citations, _ = resolve(reader, "It was Daniel Gooch who headed them. [Data: Reports (4)]", EVERYTHING)
    assert [citation.text_unit_id for citation in citations] == ["t2"]
    assert {citation.rows[0].title for citation in citations} == {"Valentia, Great Eastern, Daniel Gooch"}


def test_references_that_lead_nowhere_are_listed_and_never_cited(reader: Reader) -> None:
    answer = "A. [Data: Sources (99)] B. [Data: Ships (1)] C. [Data: Entities (3)]"
    citations, unresolved = resolve(reader, answer, {"Sources": {0}, "Entities": {2}})
    assert citations == []
    assert unresolved == ["Sources (99)", "Ships (1)", "Entities (3)"]


GIVEN = {"Sources": {1: {1, 2}, 2: {1}, 3: set(), 4: set()}, "Reports": {7: set()}}


@pytest.mark.parametrize(
    ("text", "shown", "lost"),
    [
        ("A. [Data: Sources (1, 2); Reports (7)]", "A. [Data: Sources (1, 2); Reports (7)]", []),
        ("A. [Data: Sources (1, 9, +more)] B.", "A. [Data: Sources (1)] [unresolved: Sources (9)] B.", ["Sources (9)"]),
        ("A. [Data: Sources (1.1-2, 2.1)]", "A. [Data: Sources (1.1-2, 2.1)]", []),
        (
            "A. [Data: Sources (1.2-3, 3.1)]",
            "A. [Data: Sources (1.2)] [unresolved: Sources (1.3); Sources (3.1)]",
            ["Sources (1.3)", "Sources (3.1)"],
        ),
        ("A. [Data: Reports]", "A. [unresolved: Reports]", ["Reports"]),
        ("A. [data: source (3-5)]", "A. [Data: Sources (3, 4)] [unresolved: Sources (5)]", ["Sources (5)"]),
        ("A. [Data: Sources (1)", "A. [Data: Sources (1)]", []),
        ("A. [Data: Sources (1) and Reports (7)]", "A. [Data: Sources (1); Reports (7)]", []),
        ("A. [Data: Sources (1; Ships (2)]", "A. [unresolved: Ships (2); Sources (1]", ["Ships (2)", "Sources (1"]),
        (" A [sic] and [DATE: 3] and [. ", "A [sic] and [DATE: 3] and [.", []),
        ("[LLM: verify] [Data: Reports (7)]", "[LLM: verify] [Data: Reports (7)]", []),
    ],
)
def test_citation_of_a_row_outside_the_context_is_marked(text: str, shown: str, lost: list[str]) -> None:
    assert Checked.text(text, GIVEN) == (shown, lost)


NEAR_FORMS = {
    "[Source 1]": "[Data: Sources (1)]",
    "[Source ID: 1]": "[Data: Sources (1)]",
    "[Data Sources (1, 2)]": "[Data: Sources (1, 2)]",
    "[Sources (1), Reports (7)]": "[Data: Sources (1); Reports (7)]",
    "[Sources 1, 2 and Community Report 7]": "[Data: Sources (1, 2); Reports (7)]",
    "(Data: Sources 1, 2)": "[Data: Sources (1, 2)]",
    "(Sources (1, 2); Reports (7))": "[Data: Sources (1, 2); Reports (7)]",
    "［Data：Sources（1，2）］": "[Data: Sources (1, 2)]",
    "【Sources (1)】": "[Data: Sources (1)]",
    "[Data: Sources 1, Reports 7]": "[Data: Sources (1); Reports (7)]",
    "[Data: Sources 1-3]": "[Data: Sources (1, 2, 3)]",
    "[Data: Sources (1) (2); Reports [7]]": "[Data: Sources (1, 2); Reports (7)]",
    "[Data: Sources [1, 2]; report 7]": "[Data: Sources (1, 2); Reports (7)]",
    "[Data: Sources (1), +more]": "[Data: Sources (1)]",
    "[Data: Sources (1, 1)]": "[Data: Sources (1, 1)]",  # canonical: as written
    "[Sources (1": "[Data: Sources (1)]",
}
PROSE = [
    "Of the three Sources (5) were read, and Reports (3, 4) say so.",
    "The method (claim 5) and the others (claims 1-3, 7) were granted (see report 7).",
    "As [source: Reuters, 2019] and [the sources] and [Report of 1858] say [1].",
    "See [Report 7](https://example.org/7) and [Sources 1, 2](#sources).",
    "(Data: US Census 2019) and (Data from 1858) and (data: 5 of 7 sources)",
]


@pytest.mark.parametrize("written", NEAR_FORMS)
def test_a_near_form_is_read_and_written_as_the_canonical_one(written: str) -> None:
    expected = ("He did, " + NEAR_FORMS[written], [])
    assert Checked.text(f"He did, {written}", GIVEN) == expected
    if written[-1] in "])】］）":
        (statement,) = {reference.statement for reference in references(f"He did {written}.")}
        assert statement == "He did"
        shown, _ = Checked.text(f"He did {written}. She too.", GIVEN)
        assert shown == f"He did {NEAR_FORMS[written]}. She too."


@pytest.mark.parametrize("text", PROSE)
def test_prose_with_names_of_tables_and_numbers_is_not_a_reference(text: str) -> None:
    assert Checked.text(text, GIVEN) == (text, [])
    assert references(text) == []
    checked = Checked(GIVEN)
    assert "".join(map(checked.feed, text)) + checked.end() == text


def test_prose_in_brackets_is_shown_as_soon_as_it_is_no_reference() -> None:
    checked = Checked(GIVEN)
    assert checked.feed("He came (as did the ") == "He came (as did the"
    assert checked.feed("source of [all") == " source of"
    assert checked.feed(" this) (Sources say") == " [all this)"
    assert checked.feed(" so") == " (Sources say so"


@given(
    st.lists(
        st.sampled_from(
            [
                "A. ",
                "[Data: ",
                "Sources (1",
                ", 9",
                ")",
                "]",
                "[",
                "(",
                "【",
                "Data: ",
                "report 7",
                " ",
                "; Ships (2)",
                "\n",
            ]
        ),
        max_size=12,
    ),
    st.lists(st.integers(1, 9), max_size=30),
)
def test_pieces_are_shown_as_the_whole_is_however_they_are_cut(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    checked, shown, rest = Checked(GIVEN), "", text
    for cut in [*cuts, len(text)]:
        shown += checked.feed(rest[:cut])
        rest = rest[cut:]
    shown += checked.end()
    assert (shown, list(checked.unresolved)) == Checked.text(text, GIVEN)
    assert "Ships" not in "".join(re.findall(r"\[Data:[^\]]*\]", shown))


def test_a_quotation_with_a_gap_leads_to_the_passage_from_its_first_part_to_its_last(reader: Reader) -> None:
    (citation,), _ = resolve(reader, "The Agamemnon … commanded the Niagara. [Data: Sources (0)]", EVERYTHING)
    assert citation.quote == (
        "The Agamemnon and the Niagara met in mid-ocean in June 1858. Captain William Hudson commanded the Niagara."
    )
    (citation,), _ = resolve(reader, "The Agamemnon and the Niagara met … [Data: Sources (0)]", EVERYTHING)
    assert citation.quote == "The Agamemnon and the Niagara met"
