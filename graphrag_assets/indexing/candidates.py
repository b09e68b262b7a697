"""Candidates of entity resolution: pairs of entities that may be one thing, with the decisions on them.

They are derived from the whole graph, when it or a decision has changed. That takes a second for 30,000 names; in a
larger graph pairs are found again when more than a hundredth of the names has changed, so an edit does not pay for all.
"""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl

from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult
from graphrag_assets.pipeline.alias_decisions import are_apart
from graphrag_assets.runtime.tracing import traced
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_inputs, record_stage, recorded
from graphrag_assets.store.change_log import changes_since_mark, last_revision, set_mark
from graphrag_assets.store.connections import one_value
from graphrag_assets.store.decisions import Decision, read_decisions
from graphrag_assets.store.entity_candidates import candidate_pairs
from graphrag_assets.store.working import Changes, replace_table

CODE_VERSION = "2"
"""Incremented when the same inputs give other rows."""
EACH_TIME = 30_000
"""In a graph of so many names pairs are found at every change."""
FRESH_SHARE = 0.01
"""In a larger one, when a larger share of the names has changed since."""
READER = "entity_candidates"
_SINCE = "candidates"
_READ = ("entities", "relationships", "embeddings")
_NAMES = "SELECT human_readable_id::INTEGER AS n, title_key AS key, type, frequency FROM entities ORDER BY n"
_EDGES = """
WITH ends AS (
    SELECT s.human_readable_id::INTEGER AS a, t.human_readable_id::INTEGER AS b
    FROM relationships r JOIN entities s ON s.id = source_id JOIN entities t ON t.id = target_id
)
FROM ends UNION ALL SELECT b, a FROM ends ORDER BY ALL
"""
_VECTORS = """
WITH part AS (
    SELECT id, human_readable_id::INTEGER AS n FROM entities ORDER BY n LIMIT $size OFFSET $start
)
SELECT n, vector FROM embeddings e JOIN part USING (id) WHERE kind = 'entity' ORDER BY n
"""
_VECTORS_PER_PART = 20_000
_DOCUMENTS = """
WITH part AS (
    SELECT human_readable_id::INTEGER AS n, unnest(text_unit_ids) AS id FROM entities
    WHERE human_readable_id IN (SELECT unnest($numbers::INTEGER[]))
)
SELECT DISTINCT n, hash(document_id) AS document FROM part JOIN text_units USING (id) ORDER BY ALL
"""
_KEPT = """
SELECT * EXCLUDE (decision, decided_by) FROM entity_candidates WHERE evidence <> ''
AND name_key IN (SELECT title_key FROM entities) AND other_key IN (SELECT title_key FROM entities)
"""
_MENTIONED = """
WITH wanted AS (SELECT unnest($keys::VARCHAR[]) AS key), named AS (
    SELECT title_key AS key FROM entity_mentions
    UNION SELECT source_key FROM relationship_mentions UNION SELECT target_key FROM relationship_mentions
)
SELECT key FROM named SEMI JOIN wanted USING (key)
"""


class UpdatedCandidates(NamedTuple):
    """The result, and how many names have changed since all pairs were found."""

    result: StageResult
    n_since: int


@exclusive("entity_candidates")
@traced("find_candidates")
def update_candidates(index: Index, run_id: str) -> UpdatedCandidates:
    """Find the candidates if the graph or a decision has changed, and write the rows that differ."""
    started = time.monotonic()
    decided = read_decisions(index.settings.index_folder)
    made_with = stable_id("candidates", CODE_VERSION, *decided)
    with index.working.connect() as connection:
        changed = changes_since_mark(connection, READER, _READ, made_with)
        revision = changed.revision if changed else last_revision(connection)
        n_names = one_value(connection, "SELECT count(*) FROM entities")
        n_since = int(recorded(connection, _SINCE) or 0) + (changed.ids("entities").len() if changed else n_names)
    unchanged = changed is not None and changed.rows.is_empty()
    if unchanged:
        frame = index.working.read(f"FROM {schema.ENTITY_CANDIDATES.name}")
    elif changed is not None and n_names > EACH_TIME and n_since <= FRESH_SHARE * n_names:
        frame = _with_decisions(index.working.read(_KEPT), decided, index)
    else:
        frame, n_since = _with_decisions(_found(index, decided), decided, index), 0
    with index.working.transaction() as connection:
        no_changes = Changes(frame.height, 0, 0)
        changes = no_changes if unchanged else replace_table(connection, schema.ENTITY_CANDIDATES, frame)
        by_table = {schema.ENTITY_CANDIDATES.name: changes}
        record_stage(connection, run_id, "find_candidates", None, time.monotonic() - started, by_table, READER)
        record_inputs(connection, _SINCE, str(n_since), run_id)
        set_mark(connection, READER, _READ, revision, made_with)
    best = frame.sort("decision", "score", descending=[False, True], nulls_last=True)
    result = StageResult({schema.ENTITY_CANDIDATES.name: best}, by_table, {}, time.monotonic() - started)
    return UpdatedCandidates(result, n_since)


def _found(index: Index, decided: Sequence[Decision]) -> pl.DataFrame:
    """The candidates of all names, without decisions on them."""
    names, edges = index.working.read_all(_NAMES, _EDGES)
    limits = index.working.limits.beside(index.database)
    pairs = candidate_pairs(
        names,
        edges,
        _vectors(index),
        lambda numbers: index.working.read(_DOCUMENTS, {"numbers": numbers.to_list()}),
        limits,
    )
    found = _directed(pairs, names)
    splits = {one.name for one in decided if one.kind == "split"}
    if splits:
        apart = [are_apart(one, other, splits) for one, other in found.select("name_key", "other_key").iter_rows()]
        found = found.filter(~pl.Series(apart, dtype=pl.Boolean))
    return found


def _directed(pairs: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """The pairs by name: the less frequent one stands for the other; of two that are as frequent, the shorter one."""
    of = names.select("n", "key", "frequency", size=pl.col("key").str.len_chars())
    joined = pairs.join(of, left_on="a", right_on="n").join(of, left_on="b", right_on="n", suffix="_b")
    frequency, size = (pl.col(column) - pl.col(f"{column}_b").cast(pl.Int64) for column in ("frequency", "size"))
    order = pl.when(frequency != 0).then(frequency).when(size.cast(pl.Int64) != 0).then(size.cast(pl.Int64))
    first_stays = order.otherwise(pl.when(pl.col("key") < pl.col("key_b")).then(1).otherwise(-1)) > 0
    return joined.select(
        "score",
        "documents",
        "neighbors",
        evidence="kinds",
        name_key=pl.when(first_stays).then("key_b").otherwise("key"),
        other_key=pl.when(first_stays).then("key").otherwise("key_b"),
    )


def _with_decisions(found: pl.DataFrame, decided: Sequence[Decision], index: Index) -> pl.DataFrame:
    """The rows of entity_candidates: those found, and decided pairs of names that are mentioned."""
    decided = [one for one in decided if one.kind != "split"]
    mentioned = index.working.read(_MENTIONED, {"keys": sorted({key for one in decided for key in one.key[1:]})})
    names = set(mentioned["key"])
    rows = [
        (one.name, one.other, *one.key[1:], one.kind, one.decided_by)
        for one in decided
        if names.issuperset(one.key[1:])
    ]
    columns = ("name", "other", "low", "high", "decision", "decided_by")
    of_pairs = pl.DataFrame(rows, dict.fromkeys(columns, pl.String), orient="row")
    ends = [
        pl.min_horizontal("name_key", "other_key").alias("low"),
        pl.max_horizontal("name_key", "other_key").alias("high"),
    ]
    joined = found.with_columns(ends).join(of_pairs, on=["low", "high"], how="full", coalesce=True)
    return joined.with_columns(
        pl.coalesce("name", "name_key").alias("name_key"),
        pl.coalesce("other", "other_key").alias("other_key"),
        pl.col("evidence", "decision", "decided_by").fill_null(""),
        pl.col("documents", "neighbors").fill_null(0),
    ).select(schema.ENTITY_CANDIDATES.column_names)


def _vectors(index: Index) -> Iterator[pl.DataFrame]:
    """The vectors of entities, in parts that fit in memory."""
    start = 0
    while not (part := index.working.read(_VECTORS, {"size": _VECTORS_PER_PART, "start": start})).is_empty():
        yield part.with_columns(pl.col("vector").list.to_array(len(part["vector"][0])))
        start += _VECTORS_PER_PART
