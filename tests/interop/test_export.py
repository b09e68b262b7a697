"""Exports contain the rows of the index in other tools' formats, without dangling references."""

import igraph
import polars as pl
import pytest

from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop import exporter
from graphrag_assets.extras.interop.exporter import FORMATS, TABLES, export
from graphrag_assets.extras.interop.importer import import_index

COLUMNS = {
    "documents": "id human_readable_id title text text_unit_ids creation_date raw_data",
    "text_units": "id human_readable_id text n_tokens document_id entity_ids relationship_ids covariate_ids",
    "entities": "id human_readable_id title type description text_unit_ids frequency degree",
    "relationships": "id human_readable_id source target description weight combined_degree text_unit_ids",
    "covariates": "id human_readable_id covariate_type type description subject_id object_id status start_date "
    "end_date source_text text_unit_id",
    "communities": "id human_readable_id community level parent children title entity_ids relationship_ids "
    "text_unit_ids period size",
    "community_reports": "id human_readable_id community level parent children title summary full_content rank "
    "rating_explanation findings full_content_json period size",
}


@pytest.fixture(scope="session")
def exported(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    export("graphrag", folder, small.root / "index")
    return {name: pl.read_parquet(folder / f"{name}.parquet") for name in TABLES}


def links(frames):
    """(table, column, ids named there, ids there are) for every list and reference of GraphRAG's tables."""
    ids = {name: set(frame["id"]) for name, frame in frames.items()}
    titles = set(frames["entities"]["title"])
    numbers = set(frames["communities"]["community"])
    for name, column, known in (
        ("documents", "text_unit_ids", ids["text_units"]),
        ("text_units", "entity_ids", ids["entities"]),
        ("text_units", "relationship_ids", ids["relationships"]),
        ("text_units", "covariate_ids", ids["covariates"]),
        ("entities", "text_unit_ids", ids["text_units"]),
        ("relationships", "text_unit_ids", ids["text_units"]),
        ("communities", "entity_ids", ids["entities"]),
        ("communities", "relationship_ids", ids["relationships"]),
        ("communities", "text_unit_ids", ids["text_units"]),
        ("communities", "children", numbers),
        ("community_reports", "children", numbers),
    ):
        yield name, column, set(frames[name][column].explode().drop_nulls()), known
    for name, column, known in (
        ("text_units", "document_id", ids["documents"]),
        ("covariates", "text_unit_id", ids["text_units"]),
        ("relationships", "source", titles),
        ("relationships", "target", titles),
        ("communities", "parent", numbers | {-1}),
        ("community_reports", "community", numbers),
    ):
        yield name, column, set(frames[name][column]), known


def test_the_tables_have_graphrags_columns_and_types(exported):
    assert {name: frame.columns for name, frame in exported.items()} == {n: c.split() for n, c in COLUMNS.items()}
    assert exported["communities"].schema["children"] == pl.List(pl.Int64)
    assert exported["entities"].schema["text_unit_ids"] == pl.List(pl.String)
    fields = pl.List(pl.Struct({"explanation": pl.String, "summary": pl.String}))
    assert exported["community_reports"].schema["findings"] == fields
    assert {exported[name].schema["human_readable_id"] for name in TABLES} == {pl.Int64}


@pytest.mark.extended
def test_every_id_in_the_tables_is_that_of_a_row(exported, sample_index, tmp_path):
    export("graphrag", tmp_path / "sample", sample_index.root / "index")
    sample = {name: pl.read_parquet(tmp_path / "sample" / f"{name}.parquet") for name in TABLES}
    for frames in (exported, sample):
        found = {(name, column): named - known for name, column, named, known in links(frames) if named - known}
        assert found == {}
    assert sample["documents"].height == sample_index.sql("SELECT count(*) FROM documents")[0][0]
    assert set(sample["entities"]["title"]) == {title.upper() for title in set(sample["entities"]["title"])}


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
