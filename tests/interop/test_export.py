"""Exports contain the rows of the index in other tools' formats, without dangling references."""

import duckdb
import igraph
import pytest

from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop.exporter import FORMATS, TABLES, export
from graphrag_assets.store.publication_reader import CurrentPublication


def test_graphml_opens_with_all_attributes(small, tmp_path):
    assert export("graphml", tmp_path / "graph.graphml", small.root / "index") == {"entities": 7, "relationships": 5}
    graph = igraph.Graph.Read_GraphML(str(tmp_path / "graph.graphml"))
    assert not graph.is_directed()
    valentia = graph.vs.find(title="VALENTIA")
    assert (valentia["type"], valentia["degree"], valentia["community_level_1"]) == ("GEO", 3, 3)
    assert {graph.vs[v]["title"] for v in graph.neighbors(valentia)} == {"AGAMEMNON", "GREAT EASTERN", "CYRUS FIELD"}
    assert sorted(graph.es["weight"]) == [1.0, 1.0, 2.0, 4.0, 5.0]


def test_a_null_text_is_empty_in_graphml(imported, tmp_path):
    with duckdb.connect(str(CurrentPublication(imported.root / "index").reader().path)) as connection:
        connection.execute("UPDATE entities SET description = NULL WHERE title = 'VALENTIA'")
    export("graphml", tmp_path / "graph.graphml", imported.root / "index")
    graph = igraph.Graph.Read_GraphML(str(tmp_path / "graph.graphml"))
    assert graph.vs.find(title="VALENTIA")["description"] == ""


def test_an_export_replaces_a_file_and_mixes_with_no_other_files(small, tmp_path):
    for kind in FORMATS:
        export(kind, tmp_path / "deep" / kind, small.root / "index")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(before) == len(TABLES) + 1
    export("graphml", tmp_path / "deep" / "graphml", small.root / "index")
    with pytest.raises(InputError, match="is a folder with files"):
        export("graphrag", tmp_path / "deep" / "graphrag", small.root / "index")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
