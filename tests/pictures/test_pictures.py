"""Pictures are well-formed, small for any input, and show the given data."""

from urllib.parse import unquote
from xml.etree import ElementTree

import polars as pl

from graphrag_assets.pictures.graph_map import MAX_ENTITIES, MAX_LABELS, graph_map, in_markdown

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


def test_map_of_a_large_graph_stays_below_90_kb_and_reports_omissions():
    svg = graph_map(*graph(20_000, "A rather long title of an entity with (brackets) & <signs>"))
    assert len(in_markdown(svg, "map")) < 90_000
    assert svg.count("h0") == MAX_ENTITIES
    assert f"{MAX_ENTITIES:,} of 20,000 entities" in texts(svg)[-1]
    assert len(texts(svg)) <= MAX_LABELS + 1


def test_in_markdown_nothing_ends_the_link_early():
    uri = in_markdown("<svg a='(b) \"c\" #1 50% &amp;'/>", "what").removeprefix("![what](").removesuffix(")")
    assert not set(uri) & set('()<>"# &\\')
    assert unquote(uri) == "data:image/svg+xml,<svg a='(b) \"c\" #1 50% &amp;'/>"
