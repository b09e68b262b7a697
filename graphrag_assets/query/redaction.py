"""Entities and relationships as the text units of a scope describe them, without a word or a number from elsewhere.

Rows with allowed sources only are shown as published. For the others, title, type and description are those of the
mentions in the scope. An imported index has no mentions: then only the title remains, which names what an allowed text
unit names.
"""

import polars as pl

from graphrag_assets.query.scope import Scope
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.store.schema import sql

_MAX_DESCRIPTIONS = 3
"""Of a row: those that begin with its name, then those that most mentions give."""

_ENTITY_MENTIONS = """
declared AS (
    SELECT entity_number AS number, title, type, description, text_unit_number AS text_unit, n_sentences AS n
    FROM entity_mentions WHERE entity_number IN (FROM chosen)
), related AS (
    -- An end of a relationship without mentions of its own is described by its relationships.
    SELECT source_number AS number, source AS title, 'UNKNOWN' AS type, description, text_unit_number AS text_unit, 1
    FROM relationship_mentions WHERE source_number IN (FROM chosen)
    UNION ALL
    SELECT target_number, target, 'UNKNOWN', description, text_unit_number, 1
    FROM relationship_mentions WHERE target_number IN (FROM chosen)
), mentions AS (
    FROM declared UNION ALL FROM related WHERE number NOT IN (SELECT number FROM declared)
)
"""
_RELATIONSHIP_MENTIONS = """
mentions AS (
    SELECT relationship_number AS number, '' AS title, type, description, text_unit_number AS text_unit, 1 AS n
    FROM relationship_mentions WHERE relationship_number IN (FROM chosen)
)
"""
# Of each chosen row its main title, type and descriptions; of one that has no mention in the scope, nothing.
_REBUILT = f"""
WITH chosen AS (SELECT unnest($numbers::INT[]) AS number), {{mentions}},
allowed AS (SELECT * REPLACE (coalesce(type, '') AS type) FROM mentions WHERE {{allowed}}),
titles AS (
    SELECT number, title FROM allowed GROUP BY number, title
    QUALIFY row_number() OVER (PARTITION BY number ORDER BY sum(n) DESC, title) = 1
), types AS (
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
), frequencies AS (SELECT number, count(DISTINCT text_unit) AS frequency FROM allowed GROUP BY number)
SELECT number::BIGINT AS human_readable_id, title, coalesce(type, '') AS type, coalesce(type, '') AS predicates,
       false AS over, coalesce(description, '') AS description, frequency
FROM chosen LEFT JOIN titles USING (number) LEFT JOIN types USING (number) LEFT JOIN descriptions USING (number)
LEFT JOIN frequencies USING (number)
"""


def redact_entities(scope: Scope, reader: Reader, frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` (human_readable_id, title, type, description, frequency, is_whole) as the scope describes the entities.

    `is_whole`: whether all of its text units are in the scope.
    """
    if scope.is_everything or frame.is_empty():
        return frame.drop("is_whole")
    partly = frame.filter(~pl.col("is_whole"))
    rebuilt = _rebuilt(scope, reader, _ENTITY_MENTIONS, partly["human_readable_id"])
    titles = rebuilt.join(partly, on="human_readable_id", how="left", maintain_order="left")["title_right"]
    frame = frame.drop("is_whole", "line_tokens", strict=False)  # the tokens are those of the published line
    return _updated(frame, rebuilt.with_columns(title=pl.coalesce("title", titles)))


def redact_relationships(scope: Scope, reader: Reader, frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` (human_readable_id, source, target, type, description, is_whole; source_number, source_is_whole, …),
    likewise.
    """
    marks = ("is_whole", "source_is_whole", "target_is_whole")
    if not scope.limits_text or frame.is_empty():
        return frame.drop(marks)
    for end in ("source", "target"):
        partly = frame.filter(~pl.col(f"{end}_is_whole"))[f"{end}_number"].unique()
        rebuilt = _rebuilt(scope, reader, _ENTITY_MENTIONS, partly).drop_nulls("title")
        titles = dict(rebuilt.select("human_readable_id", "title").iter_rows())
        title = pl.col(f"{end}_number").replace_strict(titles, default=None, return_dtype=pl.String)
        frame = frame.with_columns(pl.coalesce(title, end).alias(end))
    rebuilt = _rebuilt(scope, reader, _RELATIONSHIP_MENTIONS, frame.filter(~pl.col("is_whole"))["human_readable_id"])
    frame = _updated(frame.drop(*marks, "line_tokens", strict=False), rebuilt)
    return _updated(frame, predicates_of(scope, reader, frame))


def _rebuilt(scope: Scope, reader: Reader, mentions: str, numbers: pl.Series) -> pl.DataFrame:
    """human_readable_id, title, type, predicates, over, description, frequency from the mentions in the scope."""
    query = _REBUILT.format(mentions=mentions, allowed=scope.allows("text_unit", "text_unit"))
    return reader.rows(query, {"numbers": numbers.to_list()})


def _updated(frame: pl.DataFrame, rebuilt: pl.DataFrame) -> pl.DataFrame:
    """`frame` with the values of `rebuilt`, also its nulls, in the rows and columns that it has."""
    return frame.update(
        rebuilt.select(name for name in rebuilt.columns if name in frame.columns),
        on="human_readable_id",
        include_nulls=True,
    )


# The slots of the chosen rows, with all that the scope states of them, and what ends them.
_TIMES = f"""
WITH chosen AS (SELECT unnest($numbers::INT[]) AS number),
asked AS (
    SELECT id, slot FROM search.facts WHERE kind = $kind AND number IN (FROM chosen)
), ending AS (
    SELECT id FROM (SELECT id, unnest(ends) AS ended FROM search.facts) WHERE ended IN (SELECT id FROM asked)
), facts AS (
    FROM search.facts WHERE {{allowed}} AND (id IN (SELECT id FROM asked) OR slot IN (SELECT slot FROM asked)
        OR id IN (FROM ending))
), times AS (
    SELECT f.id, f.number, least(f.stated_end, s.valid_until) AS valid_until, s.superseded_by
    FROM facts f LEFT JOIN ({sql("supersession")}) s USING (id)
)
"""


def with_times(scope: Scope, reader: Reader, claims: pl.DataFrame) -> pl.DataFrame:
    """`claims` (human_readable_id, until, line_tokens) with the day until which each holds according to the scope."""
    if not scope.limits_text or claims.is_empty():
        return claims
    times = _query(
        scope, reader, "claim", claims, "SELECT number, valid_until FROM times WHERE superseded_by IS NOT NULL"
    )
    until = pl.col("human_readable_id").replace_strict(
        times["number"], times["valid_until"], default=None, return_dtype=pl.Date
    )
    tokens = pl.when(until.eq_missing(pl.col("until"))).then("line_tokens")  # null: counted when it is needed
    return claims.with_columns(until=until, line_tokens=tokens)


def predicates_of(scope: Scope, reader: Reader, relationships: pl.DataFrame) -> pl.DataFrame:
    """human_readable_id, predicates and whether they are `over`, of the relationships that have facts in the scope."""
    if relationships.is_empty():
        return pl.DataFrame(schema={"human_readable_id": pl.Int64, "predicates": pl.String, "over": pl.Boolean})
    query = f"""
        , said AS (SELECT id FROM relationship_mentions WHERE {scope.allows("text_unit", "text_unit_number")})
        SELECT number::BIGINT AS human_readable_id, predicates, over FROM ({sql("predicates")})
        WHERE number IN (SELECT number FROM facts WHERE kind = 'relationship')
    """
    return _query(scope, reader, "relationship", relationships, query)


def _query(scope: Scope, reader: Reader, kind: str, rows: pl.DataFrame, query: str) -> pl.DataFrame:
    times = _TIMES.format(allowed=scope.allows("text_unit", "text_unit"))
    numbers = rows["human_readable_id"].to_list()
    return reader.rows(times + query, {"numbers": numbers, "kind": kind})
