"""A graph alone is enough: entities and relationships become an index with texts, communities and reports."""

import igraph
import polars as pl
import pytest

from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop.exporter import export
from graphrag_assets.extras.interop.graph_files import read_graph
from graphrag_assets.extras.interop.importer import import_index
from graphrag_assets.query import GraphRAG

ENTITIES = {
    "title": ["Ada", "Bob", "Cleo"],
    "type": ["person", "person", None],
    "description": ["Ada builds bridges.", None, "Cleo paints."],
}
TIES = {
    "source": ["Ada", "Bob", "Ada"],
    "target": ["Bob", "Ada", "Dan"],
    "description": ["Ada taught Bob.", "Bob thanked Ada.", "Ada met Dan."],
    "weight": [2.0, 3.0, 1.0],
}
WEIGHTS = {("Ada", "Bob"): 5.0, ("Ada", "Dan"): 1.0}


def write_parquet(folder):
    pl.DataFrame(ENTITIES).write_parquet(folder / "entities.parquet")
    pl.DataFrame(TIES).write_parquet(folder / "relationships.parquet")
    return folder


def write_csv(folder):
    pl.DataFrame(ENTITIES).rename({"title": "name"}).write_csv(folder / "entities.csv")
    pl.DataFrame(TIES).write_csv(folder / "relationships.csv")
    return folder


def write_graphml(folder):
    graph = igraph.Graph(directed=True)
    graph.add_vertices(4, {"label": ["Ada", "Bob", "Cleo", "Dan"], "kind": ["person", "person", "", ""]})
    graph.add_edges([(0, 1), (1, 0), (0, 3)], {"weight": TIES["weight"], "description": TIES["description"]})
    graph.vs["description"] = [*(said or "" for said in ENTITIES["description"]), ""]
    graph.write_graphml(str(folder / "graph.graphml"))
    return folder / "graph.graphml"


def write_relationships_alone(folder):
    pl.DataFrame(TIES).write_csv(folder / "relationships.csv")
    return folder


@pytest.mark.long
@pytest.mark.parametrize("write", [write_parquet, write_csv, write_graphml])
def test_a_graph_becomes_an_index(project, tmp_path, write):
    folder = tmp_path / "graph"
    folder.mkdir()
    import_index(project.index, write(folder))
    assert {(s, t): w for s, t, w in project.sql("SELECT source, target, weight FROM relationships")} == WEIGHTS
    said = dict(project.sql("SELECT title, description FROM entities"))
    # An entity without a row gets the descriptions of its relationships.
    assert said == {
        "Ada": "Ada builds bridges.",
        "Bob": "Ada taught Bob. Bob thanked Ada.",
        "Cleo": "Cleo paints.",
        "Dan": "Ada met Dan.",
    }
    ((text,),) = project.sql("SELECT text FROM documents")
    assert "Ada (PERSON): Ada builds bridges.\nAda – Bob: Ada taught Bob. Bob thanked Ada.\nAda – Dan" in text
    assert project.sql(
        "SELECT count(*) FROM communities c LEFT JOIN community_reports r USING (community) "
        "WHERE c.size > 1 AND r.id IS NULL"
    ) == [(0,)]
    rag = GraphRAG(project.root / "index")
    assert "bridges" in rag.basic("Who builds bridges?").answer
    assert "Bob" in rag.local("Whom did Ada teach?").answer


@pytest.mark.extended
def test_relationships_alone_are_a_graph(project, tmp_path):
    write_relationships_alone(tmp_path)
    import_index(project.index, tmp_path, "ties")
    assert {title for (title,) in project.sql("SELECT title FROM entities")} == {"Ada", "Bob", "Dan"}


def test_nodes_take_the_first_attribute_with_a_value(tmp_path):
    keys = "".join(
        f'<key id="{name}" for="{of}" attr.name="{name}" attr.type="{kind}"/>'
        for name, of, kind in (
            ("title", "node", "string"),
            ("label", "node", "string"),
            ("kind", "node", "double"),
            ("label", "edge", "string"),
        )
    ).replace('id="label" for="edge"', 'id="edge_label" for="edge"')
    nodes = (
        '<node id="n0"><data key="title">Ada</data><data key="kind">1.5</data></node>'
        '<node id="n1"><data key="label">Bob</data></node><node id="n2"/>'
    )
    edges = '<edge source="n0" target="n1"><data key="edge_label">taught</data></edge><edge source="n1" target="n2"/>'
    space = "http://graphml.graphdrawing.org/xmlns"
    (tmp_path / "g.graphml").write_text(
        f'<graphml xmlns="{space}">{keys}<graph edgedefault="directed">{nodes}{edges}</graph></graphml>'
    )
    tables = read_graph(tmp_path / "g.graphml")
    assert tables["entities"]["title"].to_list() == ["Ada", "Bob", "n2"]
    assert tables["entities"]["type"].to_list() == ["1.5", None, None]
    assert tables["relationships"]["description"].to_list() == ["taught", None]
    assert tables["relationships"].select("source", "target").rows() == [("Ada", "Bob"), ("Bob", "n2")]


@pytest.mark.long
def test_an_exported_graph_is_imported_again(project, small, tmp_path):
    export("graphml", tmp_path / "small.graphml", small.root / "index")
    import_index(project.index, tmp_path / "small.graphml")
    entities = "SELECT title, type, description, degree FROM entities ORDER BY title"
    assert project.sql(entities) == small.sql(entities)
    weights = (
        "SELECT least(source, target), greatest(source, target), weight, description FROM relationships ORDER BY ALL"
    )
    assert project.sql(weights) == small.sql(weights)


def test_unreadable_sources_are_reported(project, tmp_path):
    with pytest.raises(InputError, match="has neither entities nor relationships"):
        import_index(project.index, tmp_path)
    (tmp_path / "entities.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"entities.parquet cannot be read: .*Export or copy it again"):
        import_index(project.index, tmp_path)
    (tmp_path / "a.graphml").write_text("<no>")
    with pytest.raises(InputError, match="cannot be read as GraphML"):
        import_index(project.index, tmp_path / "a.graphml")
    with pytest.raises(InputError, match=r"neither a folder with an index nor a .graphml file"):
        import_index(project.index, tmp_path / "nowhere.txt")
