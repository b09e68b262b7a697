"""Extraction by the embedded default on small texts, compared with what a reader would extract."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.contracts.records import UnitExtraction
from graphrag_assets.embedded.extractor import extract_unit


def types_of(text: str, title: str = "") -> dict[str, str]:
    return {entity.title: entity.type for entity in extract_unit(text, title).entities}


def predicates_of(text: str) -> set[tuple[str, str, str]]:
    return {(r.source, r.type, r.target) for r in extract_unit(text).relationships if r.type}


def test_people_lose_their_honorifics_and_the_surname_alone_means_the_same_person() -> None:
    unit = extract_unit("Mr. Cyrus Field met Professor Thomson in London. Field was a merchant. Mrs. Gamp came.")
    assert {e.title: (e.type, e.n_sentences) for e in unit.entities} == {
        "Cyrus Field": ("PERSON", 2),
        "Thomson": ("PERSON", 1),
        "London": ("GEO", 1),
        "Mrs Gamp": ("PERSON", 1),
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Bank of England", "ORGANIZATION"),
        ("New York, Newfoundland and London Telegraph Company", "ORGANIZATION"),
        ("Battle of Hastings", "EVENT"),
        ("Ghost of Christmas Past", "NAME"),
    ],
)
def test_names_of_several_words_are_kept_whole(name: str, kind: str) -> None:
    assert types_of(f"In those years everybody heard of the {name} again.") == {name: kind}


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("The order went to Glass, Elliot & Co. at once.", "Glass, Elliot & Co.", "ORGANIZATION"),
        ("They sailed into Trinity Bay at dawn.", "Trinity Bay", "GEO"),
        ("They anchored at Heart's Content in the morning.", "Heart's Content", "GEO"),
        ("The bishop lived in St. John's for years.", "St. John's", "GEO"),
        ("The cable was coiled in HMS Agamemnon at night.", "HMS Agamemnon", "NAME"),
        ("The crew of the *Great Eastern* sailed again.", "Great Eastern", "NAME"),
        ("A letter from Ferdinand de Lesseps arrived.", "Ferdinand de Lesseps", "PERSON"),
        ("It was ordered by J. W. Brett himself.", "J. W. Brett", "PERSON"),
    ],
)
def test_a_name_is_typed_by_its_form_and_its_surroundings(text: str, name: str, kind: str) -> None:
    assert types_of(text)[name] == kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna Bell\nPeter Roe\nMary Stone\n", {"Anna Bell", "Peter Roe", "Mary Stone"}),
        (
            "| Anna Bell | Peter Roe |\n|---|---|\n| Mary Stone | John Hart |\n",
            {"Anna Bell", "Peter Roe", "Mary Stone", "John Hart"},
        ),
        ("# Report of Anna Bell\nPeter Roe wrote it.\n", {"Peter Roe", "Anna Bell"}),
        (
            "From: Anna Bell <anna.bell@example.com>\nTo: Peter Roe\nSubject: Hartley Bakery\nDate: Monday\n\nDear Peter, no.",
            {"Anna Bell", "Peter Roe", "Hartley Bakery"},
        ),
        ("Hartley Bakery\n12 Long Lane\nKingston\n", {"Hartley Bakery", "Long Lane", "Kingston"}),
        (
            "All the letters of that summer were carried over the mountains by Anna\n"
            "Bell and her brother, who knew every stone of the road to the town.\n",
            {"Anna Bell"},
        ),
    ],
    ids=["lines", "table", "heading", "e-mail", "address", "wrapped prose"],
)
def test_names_end_with_their_line_unless_prose_is_wrapped(text: str, expected: set[str]) -> None:
    assert set(types_of(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('She starred in "Only Women Bleed" and in "Twister".', {"Only Women Bleed", "Twister"}),
        ('"Good morning, Anna Bell," said Peter Roe.', {"Anna Bell", "Peter Roe"}),
        ("He played in Carry On Cruising in 1962.", {"Carry On Cruising"}),
        ("The song topped the ARIA Albums Chart for weeks.", {"ARIA Albums Chart"}),
        ("He served under Elizabeth II in World War II.", {"Elizabeth II", "World War II"}),
        ("He read the Gospel of Thomas.", {"Gospel of Thomas"}),
        ("He was chief officer of the Great Eastern under Halpin of Wicklow.", {"Great Eastern", "Halpin", "Wicklow"}),
    ],
)
def test_names_hold_the_capitals_and_function_words_that_belong_to_them(text: str, expected: set[str]) -> None:
    assert set(types_of(text)) == expected


def test_concepts_are_specific_noun_phrases() -> None:
    text = "The mirror galvanometer won. The copper wire of the Atlantic cable lay in gutta-percha."
    titles = types_of(text)
    assert {"mirror galvanometer", "gutta-percha", "copper wire", "Atlantic cable"} <= set(titles)
    assert set(titles.values()) == {"CONCEPT"}


@pytest.mark.parametrize(
    "text",
    [
        "In the year after, on Monday the 5th of July, he came for the first time.",
        "Nothing happened. Yesterday it rained. Perhaps nobody minded. Oh! Come in. What now?",
        "“Humbug!” he said. “I don't know. Where's the gentleman?” 'Tis nothing.",
        "The Company, the Captain and the Board agreed with Mr. and Mrs.",
        "CHAPTER XIV\n\nSee Figure 2 and Table 3.",
        "## Raising The Capital Again\n\nIt took about £350 in all, and 12 years.",
        "American and British engineers spoke English and French.",
        "",
    ],
)
def test_fragments_are_no_entities(text: str) -> None:
    assert types_of(text) == {}


def test_a_capital_at_a_sentence_start_is_believed_when_the_unit_or_the_title_confirms_it() -> None:
    assert types_of("Glass paid at once.") == {}
    assert "Glass" in types_of("Glass paid at once. The bill was sent to Glass by mail.")
    assert "Mirror Lake" in types_of("Mirror Lake is deep.", title="Mirror Lake")


@pytest.mark.parametrize(
    ("text", "title", "expected"),
    [
        ("The moon was bright. Nobody slept.", "Mirror Lake", ["Mirror Lake"]),
        ("Alû is a demon of Mesopotamia.", "Alû (mythology)", ["Alû (mythology)", "Alû"]),
        ("In geometry, the Graham number is an integer.", "Graham number", ["Graham number"]),
        ("Biology is the study of life.", "Biology", ["Biology"]),
        ("Life is long.", "Biology", []),
        ("It rained.", "mail1", []),
        ("It rained.", "The expedition of 1857", []),
        ("It rained.", "Bank Raises Rates Again", []),
    ],
)
def test_name_in_the_title_is_an_entity(text: str, title: str, expected: list[str]) -> None:
    titles = types_of(text, title)
    assert [name for name in (title, title.split(" (")[0]) if name in titles] == expected + expected * (
        len(expected) == 1
    )


def test_a_title_that_no_sentence_has_is_counted_in_none_and_described_by_the_name_that_shares_a_word() -> None:
    unit = extract_unit("Paul Michael Gross is a Canadian actor. Nobody knew.", "Paul Gross")
    described = {e.title: (e.description, e.n_sentences) for e in unit.entities}
    assert described["Paul Gross"] == ("Paul Michael Gross is a Canadian actor.", 0)
    assert ("Paul Gross", "Paul Michael Gross") in {(r.source, r.target) for r in unit.relationships}


def test_a_description_prefers_the_sentence_that_defines() -> None:
    unit = extract_unit("They feared that the gale would sink the *Niagara*. The *Niagara* was a steam frigate.")
    descriptions = {e.title: e.description for e in unit.entities}
    assert descriptions["Niagara"] == "The Niagara was a steam frigate."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ada Bell was a chemist. She lived in Leeds.", "Ada Bell was a chemist. She lived in Leeds."),
        ("Ada Bell was a chemist. It rained. She lived in Leeds.", "Ada Bell was a chemist. … She lived in Leeds."),
        ("Ada Bell was a chemist.\n\nShe lived in Leeds.", ""),
        ("She lived in Leeds. Nobody else of the class went to Leeds.", "Nobody else of the class went to Leeds."),
        ("However, he left Leeds.", ""),
        ("Many people who lived there then left Leeds.", "Many people who lived there then left Leeds."),
    ],
)
def test_no_description_begins_with_a_pronoun_that_refers_to_nothing(text: str, expected: str) -> None:
    assert {e.title: e.description for e in extract_unit(text).entities}["Leeds"] == expected


def test_relationships_join_entities_of_one_sentence_only() -> None:
    unit = extract_unit("Cyrus Field met Samuel Morse in London. Peter Cooper stayed in New York.")
    assert {(r.source, r.target) for r in unit.relationships} == {
        ("Cyrus Field", "Samuel Morse"),
        ("Cyrus Field", "London"),
        ("Samuel Morse", "London"),
        ("Peter Cooper", "New York"),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Captain James Anderson commanded the *Great Eastern*.",
            ("James Anderson", "COMMANDED", "Great Eastern"),
        ),
        (
            "HMS Agamemnon was commanded by Captain George Preedy.",
            ("George Preedy", "COMMANDED", "HMS Agamemnon"),
        ),
        ("Jane Austen was born in Hampshire.", ("Jane Austen", "BORN_IN", "Hampshire")),
        ("He went to Bull Bay, Newfoundland.", ("Bull Bay", "LOCATED_IN", "Newfoundland")),
    ],
)
def test_a_plain_verb_between_two_names_is_the_type(text: str, expected: tuple[str, str, str]) -> None:
    assert predicates_of(text) == {expected}
    assert [one.strength for one in extract_unit(text).relationships] == [1.0]  # of one sentence


def test_markdown_is_stripped_from_descriptions_but_not_from_the_source() -> None:
    text = "# Ships\n\n- The **Great Eastern** left [Valentia](http://example.org/v) on\n  23 July 1865.\n"
    [claim] = [c for c in extract_unit(text).claims if c.type == "DATED EVENT"]
    assert claim.description == "The Great Eastern left Valentia on 23 July 1865."
    assert claim.source_text == "- The **Great Eastern** left [Valentia](http://example.org/v) on\n  23 July 1865."
    assert (claim.subject, claim.object) == ("Great Eastern", "Valentia")


HARD = [
    "<|endoftext|> Cyrus Field <|endofprompt|> saw London.",
    "Robert'); DROP TABLE entities;-- met 100% of \"O'Brien\" 😀🎉 & Co. in %s {curly} $1.",
    "電信電纜於1866年由大東方號鋪設完成。倫敦。",
    "Anna Bell saw " + "Paul Roe and " * 5000 + "went home.",
    "x" * 100_000,
    "\x02\x03\x00 ** __ _ * [ ]( ) | | |\n# \n> \n- ",
    "* * *\n***\n___\n" + "\N{COMBINING ACUTE ACCENT}" * 50,
    "A. B. C. D. E. F. G. H. I. J. K. L. M.",
    " ".join(f"Alpha{chr(97 + i % 26)}{chr(97 + i // 26)} Omega" for i in range(300)) + ".",
]


def assert_sound(text: str, unit: UnitExtraction) -> None:
    titles = {entity.title for entity in unit.entities}
    assert len(titles) == len(unit.entities)
    assert all(r.source in titles and r.target in titles and r.source != r.target for r in unit.relationships)
    assert all(c.source_text in text and c.subject in titles for c in unit.claims)
    assert all(len(e.description) <= 400 and e.n_sentences > 0 for e in unit.entities)


@pytest.mark.parametrize("text", HARD)
def test_hostile_texts_do_no_harm(text: str) -> None:
    assert_sound(text, extract_unit(text))


WORDS = st.sampled_from(
    ["Cyrus Field", "Field", "the *Great Eastern*", "HMS Agamemnon", "in London", "laid", ".", "\n\n", "1866",
     ",", "and", "of", "Mr.", "'s", "“", "”", "£500", "a mirror galvanometer", "never", "#", "|", "Captain",
     "&", "Co.", "-", "the"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=300), st.lists(WORDS, max_size=40).map(" ".join)))
def test_any_text_gives_sound_records_and_the_same_ones_again(text: str) -> None:
    unit = extract_unit(text)
    assert_sound(text, unit)
    assert extract_unit(text) == unit
