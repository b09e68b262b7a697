"""A publication as a property graph: labels, the ends of relationships, and the Cypher that keeps a database equal.

Every node and relationship has a `fingerprint` of its other properties. What has one in a database was exported; what a
person added has none, and stays.
"""

from typing import NamedTuple

FINGERPRINT = "fingerprint"
FINGERPRINT_OF = "md5(to_json(row)::VARCHAR)"
"""SQL of the fingerprint of a row."""
NODES = {
    "Document": "graph_documents",
    "TextUnit": "graph_text_units",
    "Entity": "graph_entities",
    "Claim": "graph_claims",
    "Community": "graph_communities",
    "Report": "graph_reports",
}
"""The view (sql/property_graph.sql) of each label."""


class Edges(NamedTuple):
    """A view of relationships, and the labels of their ends."""

    view: str
    start: str
    end: str


EDGES = (
    Edges("graph_relationships", "Entity", "Entity"),
    Edges("graph_unit_documents", "TextUnit", "Document"),
    Edges("graph_mentions", "TextUnit", "Entity"),
    Edges("graph_claim_units", "Claim", "TextUnit"),
    Edges("graph_claim_entities", "Claim", "Entity"),
    Edges("graph_members", "Entity", "Community"),
    Edges("graph_parents", "Community", "Community"),
    Edges("graph_report_communities", "Report", "Community"),
)
SCHEMA = (
    *(f"CREATE CONSTRAINT {label.lower()}_id IF NOT EXISTS FOR (n:{label}) REQUIRE n.id IS UNIQUE" for label in NODES),
    "CREATE INDEX entity_title IF NOT EXISTS FOR (n:Entity) ON (n.title)",
    "CREATE INDEX document_source IF NOT EXISTS FOR (n:Document) ON (n.source)",
)


def quoted(name: str) -> str:
    """A relationship type, which a model may have made, as Cypher's identifier."""
    return f"`{name.replace('`', '``')}`"


def stored_nodes(label: str) -> str:
    """The exported nodes with a label: id, fingerprint."""
    return f"MATCH (n:{label}) WHERE n.{FINGERPRINT} IS NOT NULL RETURN n.id, n.{FINGERPRINT}"


def stored_edges(edges: Edges) -> str:
    """The exported relationships between two labels: source, target, type, fingerprint."""
    return (
        f"MATCH (a:{edges.start})-[r]->(b:{edges.end}) WHERE r.{FINGERPRINT} IS NOT NULL "
        f"RETURN a.id, b.id, type(r), r.{FINGERPRINT}"
    )


def merge_nodes(label: str) -> str:
    """Create or update the nodes `$rows`; properties of a person's own stay."""
    return f"UNWIND $rows AS row MERGE (n:{label} {{id: row.id}}) SET n += row"


def delete_nodes(label: str) -> str:
    """Delete the nodes `$rows` with all their relationships."""
    return f"UNWIND $rows AS row MATCH (n:{label} {{id: row.id}}) DETACH DELETE n"


def merge_edges(edges: Edges, kind: str) -> str:
    """Create or update the relationships `$rows` of a type: source, target, properties."""
    return (
        f"UNWIND $rows AS row MATCH (a:{edges.start} {{id: row.source}}) MATCH (b:{edges.end} {{id: row.target}}) "
        f"MERGE (a)-[r:{quoted(kind)}]->(b) SET r += row.properties"
    )


def delete_edges(edges: Edges, kind: str) -> str:
    """Delete the relationships `$rows` of a type: source, target."""
    return (
        f"UNWIND $rows AS row MATCH (:{edges.start} {{id: row.source}})-[r:{quoted(kind)}]->"
        f"(:{edges.end} {{id: row.target}}) WHERE r.{FINGERPRINT} IS NOT NULL DELETE r"
    )
