"""Candidates of entity resolution: pairs of entities that may be one thing, with the decisions on them.

They are found among all names, which takes a second for 30,000 of them.
"""

import time
from collections.abc import Sequence
from importlib.resources import files

import duckdb
import polars as pl

from graphrag_assets.assets.index import Index, exclusive
from graphrag_assets.pipeline.alias_decisions import are_apart
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_stage
from graphrag_assets.store.connections import execute_with, one_value
from graphrag_assets.store.decisions import Decision, read_decisions
from graphrag_assets.store.index_database import Changes, replace_table
from graphrag_assets.text.abbreviations import SMALL

CODE_VERSION = "4"
"""Incremented when the same inputs give other rows."""
MOST = 50
"""A block of more names says nothing about two of them."""
FEW = 20
"""A short form of more names stands for one of them only where both have a neighbor in common."""
MIN_SCORE = 0.3
_NAME = schema.ENTITY_CANDIDATES.name
_FIND = files("graphrag_assets.store").joinpath("sql/entity_candidates.sql").read_text()
# A decided pair is shown while both names are mentioned.
_DECIDED = """
CREATE OR REPLACE TEMP TABLE decided AS
WITH named AS MATERIALIZED (
    SELECT title_key AS key FROM entity_mentions
    UNION SELECT source_key FROM relationship_mentions UNION SELECT target_key FROM relationship_mentions
)
FROM given WHERE name IN (FROM named) AND other IN (FROM named)
"""
_VECTORS = """
CREATE OR REPLACE TEMP TABLE vectors AS
SELECT e.human_readable_id::INTEGER AS n, vector::FLOAT[{size}] AS vector
FROM embeddings JOIN entities e USING (id) WHERE kind = 'entity'
"""
_ROWS = """
SELECT coalesce(d.name, name_key) AS name_key, coalesce(d.other, other_key) AS other_key, score,
       coalesce(evidence, '') AS evidence, coalesce(documents, 0) AS documents, coalesce(neighbors, 0) AS neighbors,
       coalesce(decision, '') AS decision, coalesce(decided_by, '') AS decided_by
FROM candidates FULL JOIN decided d
  ON least(d.name, d.other) = least(name_key, other_key) AND greatest(d.name, d.other) = greatest(name_key, other_key)
"""


@exclusive("find_candidates")
def update_candidates(index: Index, run_id: str) -> Changes:
    """Find the candidates, and write the rows that differ."""
    started = time.monotonic()
    decided = read_decisions(index.settings.index_folder)
    with index.working.transaction() as connection:
        pairs = [(one.name, one.other, one.kind, one.decided_by) for one in decided if one.kind != "split"]
        columns = dict.fromkeys(("name", "other", "decision", "decided_by"), pl.String)
        execute_with(connection, _DECIDED, given=pl.DataFrame(pairs, columns, orient="row"))
        _find(connection, decided)
        changes = replace_table(connection, schema.ENTITY_CANDIDATES, _ROWS)
        seconds = time.monotonic() - started
        record_stage(connection, run_id, "find_candidates", None, seconds, {_NAME: changes}, _NAME)
    return changes


def _find(connection: duckdb.DuckDBPyConnection, decided: Sequence[Decision]) -> None:
    """Create the table candidates: the pairs of names that may be one thing, without decisions."""
    size = one_value(connection, "SELECT coalesce(max(len(vector)), 1) FROM embeddings WHERE kind = 'entity'")
    connection.execute(_VECTORS.format(size=size))
    given = {"most": MOST, "few": FEW, "small": list(SMALL), "least": MIN_SCORE}
    for statement in duckdb.extract_statements(_FIND):
        used = {key: value for key, value in given.items() if key in statement.named_parameters}
        connection.execute(statement, used)
    splits = {one.name for one in decided if one.kind == "split"}
    if splits:
        pairs = connection.sql("SELECT name_key, other_key FROM candidates").pl()
        apart = [(one, other) for one, other in pairs.iter_rows() if are_apart(one, other, splits)]
        given_apart = pl.DataFrame(apart, {"name_key": pl.String, "other_key": pl.String}, orient="row")
        keep = "CREATE OR REPLACE TEMP TABLE candidates AS FROM candidates ANTI JOIN given USING (name_key, other_key)"
        execute_with(connection, keep, given=given_apart)
