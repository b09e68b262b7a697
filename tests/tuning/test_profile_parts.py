"""The types, the sample and the worked examples of a prompt profile."""

import polars as pl
import pytest

from graphrag_assets.contracts.prompt_profile import ProfileType
from graphrag_assets.contracts.records import EntityRecord, RelationshipRecord, TextUnit, UnitExtraction
from graphrag_assets.extras.tuning.entity_types import found_types, given_types, listed_type
from graphrag_assets.extras.tuning.examples import PASSAGE_TOKENS, examples_from, passages
from graphrag_assets.extras.tuning.tuning import varied_sample
from graphrag_assets.text.words import count_tokens


def mentions(**counts: int) -> list[tuple[str, str]]:
    return [(type_.replace("_", " "), f"{type_} {n}") for type_, count in counts.items() for n in range(count)]


def counted(kinds: tuple[ProfileType, ...]) -> dict[str, int]:
    return {kind.type: kind.n for kind in kinds}


def test_variants_are_one_type_and_a_rare_one_stays():
    found = found_types(mentions(ship=40, Ships=9, steam_ship=6, ship_of_the_line=3, person=40, coin=2))
    assert counted(found) == {"SHIP": 58, "PERSON": 40, "COIN": 2}
    assert found[0].examples == ("Ships 0", "Ships 1", "Ships 2")


def test_types_cover_19_of_20_mentions_and_are_at_most_12():
    many = mentions(**{f"{letter}kind": 100 for letter in "abcdefghijklmn"})
    assert len(found_types(many)) == 12
    # 96 % are covered by the first, and 1 % is no rare type but noise; UNKNOWN is no type.
    few = mentions(ship=96, plant=3, coin=1, other=9, unknown=9)
    assert counted(found_types(few)) == {"SHIP": 96, "PLANT": 3}
    assert counted(found_types(few, least=4)) == {"SHIP": 96}


FOUND = (ProfileType("SHIP", 5, "", ("Aurora",)), ProfileType("EVENT", 2))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", FOUND),
        ("person, Ships: a vessel", (ProfileType("PERSON"), ProfileType("SHIPS", 5, "a vessel", ("Aurora",)))),
        ("SHIP: large, small; PERSON", (ProfileType("SHIP", 5, "large, small", ("Aurora",)), ProfileType("PERSON"))),
    ],
)
def test_types_are_found_or_given(given: str, kept: tuple[ProfileType, ...]):
    assert given_types(given, FOUND) == kept


LISTED = listed_type(["SHIP", "PERSON"])
TEXT = "Captain Anderson commanded the Great\nEastern."


def read(*entities: tuple[str, str], pairs: tuple[tuple[str, str], ...] = ()) -> UnitExtraction:
    return UnitExtraction(
        [EntityRecord(title, type_, f"{title} in short.") for title, type_ in entities],
        [RelationshipRecord(a, b, "They are related.", 7.0, "COMMANDED") for a, b in pairs],
    )


def test_an_example_has_the_records_of_listed_types_whose_names_stand_in_its_text():
    entities = [("Anderson", "person"), ("Great Eastern", "steam ship"), ("Poseidon", "SHIP"), ("Captain", "rank")]
    found = read(*entities, pairs=(("Anderson", "Great Eastern"), ("Anderson", "Poseidon")))
    (example,) = examples_from([TextUnit("u", TEXT)], {"u": found}, LISTED, 4)
    assert [(e.title, e.type) for e in example.entities] == [("Anderson", "PERSON"), ("Great Eastern", "SHIP")]
    assert [(r.source, r.target) for r in example.relationships] == [("Anderson", "Great Eastern")]


def test_passages_are_whole_sentences_with_the_most_names():
    filler = " ".join(f"Nothing of note happened on day {n} of the voyage." for n in range(60))
    text = f"{filler} Anderson met Field. {filler}"
    (passage,) = passages([TextUnit("u", text)], {"u": read(("Anderson", "PERSON"))}, LISTED, 4, "o200k_base")
    assert "Anderson met Field." in passage.text
    assert passage.text in text
    assert passage.text.endswith(".")
    assert count_tokens([passage.text])[0] <= PASSAGE_TOKENS


def test_a_sample_has_the_text_units_that_differ_most():
    vectors = {"a": [1.0, 0.0, 0.0], "like a": [0.96, 0.28, 0.0], "b": [0.0, 1.0, 0.0], "c": [0.0, 0.6, 0.8]}
    units = pl.DataFrame({"id": list(vectors), "vector": list(vectors.values())})
    assert varied_sample(units, 3) == ["a", "b", "c"]
    assert sorted(varied_sample(units, 9)) == sorted(vectors)
    assert varied_sample(units.with_columns(vector=None), 2) == ["a", "like a"]
