"""Exports contain the rows of the index in other tools' formats; an export of a part has no dangling references."""

import csv
import json
import os
import subprocess
import sys

import duckdb
import igraph
import polars as pl
import pytest

from graphrag_assets.errors import InputError, StoreError
from graphrag_assets.extras.interop.exporter import FORMATS, TABLES, export
from graphrag_assets.extras.interop.importer import import_index
from tests.interop.small_index import ENTITIES, FIRST, RELATIONSHIPS, entity_id, relationship_id, tables

COLUMNS = {
    "documents": ["id", "human_readable_id", "title", "text", "text_unit_ids", "creation_date", "raw_data"],
    "text_units": [
        "id",
        "human_readable_id",
        "text",
        "n_tokens",
        "document_id",
        "entity_ids",
        "relationship_ids",
        "covariate_ids",
    ],
    "entities": [
        "id",
        "human_readable_id",
        "title",
        "type",
        "description",
        "text_unit_ids",
        "frequency",
        "degree",
    ],
    "relationships": [
        "id",
        "human_readable_id",
        "source",
        "target",
        "description",
        "weight",
        "combined_degree",
        "text_unit_ids",
    ],
    "covariates": [
        "id",
        "human_readable_id",
        "covariate_type",
        "type",
        "description",
        "subject_id",
        "object_id",
        "status",
        "start_date",
        "end_date",
        "source_text",
        "text_unit_id",
    ],
    "communities": [
        "id",
        "human_readable_id",
        "community",
        "level",
        "parent",
        "children",
        "title",
        "entity_ids",
        "relationship_ids",
        "text_unit_ids",
        "period",
        "size",
    ],
    "community_reports": [
        "id",
        "human_readable_id",
        "community",
        "level",
        "parent",
        "children",
        "title",
        "summary",
        "full_content",
        "rank",
        "rating_explanation",
        "findings",
        "full_content_json",
        "period",
        "size",
    ],
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
    yield "text_units", "document_id", set(frames["text_units"]["document_id"]), ids["documents"]
    yield "covariates", "text_unit_id", set(frames["covariates"]["text_unit_id"]), ids["text_units"]
    yield "relationships", "source", set(frames["relationships"]["source"]), titles
    yield "relationships", "target", set(frames["relationships"]["target"]), titles
    yield "communities", "parent", set(frames["communities"]["parent"]), numbers | {-1}
    yield "community_reports", "community", set(frames["community_reports"]["community"]), numbers


def dangling(frames):
    return {(name, column): named - known for name, column, named, known in links(frames) if named - known}


@pytest.mark.long
def test_the_tables_have_graphrags_columns_and_types(exported):
    assert {name: frame.columns for name, frame in exported.items()} == COLUMNS
    assert exported["communities"].schema["children"] == pl.List(pl.Int64)
    assert exported["entities"].schema["text_unit_ids"] == pl.List(pl.String)
    fields = pl.List(pl.Struct({"explanation": pl.String, "summary": pl.String}))
    assert exported["community_reports"].schema["findings"] == fields
    assert {exported[name].schema["human_readable_id"] for name in TABLES} == {pl.Int64}


@pytest.mark.extended
def test_imported_rows_are_exported_under_their_original_ids(exported):
    """By hand: what comes back of each table of the small index, and what its repairs have changed."""
    given = tables()
    entities = {row["id"]: row for row in exported["entities"].iter_rows(named=True)}
    for number, (title, kind, description, units) in list(enumerate(ENTITIES))[:5]:
        row = entities[entity_id(number)]
        expected = (title, kind, [unit for unit in units if unit != "gone"])
        assert (row["title"], row["type"], row["text_unit_ids"]) == expected
        assert row["description"].startswith(description)
    assert entities[entity_id(2)]["degree"] == 3  # Valentia: Agamemnon, Great Eastern, Cyrus Field
    relationships = {row["id"]: row for row in exported["relationships"].iter_rows(named=True)}
    assert set(relationships) == {relationship_id(number) for number in (0, 2, 3, 4, 5)}
    for number in (2, 3, 4):
        source, target, description, weight, units = RELATIONSHIPS[number]
        row = relationships[relationship_id(number)]
        found = tuple(row[name] for name in ("source", "target", "description", "weight", "text_unit_ids"))
        assert found == (source, target, description, weight, units)
    claims = exported["covariates"]
    pairs = claims.join(given["covariates"], on="id", suffix="_given").sort("id")
    for column in ("start_date", "end_date", "subject_id", "object_id", "description", "text_unit_id"):
        assert pairs[column].to_list() == pairs[f"{column}_given"].to_list(), column
    assert exported["text_units"].filter(pl.col("id") == "u0")["text"].item() == FIRST
    reports = exported["community_reports"].join(given["community_reports"], on="id", suffix="_given")
    assert sorted(reports["community"]) == [0, 1, 2]
    same = reports.filter(pl.col("community") > 0)
    for column in ("title", "summary", "full_content", "rank", "rating_explanation", "findings"):
        assert same[column].to_list() == same[f"{column}_given"].to_list(), column


def test_every_id_in_the_tables_is_that_of_a_row(exported):
    assert dangling(exported) == {}


@pytest.mark.extended
def test_an_export_is_imported_again_without_a_repair(project, exported, tmp_path):
    """Export of the import, imported and exported again, is the same in every column."""
    for name, frame in exported.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    again = import_index(project.index, tmp_path, "again")
    assert again.counts.filter(pl.col("step") == "repaired").is_empty()
    export("graphrag", tmp_path / "again", project.root / "index")
    for name, frame in exported.items():
        assert pl.read_parquet(tmp_path / "again" / f"{name}.parquet").equals(frame), name


def test_a_batch_is_exported_as_an_index_of_its_own(sample_index, tmp_path):
    export("graphrag", tmp_path, sample_index.root / "index", batches=["4-great-eastern"])
    frames = {name: pl.read_parquet(tmp_path / f"{name}.parquet") for name in TABLES}
    expected = sample_index.sql("SELECT count(*) FROM documents WHERE batch = '4-great-eastern'")
    assert [(frames["documents"].height,)] == expected
    assert dangling(frames) == {}
    assert frames["entities"].filter(pl.col("frequency") != pl.col("text_unit_ids").list.len()).is_empty()
    names = pl.concat([frames["relationships"].select(title=end) for end in ("source", "target")])
    degrees = dict(names.group_by("title").len().iter_rows())
    assert all(degrees.get(title, 0) == degree for title, degree in frames["entities"].select("title", "degree").rows())


def test_a_community_is_exported_with_those_inside_it(sample_index, tmp_path):
    community, size, children = sample_index.sql(
        "SELECT community, size, children FROM communities WHERE len(children) > 0 ORDER BY size DESC, community LIMIT 1"
    )[0]
    export("graphrag", tmp_path, sample_index.root / "index", communities=[community])
    frames = {name: pl.read_parquet(tmp_path / f"{name}.parquet") for name in TABLES}
    assert frames["entities"].height == size
    assert {community, *children} <= set(frames["communities"]["community"])
    assert frames["community_reports"].height == frames["communities"].height
    assert dangling(frames) == {}


def test_csv_has_the_same_rows_with_lists_as_json(small, exported, tmp_path):
    export("csv", tmp_path, small.root / "index")
    for name, frame in exported.items():
        with (tmp_path / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["id"] for row in rows] == frame["id"].to_list()
        assert list(rows[0]) == frame.columns
    with (tmp_path / "entities.csv").open(encoding="utf-8", newline="") as file:
        lists = [json.loads(row["text_unit_ids"]) for row in csv.DictReader(file)]
    assert lists == exported["entities"]["text_unit_ids"].to_list()


def test_a_ducklake_needs_an_extension_and_the_error_says_where_from(tmp_path):
    with duckdb.connect(config={"extension_directory": str(tmp_path)}) as connection:
        connection.execute(f"SET custom_extension_repository = '{tmp_path / 'missing'}'")
        with pytest.raises(StoreError, match=r"has no extension ducklake here: .*INSTALL 'ducklake.duckdb_extension'"):
            FORMATS["ducklake"](connection, tmp_path / "lake")


@pytest.mark.long
def test_a_ducklake_has_the_rows_of_the_export_and_a_snapshot_per_export(sample_index, tmp_path):
    site, home = tmp_path / "site", tmp_path / "home"
    wanted = ["duckdb==1.5.5", "duckdb-extension-ducklake==1.5.5"]  # the newest release that has the extension
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), *wanted]
    if subprocess.run(install, capture_output=True).returncode:
        pytest.skip(f"{' and '.join(wanted)} cannot be installed from the package index")
    (extension,) = site.glob("duckdb_extension_ducklake/extensions/*/ducklake.duckdb_extension")
    home.mkdir()

    def run(*command: str) -> str:
        environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(site)}
        return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True).stdout

    run("-c", f"import duckdb; duckdb.sql(\"INSTALL '{extension}'\")")
    lake, index = tmp_path / "lake", str(sample_index.root / "index")
    written = [
        run("-m", "graphrag_assets", "publications", "export", "ducklake", str(lake), "--index", index)
        for _ in range(2)
    ]
    export("graphrag", tmp_path / "parquet", sample_index.root / "index")
    query = f"""
import duckdb
lake = duckdb.connect()
lake.sql("LOAD ducklake; ATTACH 'ducklake:{lake}/catalog.ducklake' AS lake (READ_ONLY)")
for name in {TABLES!r}:
    parquet = f"'{tmp_path}/parquet/{{name}}.parquet'"
    for one, other in ((f"lake.{{name}}", parquet), (parquet, f"lake.{{name}}")):
        assert not lake.sql(f"FROM {{one}} EXCEPT ALL FROM {{other}}").fetchall(), name
print(lake.sql("SELECT count(*) FROM lake.snapshots()").fetchone()[0])
"""
    assert run("-c", query) == "3\n", written  # an empty one, and one per export


def test_reports_are_lines_of_json(small, exported, tmp_path):
    export("reports", tmp_path / "reports.jsonl", small.root / "index")
    lines = [json.loads(line) for line in (tmp_path / "reports.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["full_content"] for line in lines] == exported["community_reports"]["full_content"].to_list()
    assert lines[1]["entities"] == ["GREAT EASTERN", "DANIEL GOOCH"]
    assert lines[1]["findings"][0]["summary"] == "What it is about"


def test_graphml_opens_with_all_attributes(small, tmp_path):
    assert export("graphml", tmp_path / "graph.graphml", small.root / "index") == {"entities": 7, "relationships": 5}
    graph = igraph.Graph.Read_GraphML(str(tmp_path / "graph.graphml"))
    assert not graph.is_directed()
    valentia = graph.vs.find(title="VALENTIA")
    assert (valentia["type"], valentia["degree"], valentia["community_level_1"]) == ("GEO", 3, 3)
    assert {graph.vs[v]["title"] for v in graph.neighbors(valentia)} == {"AGAMEMNON", "GREAT EASTERN", "CYRUS FIELD"}
    assert sorted(graph.es["weight"]) == [1.0, 1.0, 2.0, 4.0, 5.0]


def test_characters_that_xml_cannot_hold_are_left_out(tmp_path):
    from graphrag_assets.extras.interop.graph_xml import write_graph

    first = {"number": 0, "title": 'A "<b>"\x00\x0b', "type": "T", "description": "d\ud800&"}
    second = {"number": 1, "title": "B", "type": "", "description": ""}
    more = {"frequency": 1, "degree": 1}
    nodes = [first | more | {"community_level_0": 3}, second | more | {"community_level_0": None}]
    edge = {"number": 0, "source": 0, "target": 1, "type": "", "description": "x < y\x1f", "weight": 1.5}
    edges = [edge | {"combined_degree": 2}]
    write_graph(tmp_path / "g.graphml", nodes, edges, 1)
    assert igraph.Graph.Read_GraphML(str(tmp_path / "g.graphml")).vs["title"] == ['A "<b>"', "B"]


def test_unknown_batch_or_community_is_reported(small, tmp_path):
    with pytest.raises(InputError, match="no batch nowhere"):
        export("graphrag", tmp_path, small.root / "index", batches=["nowhere"])
    with pytest.raises(InputError, match="no community 99"):
        export("reports", tmp_path / "r.jsonl", small.root / "index", communities=[99])


@pytest.mark.parametrize("kind", ["graphrag", "csv", "reports", "graphml"])
def test_a_failed_export_leaves_nothing_and_the_earlier_one_stays(small, tmp_path, monkeypatch, kind):
    target = tmp_path / "deep" / "export"
    export(kind, target, small.root / "index")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    if target.is_dir():
        with pytest.raises(InputError, match="is a folder with files"):
            export(kind, target, small.root / "index")
        target = tmp_path / "deep" / "second"

    def interrupted(connection, draft):
        exporter_of[kind](connection, draft)
        raise KeyboardInterrupt

    exporter_of = dict(FORMATS)
    monkeypatch.setitem(FORMATS, kind, interrupted)
    with pytest.raises(KeyboardInterrupt):
        export(kind, target, small.root / "index")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["export"]


def test_a_file_is_not_written_over_a_folder(small, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is a folder with files"):
        export("graphml", tmp_path, small.root / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
