"""Which titles are resolved to the same entity, and which are not."""

from time import perf_counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.pipeline.resolution import propose_aliases
from graphrag_assets.text.words import title_key

Row = tuple[str, str, str]
Related = tuple[str, str, str]
SCHEMA = dict.fromkeys(("document_id", "title", "title_key", "type", "text_unit_id"), pl.String) | {
    "in_header": pl.Boolean
}


def mentions(*rows: Row, by_model: bool = False, in_header: str = "") -> pl.DataFrame:
    """Mentions, those of a document in one text unit. `in_header`: the name that stands in no text."""
    full = [(d, t, title_key(t), kind, f"unit of {d}" if by_model else None, t == in_header) for d, t, kind in rows]
    return pl.DataFrame(full, schema=SCHEMA, orient="row")


def related(*rows: Related, by_model: bool = True) -> pl.DataFrame:
    full = [(d, title_key(source), title_key(target), by_model) for d, source, target in rows]
    columns = dict.fromkeys(("document_id", "source_key", "target_key"), pl.String) | {"by_model": pl.Boolean}
    return pl.DataFrame(full, schema=columns, orient="row")


def propose(frame: pl.DataFrame, relationships: pl.DataFrame | None = None) -> pl.DataFrame:
    return propose_aliases(frame, related() if relationships is None else relationships)


def aliases(
    *rows: Row, relationships: pl.DataFrame | None = None, **more: object
) -> set[tuple[str | None, str, str, str]]:
    return set(propose(mentions(*rows, **more), relationships).rows())


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [("a", "great eastern", "NAME"), ("b", "the great eastern", "NAME")],
            {(None, "the great eastern", "great eastern", "article")},
        ),
        ([("a", "the hague", "GEO")], set()),
        (
            [
                ("a", "gutta-percha", "CONCEPT"),
                ("b", "gutta percha", "CONCEPT"),
                ("c", "gutta-percha", "CONCEPT"),
            ],
            {(None, "gutta percha", "gutta-percha", "spelling")},
        ),
        (
            [("a", "submarine cable", "CONCEPT"), ("b", "submarine cables", "CONCEPT")],
            {(None, "submarine cables", "submarine cable", "plural")},
        ),
        ([("a", "wale", "GEO"), ("b", "wales", "GEO")], set()),
        (
            [("a", "Agamemnon", "NAME"), ("a", "HMS Agamemnon", "NAME")],
            {(None, "hms agamemnon", "agamemnon", "acronym_prefix")},
        ),
        ([("a", "Agamemnon", "NAME"), ("b", "HMS Agamemnon", "NAME")], set()),  # of two documents
        ([("a", "Barcelona", "GEO"), ("a", "FC Barcelona", "ORGANIZATION")], set()),
        ([("a", "Niagara", "NAME"), ("a", "HMS Niagara", "NAME"), ("b", "USS Niagara", "NAME")], set()),
        (
            [("a", "Alû (mythology)", "NAME"), ("a", "Alû", "NAME")],
            {(None, "alû (mythology)", "alû", "qualifier")},
        ),
        (
            [("a", "Python Foundation (PYF)", "ORGANIZATION"), ("b", "Python Foundation", "ORGANIZATION")],
            {(None, "python foundation (pyf)", "python foundation", "qualifier")},
        ),
        (
            [("a", "PyPI Admins", "ORGANIZATION"), ("b", "PyPI Admin", "ORGANIZATION")],
            {(None, "pypi admins", "pypi admin", "plural")},
        ),
        ([("a", "PyPI Admins", "ORGANIZATION"), ("b", "PyPI Admin", "TECHNOLOGY")], set()),
        (
            [("a", "Москва", "GEO"), ("b", "Москве", "NAME"), ("b", "Москвы", "NAME"), ("c", "Москвы", "NAME")],
            {(None, "москве", "москва", "inflection"), (None, "москвы", "москва", "inflection")},
        ),
        ([("a", "Петров", "PERSON"), ("b", "Петрова", "PERSON"), ("b", "Пётр", "PERSON")], set()),
        (
            [("a", "Deutscher Bundestag", "NAME"), ("b", "Deutschen Bundestages", "NAME")],
            {(None, "deutschen bundestages", "deutscher bundestag", "inflection")},
        ),
        ([("a", ".NET", "NAME"), ("b", "NET", "NAME"), ("b", "C++", "NAME"), ("b", "C", "NAME")], set()),
        (
            [("a", "Ed Wood (film)", "NAME"), ("a", "Ed Wood", "PERSON"), ("b", "Ed Wood (album)", "NAME")],
            set(),
        ),
    ],
)
def test_variants_of_one_name_everywhere(rows: list[Row], expected: set[tuple[None, str, str, str]]) -> None:
    assert aliases(*rows) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["cyrus field", "cyrus w. field", "cyrus west field"], {"cyrus w. field", "cyrus west field"}),
        (["george bush", "george walker bush", "george herbert bush"], set()),
        (["wildman whitehouse", "edward orange wildman whitehouse"], {"edward orange wildman whitehouse"}),
        (["john watkins brett", "j. w. brett", "j. brett"], {"j. w. brett", "j. brett"}),
        (["john watkins brett", "jane wilma brett", "j. w. brett"], set()),
        (["george w. bush", "george h. w. bush"], set()),
        (["elliott smith", "albert e. smith"], set()),
        (["wildman orange whitehouse", "edward wildman george whitehouse"], set()),
        (["j. smith", "j. w. smith"], set()),
        (["john smith", "j. smith", "j. w. smith"], {"j. smith", "j. w. smith"}),
        (["john smith", "j. w. smith", "j. b. smith"], set()),
        (["李 明", "李娜 明"], set()),
        (["marie weber", "anne marie weber", "m. weber"], {"anne marie weber", "m. weber"}),
        (["marie weber", "anne marie l. weber", "m. k. weber"], set()),
        (["marie moreau", "m. jean moreau"], set()),
        (["george wilson", "george william wilson", "william henry wilson"], {"george william wilson"}),
    ],
)
def test_given_names_that_fit_are_those_of_the_most_frequent_name(names: list[str], expected: set[str]) -> None:
    found = aliases(("b", names[0], "PERSON"), *[("a", name, "PERSON") for name in names])
    assert found == {(None, name, names[0], "given_names") for name in expected}


def test_thousands_of_people_of_one_surname_take_no_time_of_their_square() -> None:
    letters = "abcdefghij"
    names = [f"{a}{b}{c} {d}. Smith" for a in letters for b in letters for c in letters for d in "abc"]
    before = perf_counter()
    assert aliases(*[("a", name, "PERSON") for name in names]) == set()
    assert perf_counter() - before < 3  # comparing each with each takes 7


def test_a_surname_is_the_documents_only_bearer_of_it() -> None:
    rows: list[Row] = [
        ("a", "cyrus field", "PERSON"),
        ("a", "field", "NAME"),
        ("b", "matthew field", "PERSON"),
    ]
    assert aliases(*rows) == {("a", "field", "cyrus field", "surname")}


def test_a_surname_with_two_bearers_in_the_document_stays_itself() -> None:
    assert aliases(*[("a", key, "PERSON") for key in ("cyrus field", "matthew field", "field")]) == set()


def test_a_surname_alone_in_a_document_is_the_only_bearer_in_the_corpus() -> None:
    rows: list[Row] = [("a", "cyrus field", "PERSON"), ("b", "field", "PERSON")]
    assert aliases(*rows) == {("b", "field", "cyrus field", "surname")}
    assert aliases(*rows, ("c", "matthew field", "PERSON")) == set()
    assert aliases(*rows, ("b", "inspector emil field", "NAME")) == set()


def test_a_word_that_is_something_else_is_no_surname() -> None:
    assert aliases(("a", "george washington", "PERSON"), ("a", "washington", "GEO")) == set()


IDA: Row = ("a", "Ida Brandt", "PERSON")
BRANDT: Row = ("a", "Brandt", "PERSON")


def test_two_names_that_a_models_answer_lists_are_not_one() -> None:
    assert aliases(IDA, BRANDT, by_model=True) == set()
    assert aliases(IDA, ("a", "I. Brandt", "PERSON"), by_model=True) == set()
    assert aliases(IDA, IDA, ("a", "Ida", "PERSON"), by_model=True) == set()
    board: list[Row] = [("a", "Northern Health Board", "ORGANIZATION"), ("a", "NHB", "ORGANIZATION")]
    assert aliases(*board, by_model=True) == set()
    elsewhere: Row = ("b", "Brandt", "PERSON")
    assert aliases(IDA, elsewhere, by_model=True) == {("b", "brandt", "ida brandt", "surname")}


def test_a_surname_of_another_organization_is_not_that_person() -> None:
    rows = [IDA, ("b", "Brandt", "PERSON"), ("a", "Marlow", "ORGANIZATION"), ("b", "Kestrel", "ORGANIZATION")]
    apart = related(("a", "Ida Brandt", "Marlow"), ("b", "Brandt", "Kestrel"))
    assert aliases(*rows, by_model=True, relationships=apart) == set()
    of_both = related(("a", "Ida Brandt", "Kestrel"), ("b", "Brandt", "Kestrel"))
    assert aliases(*rows, by_model=True, relationships=of_both) == {("b", "brandt", "ida brandt", "surname")}
    spoken_to = related(("a", "Ida Brandt", "Marlow"), ("b", "Kestrel", "Brandt"))
    assert aliases(*rows, by_model=True, relationships=spoken_to) == {("b", "brandt", "ida brandt", "surname")}
    counted = apart.with_columns(by_model=False)
    assert aliases(*rows, relationships=counted) == {("b", "brandt", "ida brandt", "surname")}


def test_the_sender_of_a_mail_is_not_whom_it_speaks_of() -> None:
    assert aliases(IDA, BRANDT, in_header="Ida Brandt") == set()
    assert aliases(IDA, BRANDT, in_header="Tom Field") == {("a", "brandt", "ida brandt", "surname")}


def test_a_title_with_a_surname_is_the_only_bearer() -> None:
    rows: list[Row] = [("a", "Helen Marsh", "PERSON"), ("a", "Ms Marsh", "PERSON"), ("b", "Mr. Marsh", "PERSON")]
    here, there = ("a", "ms marsh", "helen marsh", "surname"), ("b", "mr. marsh", "helen marsh", "surname")
    assert aliases(*rows) == {here, there}
    assert aliases(*rows, ("c", "Tom Marsh", "PERSON")) == {here}
    assert aliases(*rows[1:]) == set()
    doctor: list[Row] = [("a", "Dr Anwar Siddiqui", "PERSON"), ("a", "Dr Siddiqui", "PERSON")]
    assert aliases(*doctor) == {("a", "dr siddiqui", "dr anwar siddiqui", "surname")}


def test_names_with_and_without_a_legal_form_are_one() -> None:
    rows: list[Row] = [("a", "Telvane Ltd", "ORGANIZATION"), ("b", "Telvane", "ORGANIZATION")]
    one = {(None, "telvane", "telvane ltd", "legal_form")}
    assert aliases(*rows) == set()
    assert aliases(*rows, ("b", "Telvane Ltd", "ORGANIZATION"), by_model=True) == one
    assert (
        aliases(*rows, relationships=related(("a", "Telvane Ltd", "SIM"), ("b", "SIM", "Telvane"), by_model=False))
        == one
    )
    assert aliases(*rows, ("b", "Telvane Ltd", "ORGANIZATION"), ("b", "Telvane GmbH", "ORGANIZATION")) == set()
    assert aliases(("a", "Marsh Ltd", "ORGANIZATION"), ("a", "Marsh", "PERSON")) == set()


def test_a_wife_is_not_her_husband() -> None:
    assert aliases(("a", "mrs cratchit", "PERSON"), ("a", "cratchit", "PERSON")) == set()
    both = [("a", "mrs cratchit", "PERSON"), ("a", "bob cratchit", "PERSON"), ("a", "cratchit", "PERSON")]
    assert aliases(*both) == set()


def test_a_given_name_is_the_person_whom_the_document_names_repeatedly() -> None:
    once: list[Row] = [("a", "alex mercer", "PERSON"), ("a", "alex", "PERSON")]
    assert aliases(*once) == set()
    assert aliases(*once, once[0]) == {("a", "alex", "alex mercer", "given_name")}


def test_an_acronym_is_the_organization_that_the_document_spells_out() -> None:
    full: Row = ("a", "bank of north america", "ORGANIZATION")
    assert aliases(full, ("a", "bna", "ORGANIZATION"), ("b", "bna", "ORGANIZATION")) == {
        ("a", "bna", "bank of north america", "acronym")
    }


@pytest.mark.parametrize(
    ("full", "short", "kind"),
    [
        ("Time-based One-Time Password", "TOTP", "TECHNOLOGY"),
        ("Domain-based Message Authentication, Reporting and Conformance", "DMARC", "NAME"),
    ],
)
def test_initials_of_a_name_stand_for_it_in_its_document(full: str, short: str, kind: str) -> None:
    rows: list[Row] = [("a", full, kind), ("a", short, "NAME"), ("b", short, "NAME")]
    expected = {("a", title_key(short), title_key(full), "acronym")}
    assert {row for row in aliases(*rows) if row[0]} == expected
    assert not {row for row in aliases(*rows, ("a", f"{full} Xylophone", kind)) if row[0] == "b"}


def test_an_abbreviation_in_parentheses_holds_in_every_document_unless_two_names_have_it() -> None:
    stated: list[Row] = [
        ("a", "International Business Machines Corporation (IBM)", "ORGANIZATION"),
        ("a", "International Business Machines Corporation", "ORGANIZATION"),
        ("b", "IBM", "ORGANIZATION"),
    ]
    assert ("b", "ibm", "international business machines corporation", "acronym") in aliases(*stated)
    other: Row = ("c", "Iron Band of Munich (IBM)", "ORGANIZATION")
    assert not {row for row in aliases(*stated, other) if row[0] == "b"}
    assert not {row for row in aliases(*stated[:2], ("b", "IBM", "PERSON")) if row[0] == "b"}


def test_a_longer_name_does_not_absorb_a_more_frequent_word_unless_it_is_evidently_a_persons() -> None:
    often: list[Row] = [("a", "Google", "NAME")] * 3
    assert aliases(("a", "Zorvex Google", "PERSON"), *often) == set()
    assert aliases(("a", "Anna Google", "PERSON"), *often) == {("a", "google", "anna google", "surname")}
    said: Row = ("a", "Google", "PERSON")
    assert aliases(("a", "Zorvex Google", "PERSON"), *often, said) == {("a", "google", "zorvex google", "surname")}


KEYS = st.sampled_from(
    ["cyrus field", "cyrus w. field", "c. field", "c. w. field", "cyrus west field", "matthew field", "field",
     "cyrus", "the field", "the great eastern", "great eastern", "great-eastern", "HMS Field", "SS Cyrus", "field (ship)",
     "cables", "cable", "the cables", "gutta-percha cable", "gutta percha cables", "atc",
     "atlantic telegraph company",
     "a.t.c.", "atlantic telegraph company (ATC)", "alpine transit club (ATC)", "mrs field", "west field", "west cyrus field", "w. field", ""]
)  # fmt: skip
TYPES = st.sampled_from(["PERSON", "NAME", "EVENT", "CONCEPT", "ORGANIZATION", "GEO"])
ROWS = st.lists(st.tuples(st.sampled_from("abc"), KEYS, TYPES), max_size=40)


@given(ROWS, st.randoms())
def test_aliases_do_not_depend_on_order_and_have_no_chains(rows: list[Row], random: object) -> None:
    frame = mentions(*rows)
    table = propose(frame)
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert propose(mentions(*shuffled)).equals(table)
    assert not table.select("document_id", "alias_key").is_duplicated().any()
    assert (table["alias_key"] != table["title_key"]).all()
    assert set(table["title_key"]) <= set(frame["title_key"])
    scopes = set(table.select("document_id", "alias_key").iter_rows())
    meanings = set(table.select("document_id", "title_key").iter_rows())
    assert not {(document, key) for document, key in meanings if {(document, key), (None, key)} & scopes}
