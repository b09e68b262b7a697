"""Pictures are well-formed, small whatever is drawn, and show what they were given."""

from datetime import date, timedelta
from urllib.parse import unquote
from xml.etree import ElementTree

import polars as pl
import pytest

from graphrag_assets.pictures.charts import MOST_DAYS, community_sizes, degree_distribution, spending
from graphrag_assets.pictures.graph_map import MOST_ENTITIES, MOST_LABELS, graph_map
from graphrag_assets.pictures.svg import PALETTE, bar, document, in_markdown, text

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def graph(size: int, title: str = "Entity") -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Entities on a grid in communities of ten; each is linked to the next, and the degree falls with the number."""
    ids = [f"e{i}" for i in range(size)]
    entities = pl.DataFrame({"id": ids, "title": [f"{title} {i}" for i in range(size)], "degree": range(size, 0, -1)})
    relationships = pl.DataFrame(
        {"source_id": ids[:-1], "target_id": ids[1:], "weight": [float(i) for i in range(size - 1)]}
    )
    members = pl.DataFrame({"community": [i // 10 for i in range(size)], "level": [0] * size, "entity_id": ids})
    positions = pl.DataFrame(
        {"id": ids, "x": [i % 200 / 100 - 1 for i in range(size)], "y": [i // 200 / 100 - 1 for i in range(size)]}
    )
    return entities, relationships, members, positions


def test_what_xml_cannot_hold_is_left_out():
    parts = [text(0, 0, "a\x00\x08b\x1b \ufffe<é 𝄞\ud800>"), bar(0, 0, 1, 1, "red", "c\x01d")]
    root = ElementTree.fromstring(document(10, 10, parts))
    assert [element.text for element in root.iter() if element.text] == ["ab <é 𝄞>", "cd"]


def test_the_map_of_a_large_graph_stays_below_90_kb_and_says_what_it_leaves_out():
    svg = graph_map(*graph(20_000, "A rather long title of an entity with (brackets) & <signs>"))
    assert len(in_markdown(svg, "map")) < 90_000
    assert svg.count("h0") == MOST_ENTITIES
    assert f"{MOST_ENTITIES:,} of 20,000 entities" in texts(svg)[-1]
    assert len(texts(svg)) <= MOST_LABELS + 1


def test_the_map_names_the_largest_entities_and_gives_each_community_one_colour():
    entities, relationships, members, positions = graph(40)
    svg = graph_map(entities, relationships, members, positions)
    assert texts(svg)[0] == "Entity 0"
    colours = {colour for colour in PALETTE if f"stroke='{colour}'" in svg}
    assert len(colours) == 4


def test_labels_do_not_lie_upon_each_other():
    entities, relationships, members, positions = graph(30)
    positions = positions.with_columns(x=pl.lit(0.0), y=pl.lit(0.0))
    assert texts(graph_map(entities, relationships, members, positions))[:-1] == ["Entity 0"]


def test_an_empty_graph_is_a_picture_too():
    svg = graph_map(*(frame.clear() for frame in graph(2)))
    assert texts(svg) == ["0 of 0 entities, coloured by their communities at level 0"]
    ElementTree.fromstring(degree_distribution(pl.Series([], dtype=pl.Int64)))
    ElementTree.fromstring(community_sizes(pl.DataFrame(schema={"level": pl.Int64, "size": pl.Int64})))


def test_degrees_are_counted_between_powers_of_two():
    shown = texts(degree_distribution(pl.Series([0, 1, 1, 2, 3, 4, 4, 5, 9])))
    # title; 0: one; 1: two; 2: one; 3–4: three; 5–8: one; 9–16: one
    assert shown == [
        "9 entities by number of neighbours",
        "1",
        "0",
        "2",
        "1",
        "1",
        "2",
        "3",
        "3–4",
        "1",
        "5–8",
        "1",
        "9–16",
    ]


def test_community_sizes_have_a_panel_per_level():
    frame = pl.DataFrame({"level": [0, 0, 1], "size": [2, 4, 2]})
    shown = texts(community_sizes(frame))
    assert shown[0] == "level 0: 2 communities by number of members"
    assert "level 1: 1 communities by number of members" in shown


@pytest.mark.parametrize(("price", "unit", "total"), [(0.5, "US dollars", "$0.75"), (0.0, "tokens", "300")])
def test_spending_is_in_dollars_or_in_tokens_where_no_price_is_known(price, unit, total):
    day = date(2026, 3, 1)
    usage = pl.DataFrame(
        {"day": [day, day], "task": ["extract", "embed"], "cost_usd": [price, price / 2], "tokens": [100, 200]}
    )
    shown = texts(spending(usage))
    assert shown[0] == f"{unit} by day and task"
    assert {total, "01 Mar", "extract", "embed"} <= set(shown)


def test_only_the_last_days_are_drawn():
    days = [date(2026, 1, 1) + timedelta(n) for n in range(90)]
    usage = pl.DataFrame({"day": days, "task": "embed", "cost_usd": 1.0, "tokens": 1})
    bars = [
        bar for bar in ElementTree.fromstring(spending(usage)).iter(f"{SVG}rect") if bar.find(f"{SVG}title") is not None
    ]
    assert len(bars) == MOST_DAYS


def test_in_markdown_nothing_ends_the_link_early():
    uri = in_markdown("<svg a='(b) \"c\" #1 50% &amp;'/>", "what").removeprefix("![what](").removesuffix(")")
    assert not set(uri) & set('()<>"# &\\')
    assert unquote(uri) == "data:image/svg+xml,<svg a='(b) \"c\" #1 50% &amp;'/>"
