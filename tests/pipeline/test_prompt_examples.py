"""Worked examples and measures, from two readings of text units."""

from graphrag_assets.contracts.records import EntityRecord, RelationshipRecord, TextUnit, UnitExtraction
from graphrag_assets.extras.tuning.entity_types import listed_type
from graphrag_assets.extras.tuning.examples import PASSAGE_TOKENS, examples_from, measured, passages
from graphrag_assets.pipeline.grounding import grounded, without_leaks
from graphrag_assets.text.words import count_tokens

LISTED = listed_type(["SHIP", "PERSON"])
TEXT = "Captain Anderson commanded the Great\nEastern."


def read(*entities: tuple[str, str], pairs: tuple[tuple[str, str], ...] = ()) -> UnitExtraction:
    return UnitExtraction(
        [EntityRecord(title, type_, f"{title} in short.") for title, type_ in entities],
        [RelationshipRecord(a, b, "They are related.", 7.0, "COMMANDED") for a, b in pairs],
    )


def test_an_example_has_what_both_readings_found_and_what_stands_in_its_text():
    both = [("Anderson", "person"), ("Great Eastern", "steam ship"), ("Poseidon", "SHIP"), ("Captain", "rank")]
    first = read(*both, ("Eastern", "SHIP"), pairs=(("Anderson", "Great Eastern"), ("Anderson", "Poseidon")))
    second = read(*both, pairs=(("Anderson", "Great Eastern"), ("Anderson", "Poseidon")))
    (example,) = examples_from([TextUnit("u", TEXT)], {"u": first}, {"u": second}, LISTED, 4)
    assert [(e.title, e.type) for e in example.entities] == [("Anderson", "PERSON"), ("Great Eastern", "SHIP")]
    assert [(r.source, r.target) for r in example.relationships] == [("Anderson", "Great Eastern")]


def test_examples_show_all_types_and_one_has_nothing_to_extract():
    texts = {"a": "Anderson and Field met.", "b": "Field left.", "c": "The Niagara sailed.", "d": "It rained."}
    units = [TextUnit(unit, text) for unit, text in texts.items()]
    readings = {
        "a": read(("Anderson", "PERSON"), ("Field", "PERSON")),
        "b": read(("Field", "PERSON")),
        "c": read(("Niagara", "SHIP")),
        "d": read(),
    }
    assert [e.text_unit_id for e in examples_from(units, readings, readings, LISTED, 2)] == ["a", "c", "d"]


def test_passages_are_whole_sentences_with_the_most_names():
    filler = " ".join(f"Nothing of note happened on day {n} of the voyage." for n in range(60))
    text = f"{filler} Anderson met Field. {filler}"
    (passage,) = passages([TextUnit("u", text)], {"u": read(("Anderson", "PERSON"))}, LISTED, 4, "o200k_base")
    assert "Anderson met Field." in passage.text
    assert passage.text in text
    assert passage.text.endswith(".")
    assert count_tokens([passage.text])[0] <= PASSAGE_TOKENS


def test_measures_are_those_counted_by_hand():
    units = [TextUnit("u", TEXT), TextUnit("failed", "")]
    first = read(("Anderson", "PERSON"), ("Poseidon", "GOD"), pairs=(("Anderson", "Poseidon"),))
    second = read(("Anderson", "PERSON"), ("Great Eastern", "SHIP"))
    found = measured(units, {"u": first}, {"u": second, "failed": second}, LISTED, 300)
    # one of two names stands in the text, one of two types is not listed; one record of three and two is in both
    assert found == (1, 2.0, 1.0, 0.5, 0.5, round(2 * 1 / 5, 4), 300.0)


def test_names_of_an_example_that_the_text_does_not_have_are_left_out_and_counted():
    readings = {"u": read(("Anderson", "PERSON"), ("Great Eastern", "SHIP"))}
    examples = examples_from([TextUnit("u", TEXT)], readings, readings, LISTED, 1)
    found = read(("Anderson", "PERSON"), ("Niagara", "SHIP"), pairs=(("Niagara", "Great Eastern"),))
    kept = without_leaks(found, "Anderson saw the Niagara.", examples)
    assert ([e.title for e in kept.entities], kept.relationships) == (["Anderson", "Niagara"], [])
    assert kept.losses.leaked_names == 1
    for text in (f"{TEXT} Niagara", "Andersons Reise auf der NIAGARA und dem Greaten Easterns."):  # in other forms too
        assert without_leaks(found, text, examples) == found


def test_entities_whose_names_the_text_does_not_have_are_counted_and_dropped_if_wanted():
    names = ("GitHub", "Python Foundation", "the Harbor Board", "東京駅", "大阪城")
    entities = [EntityRecord(name, "ORGANIZATION", "It hosts.") for name in names]
    relationships = [RelationshipRecord("GitHub", "Python Foundation", "Hosts.")]
    found = UnitExtraction(entities, relationships)
    text = "The foundation of Python's users and the harbors' board met in 東京. It paid."
    counted = grounded(found, text, drop=False)
    assert counted.losses.ungrounded == ("GitHub", "大阪城")
    assert (counted.entities, counted.relationships) == (entities, relationships)
    left = grounded(found, text, drop=True)
    assert [entity.title for entity in left.entities] == ["Python Foundation", "the Harbor Board", "東京駅"]
    assert (left.relationships, left.losses) == ([], counted.losses)
    assert grounded(found, f"{text} GitHub 大阪城", drop=True) == found
