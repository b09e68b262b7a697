"""Exports contain the rows of the index in other tools' formats, without dangling references."""

import igraph
import polars as pl
import pytest

from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop import exporter
from graphrag_assets.extras.interop.exporter import FORMATS, TABLES, export
from graphrag_assets.extras.interop.importer import import_index


@pytest.fixture(scope="session")
def exported(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    export("graphrag", folder, small.root / "index")
    return {name: pl.read_parquet(folder / f"{name}.parquet") for name in TABLES}


@pytest.mark.extended
def test_an_export_is_imported_again_without_a_repair(project, exported, tmp_path):
    """Export of the import, imported and exported again, is the same but for ids."""
    for name, frame in exported.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    assert import_index(project.index, tmp_path, "again").repaired == {}
    project.refresh()
    export("graphrag", tmp_path / "again", project.root / "index")
    for name, frame in exported.items():
        columns = [
            column
            for column in frame.columns
            if not column.removesuffix("s").endswith("id") or column == "human_readable_id"
        ]
        again = pl.read_parquet(tmp_path / "again" / f"{name}.parquet")
        assert again.select(columns).equals(frame.select(columns)), name


def test_graphml_opens_with_all_attributes(small, tmp_path):
    assert export("graphml", tmp_path / "graph.graphml", small.root / "index") == {"entities": 7, "relationships": 5}
    graph = igraph.Graph.Read_GraphML(str(tmp_path / "graph.graphml"))
    assert not graph.is_directed()
    valentia = graph.vs.find(title="VALENTIA")
    assert (valentia["type"], valentia["degree"], valentia["community_level_1"]) == ("GEO", 3, 3)
    assert {graph.vs[v]["title"] for v in graph.neighbors(valentia)} == {"AGAMEMNON", "GREAT EASTERN", "CYRUS FIELD"}
    assert sorted(graph.es["weight"]) == [1.0, 1.0, 2.0, 4.0, 5.0]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_failed_export_leaves_nothing_and_the_earlier_one_stays(small, tmp_path, monkeypatch, kind):
    target = tmp_path / "deep" / "export"
    export(kind, target, small.root / "index")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    if target.is_dir():
        with pytest.raises(InputError, match="is a folder with files"):
            export(kind, target, small.root / "index")
        target = tmp_path / "deep" / "second"
    write = getattr(exporter, f"_{kind}")

    def interrupted(connection, draft):
        write(connection, draft)
        raise KeyboardInterrupt

    monkeypatch.setattr(exporter, f"_{kind}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export(kind, target, small.root / "index")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["export"]
