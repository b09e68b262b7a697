"""Embeddings of text units, entities and reports, computed for new and changed texts only; candidates of resolution.

A vector is kept while the fingerprint of what it is made of stays the same. Without an embedding model there are none.
Candidates are pairs of entities that may be one thing, found among all names.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files

import duckdb
import numpy as np
import polars as pl

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.stage import CODE_VERSIONS, Run, StageResult, stage, sums_of_changes
from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.contracts.records import EMBED
from graphrag_assets.errors import StoreError
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.alias_decisions import are_apart
from graphrag_assets.pipeline.embedding_texts import texts_of
from graphrag_assets.store import schema
from graphrag_assets.store.batches import REFUSED, record_inputs, recorded, replace_errors
from graphrag_assets.store.connections import execute_with, one_value
from graphrag_assets.store.decisions import Decision, read_decisions
from graphrag_assets.store.index_database import Changes, replace_rows, replace_table
from graphrag_assets.store.schema import literal, polars_schema
from graphrag_assets.text.abbreviations import SMALL

log = logging.getLogger(__name__)


NO_MODEL = "No vectors: GRAPHRAG_EMBEDDING_MODEL is not set. Searches rank by BM25 and the graph."
ROWS_PER_PART = 5_000
"""More rows are embedded in parts, so that memory is bounded."""
_WITHOUT = {"fingerprint": pl.String, "id": pl.String, "error": pl.String}
_VECTOR = pl.List(pl.Float32)

# An entity without a relationship has no vector of its own: no path leads to it, and the vectors of its text units find
# what is said of it. Reports come last, because they are made of the vectors of entities.
_ROWS = {
    "kind <> 'community_report'": """
        SELECT 'text_unit' AS kind, id, coalesce(context, '') AS title, text, NULL AS members FROM text_units
        UNION ALL SELECT 'entity', id, title, description, NULL FROM entities WHERE degree > 0
    """,
    "kind = 'community_report'": """
        SELECT 'community_report' AS kind, r.id, title, summary AS text, coalesce(members, []) AS members
        FROM community_reports r LEFT JOIN (
            SELECT community, list({'id': id, 'fingerprint': fingerprint} ORDER BY place) AS members FROM (
                SELECT community, id, row_number() OVER (PARTITION BY community ORDER BY degree DESC, id DESC) AS place
                FROM (SELECT community, unnest(entity_ids) AS id FROM communities) JOIN entities USING (id)
                WHERE degree > 0 QUALIFY place <= 10
            ) JOIN (SELECT id, fingerprint FROM embeddings WHERE kind = 'entity') USING (id) GROUP BY community
        ) USING (community)
    """,
}
"""Queries for the rows that are to have vectors, by the rows of the table that these are. For texts see `texts_of`."""
_NOT_AS_WANTED = "rowid NOT IN (SELECT e.rowid FROM embeddings e SEMI JOIN wanted USING (kind, id, fingerprint))"
_DUE = "FROM wanted ANTI JOIN embeddings USING (kind, id, fingerprint) ORDER BY ALL"
_AMONG = "id IN (SELECT unnest($ids::VARCHAR[]))"
# Of one row: a blocking check verifies that all vectors are of one model and one length.
_SIZE = "SELECT len(vector) AS size FROM embeddings WHERE model = $model LIMIT 1"
_NO_VECTOR = (
    "It is found by its words alone. To request its vector again, run `graphrag-assets index --retry`, after the "
    "embedding server was changed."
)
_PLACES = f"SELECT t.id, t.batch, d.source FROM text_units t JOIN documents d ON d.id = t.document_id WHERE t.{_AMONG}"

MOST = 50
"""A block of more names says nothing about two of them."""
FEW = 20
"""A short form of more names stands for one of them only where both have a neighbor in common."""
MIN_SCORE = 0.3
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
_CANDIDATES = """
SELECT coalesce(d.name, name_key) AS name_key, coalesce(d.other, other_key) AS other_key, score,
       coalesce(evidence, '') AS evidence, coalesce(documents, 0) AS documents, coalesce(neighbors, 0) AS neighbors,
       coalesce(decision, '') AS decision, coalesce(decided_by, '') AS decided_by
FROM candidates FULL JOIN decided d
  ON least(d.name, d.other) = least(name_key, other_key) AND greatest(d.name, d.other) = greatest(name_key, other_key)
"""


@stage(
    "retrieval",
    {"embeddings": ("text_units", "entities", "relationships", "community_reports")},
    f"{CODE_VERSIONS['embeddings']}/{CODE_VERSIONS['entity_candidates']}",
)
def embed_texts(run: Run) -> StageResult:
    """Embed the texts whose fingerprint is new, keep the vectors of the others, and find the candidates.

    Without an embedding model, all vectors are removed.
    """
    index, models = run.index, run.models
    ((kept_model,),) = index.working.read("SELECT max(model) FROM embeddings").rows()
    if models.embedding_model and kept_model not in (None, models.embedding_model):
        log.warning(
            "The embedding model changed from %s to %s: embedding all texts again.", kept_model, models.embedding_model
        )
    by_part, without, n_embedded = _embed(index, models)
    with index.working.transaction() as connection:
        n_rows = one_value(connection, "SELECT count(*) FROM embeddings")
        _write_errors(connection, without)
        refused = json.dumps(dict(without.select("fingerprint", "error").iter_rows()))
        record_inputs(connection, REFUSED, refused)
    embeddings = replace(sums_of_changes(by_part)["embeddings"], rows=n_rows)
    candidates = find_candidates(index)
    note = {} if models.embedding_model else {"note": NO_MODEL}
    return StageResult(
        {"embeddings": embeddings, "entity_candidates": candidates},
        {"embedded": n_embedded, "entity_candidates": candidates.rows, **note},
    )


def _embed(index: Index, models: IndexingModels) -> tuple[list[dict[str, Changes]], pl.DataFrame, int]:
    """Return the changes by part, the rows that have no vector (fingerprint, id, error), and the number of texts."""
    none = pl.DataFrame(schema=polars_schema(schema.EMBEDDINGS))
    by_part, without, n_embedded = [], [pl.DataFrame(schema=_WITHOUT)], 0
    if not models.embedding_model:
        with index.working.transaction() as connection:
            return [{"embeddings": replace_table(connection, schema.EMBEDDINGS, none)}], without[0], 0
    made_with = literal(stable_id("embeddings", CODE_VERSIONS["embeddings"], models.embedding_model))
    for kinds, query in _ROWS.items():
        rows = f"SELECT *, md5(row({made_with}, kind, title, text, members)::VARCHAR) AS fingerprint FROM ({query})"
        with index.working.transaction() as connection:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE wanted AS SELECT kind, id, fingerprint FROM ({rows})")
            changes = replace_table(connection, schema.EMBEDDINGS, none, f"{kinds} AND {_NOT_AS_WANTED}")
            due = pl.DataFrame(connection.sql(_DUE))
            refused = json.loads(recorded(connection, REFUSED) or "{}")
        by_part.append({"embeddings": changes})
        error = pl.col("fingerprint").replace_strict(refused, default=None, return_dtype=pl.String)
        due = due.with_columns(error=error)
        without.append(due.drop_nulls("error").select(*_WITHOUT))
        for part in due.filter(pl.col("error").is_null()).iter_slices(ROWS_PER_PART):
            frame, failed, n = _made(index, models, rows, part["id"])
            with index.working.transaction() as connection:
                changes = replace_rows(connection, schema.EMBEDDINGS, frame, "id", part["id"])
            by_part.append({"embeddings": changes})
            without.append(failed)
            n_embedded += n
    return by_part, pl.concat(without), n_embedded


def _made(index: Index, models: IndexingModels, rows: str, ids: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Return the rows of embeddings of a part; those without a vector (fingerprint, id, error); the number of texts."""
    wanted = index.working.read(f"FROM ({rows}) WHERE {_AMONG} ORDER BY ALL", {"ids": ids.to_list()})
    texts = [texts_of(*row) for row in wanted.select("kind", "title", "text", "members").iter_rows()]
    distinct = {text: place for place, text in enumerate(dict.fromkeys(text for row in texts for text in row))}
    vectors = models.embed(list(distinct))
    for (size,) in index.working.read(_SIZE, {"model": models.embedding_model}).iter_rows():
        if distinct and vectors.shape[1] != size:
            with index.working.transaction() as connection:
                connection.execute("DELETE FROM embeddings")
            raise StoreError(
                f"{models.embedding_model} returns vectors of {vectors.shape[1]} numbers, and those of the index had "
                f"{size}: they are removed. Run `graphrag-assets index` again, to embed all texts."
            )
    members = [[member["id"] for member in row or ()] for row in wanted["members"].to_list()]
    among = {"ids": list({member for row in members for member in row})}
    stored = index.working.read(f"SELECT id, vector FROM embeddings WHERE {_AMONG}", among)
    of = {member: vector.to_numpy() for member, vector in zip(stored["id"], stored["vector"], strict=True)}
    means = []
    for row, of_row in zip(texts, members, strict=True):
        parts = np.array([*(vectors[distinct[text]] for text in row), *(of[member] for member in of_row)])
        total = parts.sum(axis=0)
        means.append(total / max(np.linalg.norm(total), 1e-12) if len(parts) > 1 else total)
    new = np.array(means, np.float32)
    is_made = pl.Series(~np.isnan(new).any(axis=1))
    refused = models.embedding_errors
    errors = [min((refused[text] for text in row if text in refused), default=None) for row in texts]
    frame = wanted.with_columns(pl.Series("vector", new).cast(_VECTOR), model=pl.lit(models.embedding_model))
    failed = wanted.with_columns(pl.Series("error", errors, pl.String)).filter(~is_made)
    return frame.filter(is_made).select(schema.EMBEDDINGS.column_names), failed.select(*_WITHOUT), len(distinct)


def _write_errors(connection: duckdb.DuckDBPyConnection, without: pl.DataFrame) -> None:
    """Replace the rows of index_errors of texts that have no vector."""
    places = pl.DataFrame(connection.sql(_PLACES, params={"ids": without["id"].to_list()}))
    errors = without.join(places, on="id", how="left").select(
        "batch",
        pl.concat_str("source", "error", separator=": ", ignore_nulls=True).alias("error"),
        source="id",
        row_number=pl.lit(None, pl.Int64),
        stage=pl.lit(EMBED),
        hint=pl.lit(_NO_VECTOR),
    )
    replace_errors(connection, errors, "stage = $stage", {"stage": EMBED})


def find_candidates(index: Index) -> Changes:
    """Find the candidates, and write the rows that differ."""
    decided = read_decisions(index.settings.index_folder)
    pairs = [(one.name, one.other, one.kind, one.decided_by) for one in decided if one.kind != "split"]
    columns = dict.fromkeys(("name", "other", "decision", "decided_by"), pl.String)
    with index.working.transaction() as connection:
        execute_with(connection, _DECIDED, given=pl.DataFrame(pairs, columns, orient="row"))
        _find(connection, decided)
        return replace_table(connection, schema.ENTITY_CANDIDATES, _CANDIDATES)


def _find(connection: duckdb.DuckDBPyConnection, decided: Sequence[Decision]) -> None:
    """Create the table candidates: the pairs of names that may be one thing, without decisions."""
    size = one_value(connection, "SELECT coalesce(max(len(vector)), 1) FROM embeddings WHERE kind = 'entity'")
    connection.execute(_VECTORS.format(size=size))
    values = {"most": MOST, "few": FEW, "small": list(SMALL), "least": MIN_SCORE}
    for statement in duckdb.extract_statements(_FIND):
        connection.execute(statement, {name: values[name] for name in statement.named_parameters})
    splits = {one.name for one in decided if one.kind == "split"}
    if splits:
        pairs = pl.DataFrame(connection.sql("SELECT name_key, other_key FROM candidates"))
        apart = [(one, other) for one, other in pairs.iter_rows() if are_apart(one, other, splits)]
        given_apart = pl.DataFrame(apart, {"name_key": pl.String, "other_key": pl.String}, orient="row")
        keep = "CREATE OR REPLACE TEMP TABLE candidates AS FROM candidates ANTI JOIN given USING (name_key, other_key)"
        execute_with(connection, keep, given=given_apart)
