"""`publications export neo4j`: makes a Neo4j database equal to a publication, by sending what differs.

Ids and fingerprints are read from the database and compared in DuckDB; the changed rows are sent in batches. An
interrupted export is completed by the next one.
"""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from graphrag_assets.errors import InputError, StoreError
from graphrag_assets.extras.interop import property_graph as graph
from graphrag_assets.extras.interop.exporter import published
from graphrag_assets.settings import variable

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Session

PASSWORD = "NEO4J_PASSWORD"
_PER_TRANSACTION = 1_000
_PER_INSERT = 10_000


def export_neo4j(
    uri: str,
    user: str,
    database: str | None = None,
    index: Path | None = None,
) -> dict[str, int]:
    """Make a database equal to the index; the password is in NEO4J_PASSWORD.

    What was exported before and is not in the index is deleted. Nodes, relationships and properties of
    another origin stay, but relationships end with their nodes.

    Returns:
        "sent …" and "deleted …" rows by label or type; without those that had none.

    Raises:
        InputError: the driver or the password is missing.
        StoreError: the server cannot be reached, or refuses the user or a statement.
    """
    try:
        from neo4j import GraphDatabase
        from neo4j.exceptions import DriverError, Neo4jError
    except ModuleNotFoundError:
        raise InputError("The driver of Neo4j is not installed: pip install -e '.[neo4j]'.") from None
    password = variable(PASSWORD)
    if not password:
        raise InputError(f"Set the password of {user} in the environment variable {PASSWORD}, or in .env.")
    try:
        with (
            published(index) as connection,
            GraphDatabase.driver(uri, auth=(user, password)) as driver,
            driver.session(database=database) as session,
        ):
            return _Export(connection, session).run()
    except (DriverError, Neo4jError, ValueError) as error:  # ValueError: an address that does not resolve
        raise StoreError(f"The export to {uri} failed: {error}. What was sent stays; run it again.") from error


class _Export:
    def __init__(self, connection: duckdb.DuckDBPyConnection, session: "Session") -> None:
        self._connection, self._session = connection, session
        self._counts = dict[str, int]()

    def run(self) -> dict[str, int]:
        for statement in graph.SCHEMA:
            self._session.run(statement).consume()
        deleted = [(label, self._merge_nodes(label, view)) for label, view in graph.NODES.items()]
        for edges in graph.EDGES:
            self._replace_edges(edges)
        for label, ids in deleted:  # the last, since they take their relationships with them
            self._write(f"deleted {label}", graph.delete_nodes(label), ({"id": id} for id in ids))
        return {what: count for what, count in self._counts.items() if count}

    def _merge_nodes(self, label: str, view: str) -> list[str]:
        """Send the changed nodes; returns the ids of those that are no longer there."""
        self._read_stored(graph.stored_nodes(label), "id", graph.FINGERPRINT)
        changed = self._rows(f"""
            FROM (SELECT *, {graph.FINGERPRINT_OF} AS {graph.FINGERPRINT} FROM {view} row)
            ANTI JOIN stored USING (id, {graph.FINGERPRINT})
        """)
        self._write(f"sent {label}", graph.merge_nodes(label), changed)
        return [row["id"] for row in self._rows(f"SELECT id FROM stored ANTI JOIN {view} USING (id)")]

    def _replace_edges(self, edges: graph.Edges) -> None:
        """Delete the relationships that are no longer there, and send the changed ones, type by type."""
        self._read_stored(graph.stored_edges(edges), "source", "target", "type", graph.FINGERPRINT)
        gone = f"FROM stored ANTI JOIN {edges.view} USING (source, target, type)"
        changed = f"""
            FROM (SELECT *, {graph.FINGERPRINT_OF} AS {graph.FINGERPRINT} FROM {edges.view} row) row
            ANTI JOIN stored USING (source, target, type, {graph.FINGERPRINT})
        """
        for kind in self._types(gone):
            rows = self._rows(f"SELECT source, target {gone} WHERE type = $type", kind)
            self._write(f"deleted {kind}", graph.delete_edges(edges, kind), rows)
        for kind in self._types(changed):
            rows = self._rows(f"SELECT * EXCLUDE (type) {changed} WHERE type = $type", kind)
            self._write(f"sent {kind}", graph.merge_edges(edges, kind), map(_with_properties, rows))

    def _read_stored(self, query: str, *columns: str) -> None:
        """Put what the database has into the table `stored`."""
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE stored ({', '.join(f'{column} VARCHAR' for column in columns)})"
        )
        insert = (
            f"INSERT INTO stored SELECT {', '.join(f'unnest($c{place}::VARCHAR[])' for place in range(len(columns)))}"
        )
        found = (record.values() for record in self._session.run(query))
        while rows := list(itertools.islice(found, _PER_INSERT)):
            given = {f"c{place}": list(values) for place, values in enumerate(zip(*rows, strict=True))}
            self._connection.execute(insert, given)

    def _types(self, relation: str) -> list[str]:
        return [row["type"] for row in self._rows(f"SELECT DISTINCT type {relation} ORDER BY type")]

    def _rows(self, query: str, kind: str | None = None) -> Iterator[dict[str, Any]]:
        result = self._connection.execute(query, None if kind is None else {"type": kind})
        names = [name for name, *_ in result.description or ()]
        while rows := result.fetchmany(_PER_TRANSACTION):
            yield from (dict(zip(names, row, strict=True)) for row in rows)

    def _write(self, what: str, query: str, rows: Iterable[dict[str, Any]]) -> None:
        """Send rows in transactions, which the driver repeats after a transient failure."""
        pending = iter(rows)
        while part := list(itertools.islice(pending, _PER_TRANSACTION)):
            self._session.execute_write(_run, query, part)
            self._counts[what] = self._counts.get(what, 0) + len(part)


def _run(transaction: "ManagedTransaction", query: str, rows: list[dict[str, Any]]) -> None:
    transaction.run(query, rows=rows).consume()


def _with_properties(row: dict[str, Any]) -> dict[str, Any]:
    return {"source": row.pop("source"), "target": row.pop("target"), "properties": row}
