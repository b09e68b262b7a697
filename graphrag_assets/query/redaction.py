"""SQL of entities, relationships and facts as the text units of a scope describe them, without a word from elsewhere.

Rows with allowed sources only are shown as published. For the others, title, type and description are those of the
mentions in the scope. An imported index has no mentions: then only the title remains, which names what an allowed text
unit names.
"""

from collections.abc import Callable

from graphrag_assets.store.schema import sql

Allows = Callable[[str, str], str]
"""SQL that is true for the rows of a kind whose number, in a column, is in the scope; see `Scope.allows`."""

_MAX_DESCRIPTIONS = 3
"""Of a row: those that begin with its name, then those that most mentions give."""

_ENTITY_MENTIONS = """
declared AS (
    SELECT entity_number AS number, title, type, description, text_unit_number AS text_unit, n_sentences AS n
    FROM entity_mentions WHERE entity_number IN (FROM partly)
), related AS (
    -- An end of a relationship without mentions of its own is described by its relationships.
    SELECT source_number AS number, source AS title, 'UNKNOWN' AS type, description, text_unit_number AS text_unit, 1
    FROM relationship_mentions WHERE source_number IN (FROM partly)
    UNION ALL
    SELECT target_number, target, 'UNKNOWN', description, text_unit_number, 1
    FROM relationship_mentions WHERE target_number IN (FROM partly)
), mentions AS (
    FROM declared UNION ALL FROM related WHERE number NOT IN (SELECT number FROM declared)
)
"""
_RELATIONSHIP_MENTIONS = """
mentions AS (
    SELECT relationship_number AS number, '' AS title, type, description, text_unit_number AS text_unit, 1 AS n
    FROM relationship_mentions WHERE relationship_number IN (FROM partly)
)
"""
# Of each row that has text units outside of the scope, its main title, type and descriptions by those in it.
_REBUILT = f"""
partly AS (
    SELECT human_readable_id AS number FROM {{table}} WHERE {{shown}} AND NOT {{whole}}
), {{mentions}},
allowed AS (SELECT * REPLACE (coalesce(type, '') AS type) FROM mentions WHERE {{allowed}}),
titles AS (
    SELECT number, title FROM allowed GROUP BY number, title
    QUALIFY row_number() OVER (PARTITION BY number ORDER BY sum(n) DESC, title) = 1
), kinds AS (
    SELECT number, type FROM allowed GROUP BY number, type
    QUALIFY row_number() OVER (
        PARTITION BY number ORDER BY type IN ('', 'UNKNOWN', 'CONCEPT', 'NAME'), count(*) DESC, type
    ) = 1
), described AS (
    SELECT number, description, row_number() OVER (
        PARTITION BY number
        ORDER BY bool_or(starts_with(description, title)) DESC, count(*) DESC, min(text_unit), description
    ) AS place
    FROM allowed WHERE description <> '' GROUP BY number, description QUALIFY place <= {_MAX_DESCRIPTIONS}
), descriptions AS (
    SELECT number, string_agg(description, ' ' ORDER BY place) AS description FROM described GROUP BY number
), rebuilt AS (
    SELECT number, title, coalesce(type, '') AS type, coalesce(description, '') AS description
    FROM partly LEFT JOIN titles USING (number) LEFT JOIN kinds USING (number) LEFT JOIN descriptions USING (number)
)
"""


def _rebuilt(allows: Allows, kind: str, table: str, mentions: str) -> str:
    """Return SQL of the rows of a table whose texts are rebuilt from the mentions in the scope."""
    number = "human_readable_id"
    return _REBUILT.format(
        table=table,
        shown=allows(kind, number),
        whole=allows(f"{kind}_text", number),
        mentions=mentions,
        allowed=allows("text_unit", "text_unit"),
    )


def entities_in(allows: Allows, edges: str) -> str:
    """Return SQL of the entities: degree and frequency; title, type and description where they are not as published."""
    number = "human_readable_id"
    rebuilt = _rebuilt(allows, "entity", "entities", _ENTITY_MENTIONS)
    return f"""
        WITH {rebuilt}, degrees AS (
            SELECT entity, count(DISTINCT neighbor) AS degree FROM {edges} WHERE entity <> neighbor GROUP BY entity
        ), frequencies AS (
            SELECT number, count(DISTINCT text_unit) AS frequency FROM allowed GROUP BY number
        )
        SELECT human_readable_id, coalesce(d.degree, 0) AS degree, r.title, r.type, r.description,
               CASE WHEN r.number IS NULL THEN e.frequency ELSE f.frequency END AS frequency
        FROM entities e LEFT JOIN rebuilt r ON r.number = human_readable_id
        LEFT JOIN degrees d ON d.entity = human_readable_id LEFT JOIN frequencies f ON f.number = human_readable_id
        WHERE {allows("entity", number)}
    """


def relationships_in(allows: Allows, edges: str, times: str) -> str:
    """Return SQL of the relationships: weight; type, description, predicates and `over` if not as published."""
    number = "human_readable_id"
    rebuilt = _rebuilt(allows, "relationship", "relationships", _RELATIONSHIP_MENTIONS)
    return f"""
        WITH {rebuilt}, weights AS (
            SELECT relationship, any_value(weight) AS weight FROM {edges} GROUP BY relationship
        ), said AS (
            SELECT id FROM relationship_mentions WHERE {allows("text_unit", "text_unit_number")}
        ), times AS (FROM {times}), chosen AS (
            SELECT DISTINCT number FROM times WHERE kind = 'relationship'
        ), dated AS (
            FROM ({sql("predicates")})
        )
        SELECT human_readable_id, w.weight, r.type, r.description, coalesce(d.predicates, r.type) AS predicates,
               coalesce(d.over, CASE WHEN r.number IS NOT NULL THEN false END) AS over
        FROM relationships LEFT JOIN rebuilt r ON r.number = human_readable_id
        LEFT JOIN dated d ON d.number = human_readable_id LEFT JOIN weights w ON w.relationship = human_readable_id
        WHERE {allows("relationship", number)}
    """


def times_in(allows: Allows) -> str:
    """Return SQL of when the facts in the scope end, and what supersedes them, by what the scope states."""
    return f"""
        WITH facts AS (FROM search.facts WHERE {allows("text_unit", "text_unit")})
        SELECT f.id, f.kind, f.number, least(f.stated_end, s.valid_until) AS valid_until, s.superseded_by
        FROM facts f LEFT JOIN ({sql("supersession")}) s USING (id)
    """
