"""The content of the page compared with the tables."""

import pytest

from graphrag_assets.extras.explorer.content import Limits, page_content
from graphrag_assets.store.publication_reader import CurrentPublication


@pytest.fixture(scope="module")
def reader(sample_index):
    return CurrentPublication(sample_index.root / "index").reader()


@pytest.fixture(scope="module")
def whole(reader):
    return page_content(reader)


def columns(frame, *names: str) -> set[tuple]:
    return set(frame.select(names).iter_rows())


def count(index, table: str) -> int:
    return index.sql(f"SELECT count(*) FROM {table}")[0][0]


def test_index_within_the_limits_is_complete_on_the_page(sample_index, whole):
    assert whole.left_out == {}
    tables = {
        "entities": "entities",
        "relationships": "relationships",
        "communities": "communities",
        "claims": "covariates",
        "documents": "documents",
        "reports": "community_reports",
        "text_units": "text_units",
        "candidates": "entity_candidates",
    }
    for name, table in tables.items():
        rows = count(sample_index, table)
        assert whole.rows[name] == (rows, rows)
        assert whole.tables[name].height == rows


def test_relationships_mentions_and_claims_are_those_of_the_lists_in_the_index(sample_index, whole):
    ends = "SELECT r.human_readable_id, s.human_readable_id, t.human_readable_id FROM relationships r JOIN entities s ON s.title = r.source JOIN entities t ON t.title = r.target"
    assert columns(whole.tables["relationships"], "number", "source", "target") == set(sample_index.sql(ends))
    named = "SELECT e.human_readable_id, t.human_readable_id FROM entities e, unnest(e.text_unit_ids) u(id) JOIN text_units t ON t.id = u.id"
    assert columns(whole.tables["mentions"], "entity", "unit") == set(sample_index.sql(named))
    stated = "SELECT r.human_readable_id, t.human_readable_id FROM relationships r, unnest(r.text_unit_ids) u(id) JOIN text_units t ON t.id = u.id"
    assert columns(whole.tables["statements"], "relationship", "unit") == set(sample_index.sql(stated))
    claimed = (
        "SELECT c.human_readable_id, t.human_readable_id FROM covariates c JOIN text_units t ON t.id = c.text_unit_id"
    )
    assert columns(whole.tables["claims"], "number", "unit") == set(sample_index.sql(claimed))


def test_best_connected_entities_are_kept_with_their_rows(sample_index, reader):
    content = page_content(reader, Limits(entities=20, relationships=15, claims=5))
    best = [
        n
        for (n,) in sample_index.sql(
            "SELECT human_readable_id FROM entities ORDER BY degree DESC, human_readable_id LIMIT 20"
        )
    ]
    assert content.tables["entities"]["number"].to_list() == best
    relationships = content.tables["relationships"]
    among = sample_index.sql(
        f"SELECT weight FROM relationships WHERE source_number IN {tuple(best)} AND target_number IN {tuple(best)} ORDER BY weight DESC LIMIT 15"
    )
    assert relationships["weight"].to_list() == pytest.approx([weight for (weight,) in among], abs=0.001)
    assert {*relationships["source"], *relationships["target"]} <= {*best}
    assert {*content.tables["statements"]["relationship"]} == {*relationships["number"]}
    assert {*content.tables["mentions"]["entity"]} == {*best} == {*content.tables["memberships"]["entity"]}
    assert {*content.tables["claims"]["subject"]} <= {*best}
    assert content.left_out["entities"] == (20, count(sample_index, "entities"))
    assert content.left_out["claims"][0] == 5


def test_texts_up_to_the_limit_leave_no_entity_without_one_before_another_has_two(sample_index, reader):
    texts = page_content(reader, Limits(characters=30_000)).tables["text_units"]
    shown = {*texts.filter(texts["text"].is_not_null())["number"]}
    assert sum(map(len, texts["text"].drop_nulls())) <= 30_000
    assert 0 < len(shown) < 61
    assert texts.height == 61
    order = sample_index.sql("""
        WITH places AS (SELECT *, row_number() OVER (PARTITION BY entity ORDER BY n_relationships DESC, text_unit) AS place FROM search.entity_text_units)
        SELECT human_readable_id, length(text) FROM text_units LEFT JOIN (SELECT text_unit, min(place) p FROM places GROUP BY 1) ON text_unit = human_readable_id ORDER BY p NULLS LAST, 1
    """)
    expected, room = set(), 30_000
    for number, length in order:
        room -= length
        if room < 0:
            break
        expected.add(number)
    assert shown == expected


def test_links_between_communities_count_every_relationship_between_their_members(sample_index, reader):
    # Only five entities are on the page, yet all count; none above the map's size, no link.
    content = page_content(reader, Limits(nodes=30, entities=5))
    level0 = dict(sample_index.sql("SELECT entity, community FROM search.entity_communities WHERE level = 0"))
    expected: dict[tuple[int, int], int] = {}
    for source, target in sample_index.sql("SELECT source_number, target_number FROM relationships"):
        pair = tuple(sorted((level0[source], level0[target])))
        if pair[0] != pair[1]:
            expected[pair] = expected.get(pair, 0) + 1
    roots = set(level0.values())
    links = {
        (a, b): n
        for a, b, n in content.tables["links"].select("source", "target", "relationships").iter_rows()
        if a in roots
    }
    assert links == expected
    inner = {(a, b) for a, b in columns(content.tables["links"], "source", "target") if a not in roots}
    crowded = {c for (c,) in sample_index.sql("SELECT community FROM communities WHERE size > 30")}
    parents = dict(sample_index.sql("SELECT community, parent FROM communities"))
    assert inner
    assert {parents[a] for a, _ in inner} == {parents[b] for _, b in inner} <= crowded
    assert page_content(reader, Limits(nodes=count(sample_index, "entities"))).tables["links"].is_empty()
