"""The published index: the working tables, numbered and linked, plus tables shaped for searching.

Everything here is rebuilt at each publication from the working tables (`sql/publish.sql`), never maintained.
Integer keys beside the string ids and sorted bridge tables make a search a few milliseconds of SQL.
"""

from dataclasses import replace

from graphrag_assets.store import schema as s
from graphrag_assets.store.schema import Table, table


def _extended(base: Table, *more: tuple[str, str, str], after: str = "id") -> Table:
    """`base` with the columns `more` inserted behind the column `after`."""
    added = table(base.name, base.comment, " ".join(base.key), *more).columns
    at = base.column_names.index(after) + 1
    return Table(base.name, base.comment, base.key, base.columns[:at] + added + base.columns[at:])


def _uncompressed(base: Table, *names: str) -> Table:
    """`base` with columns stored as they are: a dictionary over nearly unique titles makes look-ups 9 times slower."""
    columns = tuple(
        replace(c, type=f"{c.type} USING COMPRESSION 'uncompressed'") if c.name in names else c for c in base.columns
    )
    return replace(base, columns=columns)


DOCUMENTS = _extended(
    _extended(s.DOCUMENTS, s.NUMBER),
    ("text_unit_ids", "VARCHAR[]", "Its text units, in order."),
    after="text",
)
TEXT_UNITS = _extended(
    _extended(s.TEXT_UNITS, s.NUMBER),
    ("entity_ids", "VARCHAR[]", "Entities named in it, sorted."),
    ("relationship_ids", "VARCHAR[]", "Relationships stated in it, sorted."),
    ("covariate_ids", "VARCHAR[]", "Claims made in it, sorted."),
    after="n_tokens",
)
ENTITIES = _extended(
    s.ENTITIES,
    ("x", "FLOAT", "Horizontal position on the graph's map, -1 to 1."),
    ("y", "FLOAT", "Vertical position on the graph's map, -1 to 1."),
    after="degree",
)
RELATIONSHIPS = _extended(
    _uncompressed(s.RELATIONSHIPS, "source", "target"),
    ("source_number", "INTEGER", "human_readable_id of the source entity."),
    ("target_number", "INTEGER", "human_readable_id of the target entity."),
    after="target_id",
)
COVARIATES = _extended(
    _extended(s.COVARIATES, s.NUMBER),
    ("subject_number", "INTEGER", "human_readable_id of the subject entity; null when it is no entity."),
    ("object_number", "INTEGER", "human_readable_id of the object entity; null when it is no entity."),
    ("text_unit_number", "INTEGER", "human_readable_id of the text unit."),
    after="object_key",
)
COMMUNITY_MEMBERS = _extended(
    s.COMMUNITY_MEMBERS,
    ("entity_number", "INTEGER", "human_readable_id of the member."),
    after="entity_id",
)
EMBEDDINGS = table(
    "embeddings",
    s.EMBEDDINGS.comment,
    "kind number",
    ("kind", "VARCHAR", "text_unit, entity or community_report."),
    ("number", "INTEGER", "human_readable_id of the embedded row."),
    ("id", "VARCHAR", "Id of the embedded row."),
    ("model", "VARCHAR", "The embedding model."),
    ("vector", "FLOAT[{dimensions}]", "The unit vector."),
)

EDGES = table(
    "edges",
    "Each relationship twice, once from either end: the adjacency list of the graph.",
    "entity neighbour",
    ("entity", "INTEGER", "human_readable_id of one end."),
    ("neighbour", "INTEGER", "human_readable_id of the other end."),
    ("relationship", "INTEGER", "human_readable_id of the relationship."),
    ("weight", "DOUBLE", "The relationship's weight."),
    ("combined_degree", "BIGINT", "The relationship's combined degree."),
)
ENTITY_TEXT_UNITS = table(
    "entity_text_units",
    "Which text units name which entity.",
    "entity text_unit",
    ("entity", "INTEGER", "human_readable_id of the entity."),
    ("text_unit", "INTEGER", "human_readable_id of the text unit."),
    ("n_relationships", "INTEGER", "Relationships of the entity stated in the text unit."),
)
RELATIONSHIP_TEXT_UNITS = table(
    "relationship_text_units",
    "Which text units state which relationship.",
    "relationship text_unit",
    ("relationship", "INTEGER", "human_readable_id of the relationship."),
    ("text_unit", "INTEGER", "human_readable_id of the text unit."),
)
ENTITY_COMMUNITIES = table(
    "entity_communities",
    "The community of each entity at each level.",
    "entity level",
    ("entity", "INTEGER", "human_readable_id of the entity."),
    ("level", "INTEGER", "Level of the hierarchy."),
    ("community", "INTEGER", "Number of the community."),
)
POSTINGS = table(
    "postings",
    "The inverted index for BM25: which text contains which term, how often.",
    "kind term number",
    ("kind", "VARCHAR", "text_unit, entity or community_report."),
    ("term", "UBIGINT", "md5_number_lower of the case-folded term."),
    ("number", "INTEGER", "human_readable_id of the row."),
    ("n", "INTEGER", "Occurrences of the term in it."),
)
POSTING_LENGTHS = table(
    "posting_lengths",
    "Length of each text in the inverted index.",
    "kind number",
    ("kind", "VARCHAR", "text_unit, entity or community_report."),
    ("number", "INTEGER", "human_readable_id of the row."),
    ("length", "INTEGER", "Number of terms."),
)
PUBLICATION = replace(s.PUBLICATIONS, name="publication", comment="One row: which publication this file is.")

BASE = (
    DOCUMENTS,
    TEXT_UNITS,
    ENTITIES,
    RELATIONSHIPS,
    s.COMMUNITIES,
    s.COMMUNITY_REPORTS,
    COVARIATES,
    COMMUNITY_MEMBERS,
    s.COMMUNITY_HISTORY,
    s.ENTITY_MENTIONS,
    s.RELATIONSHIP_MENTIONS,
    s.ENTITY_ALIASES,
    s.CITATIONS,
    s.INDEX_ERRORS,
    s.BATCH_STATE,
    s.INDEX_RUNS,
    s.INDEX_SETTINGS,
)
SEARCH = (
    EMBEDDINGS,
    EDGES,
    ENTITY_TEXT_UNITS,
    RELATIONSHIP_TEXT_UNITS,
    ENTITY_COMMUNITIES,
    POSTINGS,
    POSTING_LENGTHS,
)
PUBLISHED = (*BASE, *SEARCH, PUBLICATION)
