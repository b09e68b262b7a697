"""The macros of the publication compared with other computations."""

from datetime import timedelta
from itertools import pairwise

import duckdb
import igraph
import pytest

from graphrag_assets.text.words import title_key


@pytest.fixture(scope="module")
def graph(index) -> igraph.Graph:
    """The entities by their numbers, and their relationships with weight and number."""
    edges = index.execute(
        "SELECT source_number, target_number, weight, human_readable_id FROM relationships"
    ).fetchall()
    return igraph.Graph.TupleList(edges, edge_attrs=["weight", "number"], vertex_name_attr="entity")


@pytest.fixture(scope="module")
def titles(index) -> dict[str, int]:
    return dict(index.execute("SELECT title, human_readable_id FROM entities").fetchall())


def test_an_entity_is_found_by_any_writing_of_its_title_and_by_an_alias(index, titles):
    for name in ("Great Eastern", "  GREAT  “eastern” "):
        assert index.execute("FROM entities_called(?)", [name]).fetchall() == [(titles["Great Eastern"],)]
    alias, title = index.execute(
        "SELECT alias_key, e.title FROM entity_aliases a JOIN entities e USING (title_key) "
        "WHERE alias_key NOT IN (SELECT title_key FROM entities) ORDER BY ALL LIMIT 1"
    ).fetchall()[0]
    assert (titles[title],) in index.execute("FROM entities_called(?)", [alias.upper()]).fetchall()
    assert index.execute("FROM entities_called('nobody at all')").fetchall() == []


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_neighbors_are_the_entities_within_so_many_hops(index, graph, titles, hops):
    for title in ("Great Eastern", "Maplin Sands", "Amethyst"):
        start = graph.vs.find(entity=titles[title])
        away = dict(zip(graph.vs["entity"], graph.distances(start)[0], strict=True))
        rows = index.execute(
            "SELECT human_readable_id, hop, via, weight, relationship_number FROM neighbors(?, ?)", [title, hops]
        ).fetchall()
        assert {number: hop for number, hop, *_ in rows} == {n: d for n, d in away.items() if 1 <= d <= hops}
        for number, hop, via, weight, relationship in rows:
            edges = graph.es[graph.incident(graph.vs.find(entity=number))]
            nearer = [e for e in edges if min(away[v["entity"]] for v in e.vertex_tuple) == hop - 1]
            (edge,) = (e for e in nearer if e["number"] == relationship)
            assert titles[via] in [v["entity"] for v in edge.vertex_tuple]
            assert edge["weight"] == weight == max(e["weight"] for e in nearer)
        assert [row[1] for row in rows] == sorted(row[1] for row in rows)


def test_path_between_is_the_heaviest_of_the_shortest_ways(index, graph, titles):
    away = dict(zip(graph.vs["entity"], graph.distances(graph.vs.find(entity=titles["Cyrus Field"]))[0], strict=True))
    others = [t for n in (2, 3, 4, 5) for t in [t for t in sorted(titles) if away.get(titles[t]) == n][:3]]
    pairs = [*pairwise(others), *(("Cyrus Field", title) for title in others)]
    lengths = set()
    for one, other in pairs:
        path = index.execute('SELECT "from", "to", weight FROM path_between(?, ?, 6)', [one, other]).fetchall()
        ends = [graph.vs.find(entity=titles[title]) for title in (one, other)]
        ways = [graph.es[graph.get_eids(pairwise(way))]["weight"] for way in graph.get_all_shortest_paths(*ends)]
        if not ways or len(ways[0]) > 6:
            assert path == []
            continue
        assert (len(path), sum(step[2] for step in path)) == (len(ways[0]), pytest.approx(max(map(sum, ways))))
        assert [path[0][0], *(step[1] for step in path)] == [*(step[0] for step in path), other]
        lengths.add(len(path))
    assert {2, 3, 4, 5} <= lengths


def test_a_history_has_the_claims_on_an_entity_in_the_order_of_their_dates(index, titles):
    rows = index.execute("SELECT human_readable_id, valid_from FROM history_of('great eastern') WHERE kind = 'claim'")
    numbers, dates = zip(*rows.fetchall(), strict=True)
    assert list(dates) == sorted(date for date in dates if date) + [None] * dates.count(None)
    expected = index.execute(
        "SELECT human_readable_id FROM covariates WHERE 'great eastern' IN (subject_key, object_key)"
    ).fetchall()
    assert {(number,) for number in numbers} == set(expected)
    assert len(expected) > 3


def test_a_fact_holds_from_its_first_day_to_the_day_before_its_end(index):
    ((fact, start, end), *_) = index.execute(
        "SELECT id, valid_from, valid_until FROM covariates WHERE valid_from < valid_until ORDER BY id"
    ).fetchall()
    days = [start - timedelta(1), start, end - timedelta(1), end]
    holds = [(fact,) in index.execute("SELECT id FROM facts_as_of(?)", [day]).fetchall() for day in days]
    assert holds == [False, True, True, False]


def test_passages_of_a_report_stand_in_the_documents_and_claims_are_quoted(index):
    rows = index.execute(
        "SELECT s.table_name, s.passage, d.text[s.start_char + 1:s.end_char], c.source_text, t.text "
        "FROM community_reports r, report_sources(r.community) s JOIN documents d ON d.id = s.document_id "
        "JOIN text_units t ON t.human_readable_id = s.text_unit_number "
        "LEFT JOIN covariates c ON s.table_name = 'covariates' AND c.human_readable_id = s.human_readable_id"
    ).fetchall()
    assert all(passage == in_document for _, passage, in_document, *_ in rows)
    assert all(passage == quoted for table, passage, _, quoted, _ in rows if table == "covariates")
    for table in ("entities", "relationships"):
        quoted = [passage != unit for found, passage, *_, unit in rows if found == table]
        assert sum(quoted) > 0.7 * len(quoted) > 0, table


OF_AN_ENTITY = ["neighbors({})", "history_of({})", "path_between({}, 'Daniel Gooch')"]


@pytest.mark.parametrize("macro", [*OF_AN_ENTITY, "path_between('Daniel Gooch', {})", "entities_called({})"])
def test_a_name_of_two_entities_is_an_error_that_lists_both(index, macro):
    ((name, one, other), *_) = index.execute(
        "SELECT a.alias_key, min(e.human_readable_id), max(e.human_readable_id) "
        "FROM entity_aliases a JOIN entities e ON e.title_key IN (a.alias_key, a.title_key) "
        "GROUP BY 1 HAVING count(DISTINCT e.human_readable_id) = 2 ORDER BY 1"
    ).fetchall()
    with pytest.raises(duckdb.Error, match=rf"{name} may be any of 2 entities: .*number {one}\).*number {other}\)"):
        index.execute(f"FROM {macro.format(repr(name))}")


@pytest.mark.parametrize("macro", OF_AN_ENTITY)
def test_an_entity_is_called_by_its_number_too(index, titles, macro):
    by_title, by_number = (
        index.execute(f"FROM {macro.format(value)}").fetchall()
        for value in ("'Great Eastern'", titles["Great Eastern"])
    )
    assert by_title == by_number != []


ODD_TITLES = [
    *("  The “Great  Eastern”'s ", "the *Great Eastern*", "**Bold** and *it*", "A*", "a * b", "***", "*Great*’s"),
    *("`kubectl`", "_emphasis_", "a_b", "__init__", "__x", "_", ".NET", "Mr. O'Neil's", "McDonald’s", "'s", "“Q”’s"),
    *("10⁶", "E = mc²", "x²", "H₂O", "①", "µ", "Ω", "ΟΔΥΣΣΕΥΣ", "Straße", "ẞ", "İzmir", "ＡＢＣ", "ｶﾅ", "e\u0301clair"),
    *(
        "Great\u00ad Eastern",
        "\u200bZero\u200bwidth",
        "a\u00a0b",
        "a\u3000b",
        "\u2028x",
        "a\tb\n c",
        "«Aurora»",
        "„Bremen“",
    ),
]


def test_titles_are_normalized_as_in_python(index):
    name = "function_name LIKE 'put_this_index_on_the_search_path%title_key'"
    ((macro,),) = index.execute(f"SELECT DISTINCT function_name FROM duckdb_functions() WHERE {name}").fetchall()
    keys = [index.execute(f"SELECT search.{macro}(?)", [title]).fetchall()[0][0] for title in ODD_TITLES]
    assert keys == [title_key(title) for title in ODD_TITLES]
