"""Entities and relationships as the text units of a scope describe them, without a word or a number from elsewhere.

Rows with allowed sources only are shown as published. For the others, title, type and description are rebuilt from the
mentions in the scope, by the rules of indexing and the summarizer of the embedded default.
"""

from collections.abc import Iterable

import polars as pl

from graphrag_assets.embedded import summarize
from graphrag_assets.query.scope import Scope
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.store.schema import sql

_MENTIONS_OF_ENTITIES = """
WITH selected AS (SELECT unnest($numbers::INT[]) AS number),
declared AS (
    SELECT entity_number AS number, title, type, description, text_unit_number AS text_unit, n_sentences
    FROM entity_mentions WHERE entity_number IN (FROM selected)
), related AS (
    -- An end of a relationship without mentions of its own is described by its relationships.
    SELECT source_number AS number, source AS title, 'UNKNOWN' AS type, description, text_unit_number AS text_unit,
           1 AS n_sentences
    FROM relationship_mentions WHERE source_number IN (FROM selected)
    UNION ALL
    SELECT target_number, target, 'UNKNOWN', description, text_unit_number, 1
    FROM relationship_mentions WHERE target_number IN (FROM selected)
)
SELECT * FROM (
    FROM declared
    UNION ALL FROM related WHERE number NOT IN (SELECT number FROM declared)
) WHERE {allowed} ORDER BY ALL
"""


def redact_entities(scope: Scope, reader: Reader, frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` (human_readable_id, title, type, description, frequency, is_whole) as the scope describes the entities.

    `is_whole`: whether all of its text units are in the scope.
    """
    if scope.is_everything or frame.is_empty():
        return frame.drop("is_whole")
    partly = frame.filter(~pl.col("is_whole"))["human_readable_id"].to_list()
    frame = frame.drop("is_whole", "line_tokens", strict=False)  # the tokens are those of the published line
    return _replaced(frame, _rebuilt_entities(scope, reader, partly), partly) if partly else frame


def redact_relationships(scope: Scope, reader: Reader, frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` (human_readable_id, source, target, type, description, is_whole; source_number, source_is_whole, …),
    likewise.
    """
    marks = ("is_whole", "source_is_whole", "target_is_whole")
    if not scope.limits_text or frame.is_empty():
        return frame.drop(marks)
    partly = frame.filter(~pl.col("is_whole"))["human_readable_id"].to_list()
    ends = {n for end in ("source", "target") for n in frame.filter(~pl.col(f"{end}_is_whole"))[f"{end}_number"]}
    frame = frame.drop(*marks, "line_tokens", strict=False)
    if ends:
        titles = dict(_rebuilt_entities(scope, reader, sorted(ends)).select("human_readable_id", "title").iter_rows())
        named = {
            end: pl.col(f"{end}_number").replace_strict(titles, default=None, return_dtype=pl.String)
            for end in ("source", "target")
        }
        frame = frame.with_columns(**{end: pl.coalesce(title, end) for end, title in named.items()})
    frame = _replaced(frame, _rebuilt_relationships(scope, reader, partly), partly) if partly else frame
    predicates = predicates_of(scope, reader, frame)
    return _replaced(frame, predicates, predicates["human_readable_id"])


def _rebuilt_entities(scope: Scope, reader: Reader, numbers: list[int]) -> pl.DataFrame:
    """human_readable_id, title, type, description, frequency from the mentions in the scope."""
    mentions = reader.rows(
        _MENTIONS_OF_ENTITIES.format(allowed=scope.allows("text_unit", "text_unit")),
        {"numbers": numbers},
    )
    counted = mentions.group_by("number", "title").agg(pl.col("n_sentences").sum())
    titles = _first(counted.sort("number", pl.col("n_sentences").neg(), "title"), "title")
    types = _main_types(mentions)
    described = mentions.join(titles.rename({"title": "shown"}), on="number").select(
        key="number", title="shown", description=pl.col("description").fill_null(""), n=pl.lit(1, pl.Int64)
    )
    frequency = mentions.group_by("number").agg(frequency=pl.col("text_unit").n_unique().cast(pl.Int64))
    return (
        titles.join(types, on="number")
        .join(frequency, on="number")
        .join(summarize(described), left_on="number", right_on="key", how="left")
        .with_columns(pl.col("description").fill_null(""))
        .rename({"number": "human_readable_id"})
    )


def _main_types(mentions: pl.DataFrame) -> pl.DataFrame:
    """Return number, type: the one that most mentions give."""
    generic = pl.col("type").is_in(["", "UNKNOWN", "CONCEPT", "NAME"])
    counted = mentions.with_columns(pl.col("type").fill_null("")).group_by("number", "type").len()
    return _first(counted.sort("number", generic, pl.col("len").cast(pl.Int64).neg(), "type"), "type")


def _first(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    return frame.group_by("number", maintain_order=True).agg(pl.col(column).first())


def _rebuilt_relationships(scope: Scope, reader: Reader, numbers: list[int]) -> pl.DataFrame:
    """human_readable_id, type, predicates, description from the mentions in the scope."""
    mentions = reader.rows(
        f"""
        SELECT relationship_number AS number, type, source || ' – ' || target AS title, description, 1::BIGINT AS n
        FROM relationship_mentions
        WHERE relationship_number IN (SELECT unnest($numbers::INT[]))
          AND {scope.allows("text_unit", "text_unit_number")}
        ORDER BY ALL
        """,
        {"numbers": numbers},
    )
    described = mentions.select(pl.col("description").fill_null(""), "title", "n", key="number")
    types = _main_types(mentions).with_columns(predicates="type", over=pl.lit(False))
    return types.join(summarize(described), left_on="number", right_on="key").rename({"number": "human_readable_id"})


def _replaced(frame: pl.DataFrame, rebuilt: pl.DataFrame, numbers: Iterable[int]) -> pl.DataFrame:
    """`frame` with the columns of `rebuilt` in the rows of `numbers`; empty if nothing could be rebuilt.

    An imported index has no mentions: then only the title remains, which names what an allowed text unit names.
    """
    columns = [name for name in rebuilt.columns if name != "human_readable_id"]
    values = frame.select("human_readable_id").join(
        rebuilt.with_columns(pl.col("human_readable_id").cast(frame["human_readable_id"].dtype)),
        on="human_readable_id",
        how="left",
        maintain_order="left",
    )
    is_rebuilt = frame["human_readable_id"].is_in(list(numbers))
    nothing = {"title": pl.col("title"), "frequency": pl.lit(None, pl.Int64)}
    return frame.with_columns(
        pl.when(is_rebuilt)
        .then(pl.coalesce(values[name], nothing.get(name, pl.lit(""))))
        .otherwise(pl.col(name))
        .alias(name)
        for name in columns
        if name in frame.columns
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
