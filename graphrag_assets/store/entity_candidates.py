"""Pairs of entities that may be one thing, found by blocks of names that have something in common.

A name is compared only with those in its blocks, so a million names take minutes. Every rule depends on the two names,
their blocks and their neighbors alone.
"""

from collections.abc import Callable, Iterable
from importlib.resources import files
from itertools import combinations_with_replacement

import duckdb
import polars as pl

from graphrag_assets.store.connections import Limits, execute_with, in_memory, memory_errors, one_value
from graphrag_assets.text.abbreviations import SMALL

_SQL = files("graphrag_assets.store").joinpath("sql")
_BLOCKS, _SCORES = (_SQL.joinpath(f"entity_candidates{part}.sql").read_text() for part in ("", "_scores"))
MOST = 50
"""A block of more names says nothing about two of them."""
FEW = 20
"""A short form of more names stands for one of them only where both have a neighbor in common."""
MIN_SCORE = 0.3
_VECTORS_PER_PART = 100_000  # compared with as many: a million are too many for the memory
_NEAR = """
INSERT INTO pairs
SELECT a, b, 'vectors', 0.6 * array_cosine_similarity(v.vector, w.vector)
FROM blocked JOIN vectors v ON v.n = a JOIN vectors w ON w.n = b
WHERE a // $size = $one AND v.n // $size = $one AND b // $size = $other AND w.n // $size = $other
  AND array_cosine_similarity(v.vector, w.vector) >= 0.85
"""


def candidate_pairs(
    names: pl.DataFrame,
    edges: pl.DataFrame,
    vectors: Iterable[pl.DataFrame],
    read_documents: Callable[[pl.Series], pl.DataFrame],
    limits: Limits,
) -> pl.DataFrame:
    """The candidates among `names`: a, b, score in [0, 1], kinds, documents, neighbors (numbers of shared ones).

    Args:
        names: n, key, type, frequency.
        edges: a, b: related names, in both directions.
        vectors: n, vector (an array), in parts.
        read_documents: n, document: where these names are mentioned.

    Raises:
        StoreError: DuckDB may use too little memory.
    """
    with memory_errors(limits), in_memory(limits, one_thread=True) as connection:
        for name, frame in {"names": names, "edges": edges}.items():
            execute_with(connection, f"CREATE TABLE {name} AS FROM given", given=frame)
        connection.execute("CREATE TABLE vectors (n INTEGER, vector FLOAT[1])")
        for place, part in enumerate(vectors):
            into = "INSERT INTO vectors" if place else "CREATE OR REPLACE TABLE vectors AS"
            execute_with(connection, f"{into} FROM given", given=part)
        given = {"most": MOST, "few": FEW, "small": list(SMALL)}
        for statement in duckdb.extract_statements(_BLOCKS):
            used = {key: value for key, value in given.items() if key in statement.named_parameters}
            connection.execute(statement, used)
        last = one_value(connection, "SELECT coalesce(max(b), 0) FROM blocked") // _VECTORS_PER_PART
        for one, other in combinations_with_replacement(range(last + 1), 2):
            connection.execute(_NEAR, {"size": _VECTORS_PER_PART, "one": one, "other": other})
        compared = connection.sql("SELECT DISTINCT unnest([a, b]) AS n FROM pairs").pl()["n"]
        execute_with(connection, "CREATE TABLE named_in AS FROM given", given=read_documents(compared))
        return connection.sql(_SCORES).pl().filter(pl.col("score") >= MIN_SCORE)
