"""`publications export neo4j`: against ArcadeDB, which speaks Bolt and Cypher, with Neo4j's driver."""

import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import neo4j
import pytest

from graphrag_assets.errors import StoreError
from graphrag_assets.extras.interop import neo4j_export as graph
from graphrag_assets.extras.interop.exporter import published
from graphrag_assets.extras.interop.neo4j_export import export_neo4j

from ..conftest import Project
from ..environments import environment_with
from ..test_docs import blocks
from .test_cli import run

SERVER = Path(__file__).with_name("arcadedb.py")
PASSWORD = "of-the-tests"


@pytest.fixture(scope="module")
def server(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with an empty database."""
    python = environment_with(shared_folder / "arcadedb", "arcadedb-embedded")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("arcadedb")
    command = [str(python), str(SERVER), str(folder), str(port)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **pipes, text=True, cwd=folder) as process:
        assert process.stdout
        assert any(line == "ready\n" for line in process.stdout)
        yield f"bolt://127.0.0.1:{port}"
        process.communicate("")


@pytest.fixture
def database(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[neo4j.Session]:
    monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)
    with neo4j.GraphDatabase.driver(server, auth=("root", PASSWORD)) as driver, driver.session(database="graph") as one:
        one.run("MATCH (n) DETACH DELETE n").consume()
        yield one


def in_database(session: neo4j.Session) -> tuple[set[tuple], set[tuple]]:
    """All nodes and relationships with all their properties."""

    def plain(properties: dict[str, Any]) -> tuple:
        pairs = ((k, v.to_native() if hasattr(v, "to_native") else v) for k, v in properties.items())
        return tuple(sorted(pair for pair in pairs if pair[0] != graph.EXPORT))

    nodes = {(label, plain(n)) for label, n in session.run("MATCH (n) RETURN labels(n)[0], properties(n)").values()}
    query = "MATCH (a)-[r]->(b) RETURN labels(a)[0], a.id, type(r), labels(b)[0], b.id, properties(r)"
    return nodes, {(*ends, plain(properties)) for *ends, properties in session.run(query).values()}


def in_publication(index: Path) -> tuple[set[tuple], set[tuple]]:
    """The same of the publication."""
    nodes, edges = set(), set()
    with published(index) as connection:
        for label, properties in graph.NODES.items():
            for row in rows_of(connection, f"SELECT id, human_readable_id AS number, {properties}"):
                nodes.add((label, tuple(sorted(row.items()))))
        for start, end, query in graph.EDGES:
            for row in rows_of(connection, query):
                ends = (start, row.pop("source"), row.pop("type"), end, row.pop("target"))
                edges.add((*ends, tuple(sorted(row.items()))))
    return nodes, edges


def rows_of(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    """The rows of a query, without missing values, which are no properties."""
    found = connection.execute(query)
    names = [name for name, *_ in found.description]
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None} for row in found.fetchall()
    ]


@pytest.mark.extended
def test_a_database_is_made_equal_and_what_a_person_added_stays(
    server: str, database: neo4j.Session, start_with: Any
) -> None:
    documents = {
        "a/one.txt": "Cyrus Field met Charles Bright in London on 5 August 1858.",
        "a/two.txt": "Samuel Canning taught Cyrus Field telegraphy.",
    }
    project = start_with(documents)
    index = project.root / "index"
    options = ("--uri", server, "--user", "root", "--database", "graph", "--index", index)
    printed = run("publications", "export", "neo4j", *options)
    ((n_entities,),) = project.sql("SELECT count(*) FROM entities")
    assert f"{n_entities} sent Entity" in printed
    assert in_database(database) == in_publication(index)
    (query,) = blocks("docs/exchange.md", "cypher")
    assert database.run(query).values() == [["one", documents["a/one.txt"]], ["two", documents["a/two.txt"]]]
    database.run(
        "MATCH (e:Entity {title: 'Samuel Canning'}) SET e.note = 'mine' CREATE (e)-[:SEEN_IN]->(:Film {id: 'f'})"
    ).consume()
    project.write("a/one.txt", "Cyrus Field wrote to Michael Faraday.")
    project.index_all()
    changes = export_neo4j(server, "root", "graph", index)
    assert changes["deleted TextUnit"] == 1
    mine = database.run("MATCH (e:Entity)-[:SEEN_IN]->(f:Film) RETURN e.title, e.note, f.id").values()
    assert mine == [["Samuel Canning", "mine", "f"]]
    database.run("MATCH (f:Film) DETACH DELETE f").consume()
    database.run("MATCH (e:Entity) REMOVE e.note").consume()
    assert in_database(database) == in_publication(index)


@pytest.mark.parametrize("uri", ["neo4j://localhost:notaport", "bolt://[::1", "localhost"])
def test_an_address_that_is_none_is_a_sentence(
    uri: str, sample_index: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEO4J_PASSWORD", "password")
    with pytest.raises(StoreError, match=f"export to {re.escape(uri)} failed"):
        export_neo4j(uri, "neo4j", index=sample_index.root / "index")
