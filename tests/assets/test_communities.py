"""The table communities agrees with the tables that it is made of."""

from collections import defaultdict

from tests.conftest import Project


def test_communities_list_what_they_contain(sample_index: Project) -> None:
    read = sample_index.index.working.read
    members, entities = defaultdict(set), {row["id"]: row for row in read("FROM entities").to_dicts()}
    for community, level, entity in read("SELECT community, level, entity_id FROM community_members").iter_rows():
        members[community, level].add(entity)
    dates = dict(
        read("SELECT t.id, d.creation_date[:10] FROM text_units t JOIN documents d ON d.id = t.document_id").iter_rows()
    )
    pairs = read("SELECT id, source_id, target_id FROM relationships").rows()
    rows = {row["community"]: row for row in read("FROM communities").to_dicts()}
    assert any(row["children"] for row in rows.values())
    for number, row in rows.items():
        inside = members[number, row["level"]]
        units = {unit for entity in inside for unit in entities[entity]["text_unit_ids"]}
        assert row == {
            "id": row["id"],
            "human_readable_id": number,
            "community": number,
            "level": row["level"],
            "parent": next((other for other, one in rows.items() if number in one["children"]), -1),
            "children": sorted(other for other, one in rows.items() if one["parent"] == number),
            "title": f"Community {number}",
            "entity_ids": sorted(inside),
            "relationship_ids": sorted(id for id, source, target in pairs if {source, target} <= inside),
            "text_unit_ids": sorted(units),
            "period": max(dates[unit] for unit in units),
            "size": len(inside),
        }
