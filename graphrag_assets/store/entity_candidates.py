"""Pairs of entities that may be one thing, found by blocks of names that have something in common.

A name is compared only with those in its blocks, so a million names take minutes. Every rule depends on the two names,
their blocks and their neighbors alone.
"""

from collections.abc import Callable
from importlib.resources import files

import duckdb
import polars as pl

from graphrag_assets.store.connections import Limits, execute_with, in_memory, memory_errors
from graphrag_assets.text.abbreviations import SMALL

_SQL = files("graphrag_assets.store").joinpath("sql")
_BLOCKS, _TYPOS, _SCORES = (
    _SQL.joinpath(f"entity_candidates{part}.sql").read_text() for part in ("", "_typos", "_scores")
)
MOST = 50
"""A block of more names says nothing about two of them."""
FEW = 20
"""A short form of more names stands for one of them only where both have a neighbor in common."""
_NAMES_PER_PART = 250_000  # whose misspellings are compared at once
MIN_SCORE = 0.3


def candidate_pairs(
    names: pl.DataFrame,
    edges: pl.DataFrame,
    near: pl.DataFrame,
    read_documents: Callable[[pl.Series], pl.DataFrame],
    limits: Limits,
    threads: int = 1,
) -> pl.DataFrame:
    """The candidates among `names`: a, b, score in [0, 1], kinds, documents, neighbors (numbers of shared ones).

    Args:
        names: n, key, type, frequency.
        edges: a, b: related names, in both directions.
        near: a, b, cosine: names with similar vectors.
        read_documents: n, document: where these names are mentioned.

    Raises:
        StoreError: DuckDB may use too little memory.
    """
    with memory_errors(limits), in_memory(limits, one_thread=threads == 1) as connection:
        for name, frame in {"names": names, "edges": edges, "near": near}.items():
            execute_with(connection, f"CREATE TABLE {name} AS FROM given", given=frame)
        given = {"most": MOST, "few": FEW, "small": list(SMALL)}
        for statement in duckdb.extract_statements(_BLOCKS):
            used = {key: value for key, value in given.items() if key in statement.named_parameters}
            connection.execute(statement, used)
        parts = names.height // _NAMES_PER_PART + 1
        for part in range(parts):
            connection.execute(_TYPOS, {"most": MOST, "parts": parts, "part": part})
        compared = connection.sql("SELECT DISTINCT unnest([a, b]) AS n FROM pairs").pl()["n"]
        execute_with(connection, "CREATE TABLE named_in AS FROM given", given=read_documents(compared))
        return connection.sql(_SCORES).pl().filter(pl.col("score") >= MIN_SCORE)
