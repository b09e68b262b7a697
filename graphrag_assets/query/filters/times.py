"""The time in which claims and relationships hold, as the text units of a scope state it."""

import polars as pl

from graphrag_assets.query.filters.scope import Scope
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.store.schema import sql

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
