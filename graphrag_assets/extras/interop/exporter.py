"""Exports a publication: GraphRAG 3's tables as parquet, CSV or DuckLake, GraphML, a property graph, or reports.

An export reads one publication, so its files are consistent. It can be limited to batches and communities; lists,
degrees and frequencies then count the exported rows only.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from graphrag_assets.errors import InputError, StoreError
from graphrag_assets.extras.interop.graph_xml import write_graph
from graphrag_assets.extras.interop.neo4j_files import write_neo4j_files
from graphrag_assets.extras.interop.source import TABLES
from graphrag_assets.store.connections import attached
from graphrag_assets.store.publication_reader import CurrentPublication
from graphrag_assets.store.schema import literal

_EMBEDDINGS = {
    "text_unit": "embeddings.text_unit_text",
    "entity": "embeddings.entity_description",
    "community_report": "embeddings.community_full_content",
}
_AT_ONCE = 10_000


def export(
    kind: str, target: Path, index: Path | None = None, batches: Sequence[str] = (), communities: Sequence[int] = ()
) -> dict[str, int]:
    """Write the index, or a part of it, to `target` in a format of `FORMATS`.

    Args:
        kind: graphrag (parquet files), csv, ducklake or cypher (a folder each), graphml or reports (a file each).
        target: file or folder. It appears in one step, complete; an existing file is replaced. A DuckLake gets one
            more snapshot.
        index: an index folder or published file; default: that of the settings.
        batches: only these.
        communities: only these, with the communities inside them.

    Returns:
        rows by table, or nodes and edges.

    Raises:
        InputError: a batch or community does not exist, or the target is a folder with files.
        StoreError: nothing is published, or by another version; or DuckDB's extension for a DuckLake cannot be had.
    """
    with selected(index, batches, communities) as connection:
        if kind == "ducklake":
            return _ducklake(connection, target)
        with _draft_beside(target.absolute()) as draft:
            return FORMATS[kind](connection, draft)


@contextlib.contextmanager
def _draft_beside(target: Path) -> Iterator[Path]:
    """A draft of a file or folder, which becomes `target` at the end: a killed export leaves no mixture of two.

    Raises:
        InputError: `target` is a folder with files.
    """
    if target.is_dir() and any(target.iterdir()):
        raise InputError(
            f"{target} is a folder with files. Give a new or an empty folder, or the name of a file: an export does "
            "not mix with other files."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
        draft = Path(folder) / target.name
        yield draft
        if target.is_dir():
            target.rmdir()
        draft.replace(target)


@contextlib.contextmanager
def selected(
    index: Path | None, batches: Sequence[str], communities: Sequence[int]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with views of the index, limited to the requested batches and communities.

    v3_* are GraphRAG 3's tables, graph_* the nodes and edges of a property graph.
    """
    path = CurrentPublication(index).reader().path
    with attached(published=path) as connection:
        connection.execute("USE published")
        _check_known(connection, "batch", "operations.batch_state", batches)
        _check_known(connection, "community", "communities", communities)
        asked = {"batches": list(batches) or None, "communities": list(communities) or None}
        for statement in connection.extract_statements(_sql("select")):
            used = {name: value for name, value in asked.items() if name in statement.named_parameters}
            connection.execute(statement, used)
        connection.execute(_sql("graphrag3"))
        connection.execute(_sql("property_graph"))
        yield connection


def _sql(name: str) -> str:
    return files("graphrag_assets.extras.interop").joinpath(f"sql/{name}.sql").read_text()


def _check_known(connection: duckdb.DuckDBPyConnection, column: str, table: str, asked: Sequence[object]) -> None:
    known = {row[0] for row in connection.execute(f"SELECT {column} FROM {table}").fetchall()}
    if missing := [str(one) for one in asked if one not in known]:
        raise InputError(f"The publication has no {column} {', '.join(missing)}. See `SELECT {column} FROM {table}`.")


def _parquet(connection: duckdb.DuckDBPyConnection, target: Path) -> dict[str, int]:
    target.mkdir()
    rows = {
        name: _copy(connection, f"FROM {_table(connection, name)}", target / f"{name}.parquet", "FORMAT parquet")
        for name in TABLES
    }
    embedded = {kind for (kind,) in connection.execute("SELECT DISTINCT kind FROM v3_embeddings").fetchall()}
    for kind, name in _EMBEDDINGS.items():
        if kind not in embedded:  # nothing is, without an embedding model
            continue
        query = f"SELECT id, embedding FROM v3_embeddings WHERE kind = '{kind}'"
        rows[name] = _copy(connection, query, target / f"{name}.parquet", "FORMAT parquet")
    return rows


def _table(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    """A table as a relation. GraphRAG has no column document_date: it is left out if no document has a date."""
    undated = name == "documents" and connection.execute("SELECT count(document_date) = 0 FROM v3_documents").fetchone()
    return "(SELECT * EXCLUDE (document_date) FROM v3_documents)" if undated and undated[0] else f"v3_{name}"


def _csv(connection: duckdb.DuckDBPyConnection, target: Path) -> dict[str, int]:
    """Lists are written as JSON."""
    target.mkdir()
    rows = {}
    for name in TABLES:
        table = _table(connection, name)
        columns = connection.execute(f"DESCRIBE FROM {table}").fetchall()
        shown = ", ".join(
            f'to_json("{column}")::VARCHAR AS "{column}"' if "[]" in kind else f'"{column}"'
            for column, kind, *_ in columns
        )
        rows[name] = _copy(connection, f"SELECT {shown} FROM {table}", target / f"{name}.csv", "FORMAT csv, HEADER")
    return rows


def _ducklake(connection: duckdb.DuckDBPyConnection, target: Path) -> dict[str, int]:
    """A catalog and the Parquet files of its tables. Each export to the same folder is one more snapshot."""
    _load_ducklake(connection)
    target.mkdir(parents=True, exist_ok=True)
    catalog, data = (
        literal(f"ducklake:{target.absolute() / 'catalog.ducklake'}"),
        literal(f"{target.absolute() / 'data'}/"),
    )
    queries = {name: f"FROM {_table(connection, name)}" for name in TABLES} | {"embeddings": "FROM v3_embeddings"}
    try:
        connection.execute(f"ATTACH {catalog} AS lake (DATA_PATH {data})")
        connection.execute("BEGIN")
        for name, query in queries.items():
            connection.execute(f"CREATE OR REPLACE TABLE lake.{name} AS {query}")
        rows = {name: connection.execute(f"SELECT count(*) FROM lake.{name}").fetchall()[0][0] for name in queries}
        connection.execute("COMMIT")
    except duckdb.Error as error:
        raise StoreError(f"The DuckLake {target} cannot be written: {error}. Try another folder.") from error
    return rows


def _load_ducklake(connection: duckdb.DuckDBPyConnection) -> None:
    """Load the extension, after installing it if it is missing."""
    try:
        try:
            connection.execute("LOAD ducklake")
        except duckdb.Error:
            connection.execute("INSTALL ducklake")
            connection.execute("LOAD ducklake")
    except duckdb.Error as error:
        raise StoreError(
            f"DuckDB {duckdb.__version__} has no extension ducklake here: {str(error).partition(chr(10))[0]}. Allow "
            "the connection to extensions.duckdb.org, or install it from a file of this version: "
            "duckdb.sql(\"INSTALL 'ducklake.duckdb_extension'\"). `publications export graphrag` writes Parquet files "
            "without it."
        ) from None


def _reports(connection: duckdb.DuckDBPyConnection, target: Path) -> dict[str, int]:
    """One JSON object per line and report, with the titles of the community's members."""
    query = """
    WITH titles AS (
        SELECT m.community, list(e.title ORDER BY e.degree DESC, e.title) AS entities
        FROM kept_members m JOIN entities e ON e.human_readable_id = m.number GROUP BY ALL
    )
    SELECT r.* EXCLUDE (full_content_json), t.entities FROM v3_community_reports r JOIN titles t USING (community)
    ORDER BY r.community
    """
    return {"community_reports": _copy(connection, query, target, "FORMAT json")}


def _copy(connection: duckdb.DuckDBPyConnection, query: str, path: Path, options: str) -> int:
    ((count,),) = connection.execute(f"COPY ({query}) TO {literal(path)} ({options})").fetchall()
    return int(count)


def _graph(connection: duckdb.DuckDBPyConnection, target: Path) -> dict[str, int]:
    ((levels,),) = connection.execute("SELECT coalesce(max(level) + 1, 0) FROM communities").fetchall()
    nodes = _rows(connection, _NODES.format(communities="".join(_COMMUNITY.format(level=n) for n in range(levels))))
    write_graph(target, nodes, _rows(connection, _EDGES), levels)
    return {
        name: connection.execute(f"SELECT count(*) FROM v3_{name}").fetchall()[0][0]
        for name in ("entities", "relationships")
    }


_COMMUNITY = ", any_value(c.community) FILTER (c.level = {level}) AS community_level_{level}"
_NODES = """
SELECT e.human_readable_id AS number, e.title, e.type, e.description, v.frequency, v.degree{communities}
FROM v3_entities v JOIN entities e USING (human_readable_id)
LEFT JOIN search.entity_communities c ON c.entity = e.human_readable_id
GROUP BY ALL ORDER BY 1
"""
_EDGES = """
SELECT r.human_readable_id AS number, r.source_number AS source, r.target_number AS target, r.type, r.description,
       r.weight, v.combined_degree
FROM v3_relationships v JOIN relationships r USING (human_readable_id) ORDER BY 1
"""


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[dict[str, Any]]:
    result = connection.execute(query)
    names = [name for name, *_ in result.description or ()]
    while rows := result.fetchmany(_AT_ONCE):
        for row in rows:
            yield dict(zip(names, row, strict=True))


FORMATS: dict[str, Callable[[duckdb.DuckDBPyConnection, Path], dict[str, int]]] = {
    "graphrag": _parquet,
    "csv": _csv,
    "ducklake": _ducklake,
    "graphml": _graph,
    "cypher": write_neo4j_files,
    "reports": _reports,
}
