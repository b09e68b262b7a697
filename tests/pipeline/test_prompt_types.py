"""The types of a prompt profile: counted, merged, edited."""

import pytest

from graphrag_assets.contracts.prompt_profile import ProfileType
from graphrag_assets.errors import SettingsError
from graphrag_assets.extras.tuning.entity_types import found_types, given_types, listed_type


def mentions(**counts: int) -> list[tuple[str, str]]:
    return [(type_.replace("_", " "), f"{type_} {n}") for type_, count in counts.items() for n in range(count)]


def counted(kinds: tuple[ProfileType, ...]) -> dict[str, int]:
    return {kind.type: kind.n for kind in kinds}


def test_variants_are_one_type_and_a_rare_one_stays():
    found = found_types(mentions(ship=40, Ships=9, steam_ship=6, ship_of_the_line=3, person=40, coin=2))
    assert counted(found) == {"SHIP": 58, "PERSON": 40, "COIN": 2}
    assert found[0].examples == ("Ships 0", "Ships 1", "Ships 2")


def test_a_type_that_ends_in_no_other_type_stays_and_predicates_have_no_head():
    assert counted(found_types(mentions(steam_ship=3, relationship=3))) == {
        "RELATIONSHIP": 3,
        "STEAM SHIP": 3,
    }
    assert counted(found_types(mentions(part_of=3, not_part_of=2), merge_heads=False)) == {
        "PART OF": 3,
        "NOT PART OF": 2,
    }


def test_near_identical_types_without_spaces_are_merged():
    found = found_types([*[("公司", "甲")] * 5, *[("科技公司", "乙")] * 3, *[("人物", "丙")] * 4])
    assert counted(found) == {"公司": 8, "人物": 4}


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
        ("-event, +port", (FOUND[0], ProfileType("PORT"))),
        ("SHIP: large, small; PERSON", (ProfileType("SHIP", 5, "large, small", ("Aurora",)), ProfileType("PERSON"))),
    ],
)
def test_types_are_given_or_edited(given: str, kept: tuple[ProfileType, ...]):
    assert given_types(given, FOUND) == kept


@pytest.mark.parametrize("given", ["+PORT, SHIP", "SHIP, : a vessel"])
def test_what_is_no_list_of_types_is_refused(given: str):
    with pytest.raises(SettingsError, match="no list of types"):
        given_types(given, FOUND)


def test_a_type_is_listed_by_its_stems_or_its_head():
    listed = listed_type(["SHIP", "organization"])
    assert [listed(name) for name in ("steam ships", "Organizations", "EVENT", "")] == ["SHIP", "organization", "", ""]
