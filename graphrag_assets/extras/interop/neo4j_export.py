"""`publications export neo4j`: makes a Neo4j database equal to a publication.

Every node and relationship is merged, and gets the id of this export. What then has the id of an earlier one is not in
the index any more, and is deleted; what a person added has none, and stays. An interrupted export is completed by the
next one.
"""

import itertools
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from graphrag_assets.errors import InputError, StoreError
from graphrag_assets.extras.interop.exporter import published
from graphrag_assets.settings import variable

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Session

PASSWORD = "NEO4J_PASSWORD"
EXPORT = "export"
"""The property that has the id of the export."""
NODES = {
    "Document": "title, source, batch, document_date, language, n_tokens FROM documents",
    "TextUnit": "text, context, ordinal, start_char, end_char, n_tokens FROM text_units",
    "Entity": "title, type, description, frequency, degree FROM entities",
    "Claim": "type, status, subject_id AS subject, object_id AS object, description, "
    "stated_on, valid_from, valid_until FROM covariates",
    "Community": "level, title, size, period FROM communities",
    "Report": "title, summary, full_content, rank, model FROM community_reports",
}
"""By label, the properties of nodes beside their id and number, the one in citations: Entities (5)."""
_ABOUT = "covariates JOIN entities e ON e.human_readable_id IN (subject_number, object_number)"
EDGES = (
    ("TextUnit", "Document", "SELECT id AS source, document_id AS target, 'PART_OF' AS type FROM text_units"),
    ("TextUnit", "Entity", "SELECT id AS source, unnest(entity_ids) AS target, 'MENTIONS' AS type FROM text_units"),
    ("Claim", "TextUnit", "SELECT id AS source, text_unit_id AS target, 'STATED_IN' AS type FROM covariates"),
    ("Claim", "Entity", f"SELECT DISTINCT covariates.id AS source, e.id AS target, 'ABOUT' AS type FROM {_ABOUT}"),
    (
        "Entity",
        "Community",
        "SELECT unnest(entity_ids) AS source, id AS target, 'IN_COMMUNITY' AS type FROM communities",
    ),
    (
        *("Community", "Community"),
        "SELECT c.id AS source, p.id AS target, 'PARENT' AS type "
        "FROM communities c JOIN communities p ON p.community = c.parent",
    ),
    (
        *("Report", "Community"),
        "SELECT r.id AS source, c.id AS target, 'REPORTS_ON' AS type "
        "FROM community_reports r JOIN communities c USING (community)",
    ),
    (
        *("Entity", "Entity"),
        "SELECT source_id AS source, target_id AS target, coalesce(nullif(type, ''), 'RELATED') AS type, id, "
        "human_readable_id AS number, description, weight, relations, stated_on, valid_from, valid_until "
        "FROM relationships",
    ),
)
"""Labels of both ends, and the query of relationships between them: ids of source and target, type, properties."""
_PER_TRANSACTION = 1_000
_SCHEMA = (
    *(f"CREATE CONSTRAINT {label.lower()}_id IF NOT EXISTS FOR (n:{label}) REQUIRE n.id IS UNIQUE" for label in NODES),
    "CREATE INDEX entity_title IF NOT EXISTS FOR (n:Entity) ON (n.title)",
    "CREATE INDEX document_source IF NOT EXISTS FOR (n:Document) ON (n.source)",
)


def export_neo4j(uri: str, user: str, database: str | None = None, index: Path | None = None) -> dict[str, int]:
    """Make a database equal to the index; the password is in NEO4J_PASSWORD.

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
        self._id, self._counts = uuid.uuid4().hex, dict[str, int]()

    def run(self) -> dict[str, int]:
        for statement in _SCHEMA:
            self._session.run(statement).consume()
        for label, properties in NODES.items():
            merge = f"UNWIND $rows AS row MERGE (n:{label} {{id: row.id}}) SET n += row, n.{EXPORT} = $id"
            self._send(label, merge, self._rows(f"SELECT id, human_readable_id AS number, {properties}"))
        for start, end, query in EDGES:
            for (kind,) in self._connection.execute(f"SELECT DISTINCT type FROM ({query}) ORDER BY 1").fetchall():
                self._send_edges(start, end, query, kind)
            self._delete(f"MATCH (:{start})-[x]->(:{end})", "DELETE x", f"{start} → {end}")
        for label in NODES:
            self._delete(f"MATCH (x:{label})", "DETACH DELETE x", label)
        return {what: count for what, count in self._counts.items() if count}

    def _send_edges(self, start: str, end: str, query: str, kind: str) -> None:
        """Send the relationships of a type, which a model may have named."""
        name = kind.replace("`", "``")
        merge = (
            f"UNWIND $rows AS row MATCH (a:{start} {{id: row.source}}) MATCH (b:{end} {{id: row.target}}) "
            f"MERGE (a)-[r:`{name}`]->(b) SET r += row.properties, r.{EXPORT} = $id"
        )
        rows = self._rows(f"SELECT * EXCLUDE (type) FROM ({query}) WHERE type = $type", {"type": kind})
        ends = ({"source": row.pop("source"), "target": row.pop("target"), "properties": row} for row in rows)
        self._send(kind, merge, ends)

    def _rows(self, query: str, parameters: dict[str, str] | None = None) -> Iterator[dict[str, Any]]:
        result = self._connection.execute(query, parameters)
        names = [name for name, *_ in result.description or ()]
        while rows := result.fetchmany(_PER_TRANSACTION):
            yield from (dict(zip(names, row, strict=True)) for row in rows)

    def _send(self, what: str, query: str, rows: Iterable[dict[str, Any]]) -> None:
        """Send rows in transactions, which the driver repeats after a transient failure."""
        pending = iter(rows)
        while part := list(itertools.islice(pending, _PER_TRANSACTION)):
            self._session.execute_write(_run, query, {"rows": part, "id": self._id})
            self._count(f"sent {what}", len(part))

    def _delete(self, match: str, delete: str, what: str) -> None:
        """Delete what an earlier export has sent and this one has not."""
        some = f"{match} WHERE x.{EXPORT} <> $id WITH x LIMIT {_PER_TRANSACTION} {delete} RETURN count(*)"
        while n := self._session.execute_write(_run, some, {"id": self._id}):
            self._count(f"deleted {what}", n)

    def _count(self, what: str, n: int) -> None:
        self._counts[what] = self._counts.get(what, 0) + n


def _run(transaction: "ManagedTransaction", query: str, parameters: dict[str, Any]) -> int:
    """Run a statement; return its number, if it has one."""
    record = transaction.run(query, parameters).single(strict=False)
    return int(record[0]) if record else 0
