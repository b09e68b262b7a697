"""The chart of recall over publications."""

from xml.etree import ElementTree

import polars as pl

from graphrag_assets.pictures.recall_chart import recall_chart


def test_each_method_has_a_line_with_its_last_value():
    rows = pl.DataFrame(
        {
            "publication": [1, 2, 3, 1, 2],
            "method": ["local"] * 3 + ["<BM25>"] * 2,
            "mean": [0.5, 0.75, 1.0, 0.5, 0.4],
        }
    )
    picture = ElementTree.fromstring(recall_chart(rows, "recall@5"))
    texts = [element.text for element in picture.iter() if element.tag.endswith("text")]
    assert {"recall@5", "local 100.0", "<BM25> 40.0", "1", "2", "3"} <= set(texts)
    lines = [element.get("d") for element in picture.iter() if element.get("fill") == "none"]
    assert sorted(line.count("L") for line in lines) == [1, 2]


def test_one_publication_and_none_are_drawn_too():
    one = pl.DataFrame({"publication": [7], "method": ["local"], "mean": [0.5]})
    assert "local 50.0" in recall_chart(one, "recall")
    ElementTree.fromstring(recall_chart(one.clear(), "recall"))
