"""The types, the sample and the worked examples of a prompt profile."""

import numpy as np
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


SIZES = {"ships": 26, "plants": 12, "coins": 2}  # coins are 5 %


@pytest.fixture(scope="module")
def domains() -> pl.DataFrame:
    """Unit vectors around three directions, of 40 text units."""
    chance, rows = np.random.default_rng(1), []
    for place, (domain, size) in enumerate(SIZES.items()):
        for number in range(size):
            vector = np.eye(16)[place] + chance.normal(0, 0.15, 16)
            rows.append((f"{domain}-{number}", (vector / np.linalg.norm(vector)).astype(np.float32)))
    return pl.DataFrame(rows, {"id": pl.String, "vector": pl.List(pl.Float32)}, orient="row")


def kinds(ids: list[str]) -> set[str]:
    return {unit.partition("-")[0] for unit in ids}


def test_all_domains_are_in_a_sample_of_15_of_which_a_random_one_misses_the_smallest_in_a_third_of_the_cases(domains):
    assert all(
        kinds(varied_sample(domains.sample(fraction=1, shuffle=True, seed=n), 15)) == set(SIZES) for n in range(30)
    )
    at_random = [np.random.default_rng(seed).choice(domains["id"], 15, replace=False) for seed in range(200)]
    assert sum("coins" not in kinds(list(ids)) for ids in at_random) > 200 / 3
