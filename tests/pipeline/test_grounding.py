"""Names of an extraction that its text does not have."""

from graphrag_assets.contracts.records import EntityRecord, RelationshipRecord, UnitExtraction
from graphrag_assets.pipeline.extraction import grounded


def test_entities_whose_names_the_text_does_not_have_are_counted():
    names = ("GitHub", "Python Foundation", "the Harbor Board", "東京駅", "大阪城")
    entities = [EntityRecord(name, "ORGANIZATION", "It hosts.") for name in names]
    relationships = [RelationshipRecord("GitHub", "Python Foundation", "Hosts.")]
    found = UnitExtraction(entities, relationships)
    text = "The foundation of Python's users and the harbors' board met in 東京. It paid."
    counted = grounded(found, text)
    assert counted.losses.ungrounded == ("GitHub", "大阪城")
    assert (counted.entities, counted.relationships) == (entities, relationships)
    assert grounded(found, f"{text} GitHub 大阪城") == found
