"""Embeddings of text units, entities and reports, computed for new and changed texts only.

Without an embedding model there are none.
"""

import logging
import time
from typing import NamedTuple

import duckdb
import numpy as np
import polars as pl

from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.contracts.records import EMBED
from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult, sums_of_changes, usage_sums
from graphrag_assets.pipeline.embedding_texts import EmbeddingTexts, embedding_texts
from graphrag_assets.runtime.tracing import traced
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_stage, replace_errors
from graphrag_assets.store.change_log import changes_since_mark, last_revision, remove_mark, set_mark
from graphrag_assets.store.polars_schema import polars_schema
from graphrag_assets.store.working import Changes, replace_rows, replace_table

log = logging.getLogger(__name__)


CODE_VERSION = "4"
"""Incremented when the same inputs give other rows."""


class UpdatedEmbeddings(NamedTuple):
    """The table written, and the number of texts embedded."""

    updated: StageResult
    n_embedded: int


NO_MODEL = "No vectors: GRAPHRAG_EMBEDDING_MODEL is not set. Searches rank by BM25 and the graph."
READER = "embed_texts"
ROWS_PER_PART = 10_000
"""More rows are embedded in parts, so that memory is bounded."""
TEXTS = {
    "text_units": "SELECT id, context, text FROM text_units {among}",
    "entities": "SELECT id, title, description, degree FROM entities {among}",
    "community_reports": """
        WITH reports AS (SELECT id, community, title, summary FROM community_reports {among})
        SELECT id, title, summary, members FROM reports LEFT JOIN (
            SELECT community, max_by({{'id': e.id, 'fingerprint': v.fingerprint}}, (e.degree, e.id), 10) AS members
            FROM (SELECT community, unnest(entity_ids) AS id FROM communities SEMI JOIN reports USING (community))
            JOIN entities e USING (id) LEFT JOIN embeddings v ON v.kind = 'entity' AND v.id = e.id
            WHERE e.degree > 0 GROUP BY community
        ) USING (community)""",
}
"""What `embedding_texts` reads of the working database; reports last, which are made of entities."""
_AMONG = "WHERE id IN (SELECT unnest($ids::VARCHAR[]))"
# The vector of a report depends on entities, and follows them.
_CONCERNED = """
SELECT DISTINCT r.id FROM community_reports r JOIN community_members m USING (community)
WHERE m.entity_id IN (SELECT unnest($ids::VARCHAR[]))
"""
_ALL_IDS = " UNION ALL ".join(f"SELECT id FROM {table}" for table in (*TEXTS, "embeddings"))
_STORED = """
SELECT fingerprint, vector FROM embeddings
WHERE rowid IN (SELECT rowid FROM embeddings WHERE fingerprint IN (SELECT unnest($fingerprints)))
"""
# Of one row: a blocking check verifies that all vectors are of one model and one length.
_KEPT = "SELECT len(vector) AS size, model FROM embeddings LIMIT 1"

_VECTOR = pl.List(pl.Float32)
_VECTORS = {"fingerprint": pl.String(), "vector": _VECTOR}
_FAILED = {"fingerprint": pl.String, "error": pl.String}
_WITHOUT = {"kind": pl.String, "id": pl.String, "error": pl.String}
_NO_VECTOR = (
    "It is found by its words alone. To request its vector again, run `graphrag-assets index --retry`, after the "
    "embedding server was changed."
)
_OLD_ERRORS = """stage = 'embed' AND (source IN (SELECT unnest($ids::VARCHAR[])) OR source NOT IN (
    SELECT id FROM text_units UNION ALL SELECT id FROM entities UNION ALL SELECT id FROM community_reports))"""
_PLACES = """
SELECT t.id, t.batch, d.source FROM text_units t JOIN documents d ON d.id = t.document_id
WHERE t.id IN (SELECT unnest($ids::VARCHAR[]))
"""
_ROWS_PER_SLICE = 250  # rows whose parts are in memory


class _Due(NamedTuple):
    """Ids of the rows that are to have vectors, in parts, at least one; `revision`: the next mark."""

    parts: list[pl.Series]
    revision: int


class _Part(NamedTuple):
    """Rows of embeddings, those without (kind, id, error), the number of texts embedded, the length of the vectors."""

    frame: pl.DataFrame
    without: pl.DataFrame
    n_embedded: int
    size: int | None


@exclusive("embed_texts")
@traced("embed_texts")
def update_embeddings(index: Index, models: IndexingModels, run_id: str) -> UpdatedEmbeddings:
    """Embed the texts whose fingerprint is new; keep the vectors of the others.

    Only the texts of rows that changed since the last run are looked at, unless the model is another one. The frame of
    the result has the vectors of the last part. Without an embedding model, all vectors are removed.
    """
    started = time.monotonic()
    if not models.embedding_model:
        return _remove_all(index, run_id, started)
    model, made_with = models.embedding_model, stable_id("embeddings", CODE_VERSION, models.embedding_model)
    parts, revision = _due(index, made_with)
    ((size, kept_model),) = index.working.read(_KEPT).rows() or [(None, model)]
    if kept_model != model:
        log.warning("The embedding model changed from %s to %s: embedding all texts again.", kept_model, model)
    n_embedded, by_part = 0, list[dict[str, Changes]]()
    while parts:
        ids, *parts = parts
        made = _made(index, models, ids, size)
        if size and made.size != size:
            log.warning(
                "%s returns vectors of %d numbers, those of the index have %d: embedding all texts again.",
                model,
                made.size,
                size,
            )
            (parts, revision), size, n_embedded = _due(index, made_with=None), made.size, 0
            continue
        size, n_embedded = made.size, n_embedded + made.n_embedded
        with index.working.transaction() as connection:
            by_part.append({"embeddings": replace_rows(connection, schema.EMBEDDINGS, made.frame, "id", ids)})
            _write_errors(connection, made.without, ids)
            if parts:
                remove_mark(connection, READER)  # after a crash the next run begins again
                continue
            changes, seconds, used = sums_of_changes(by_part), time.monotonic() - started, usage_sums(models.usage)
            record_stage(connection, run_id, "embed_texts", None, seconds, changes, "embeddings", used)
            set_mark(connection, READER, TEXTS, revision, made_with)
    updated = StageResult({"embeddings": made.frame}, changes, models.usage, time.monotonic() - started)
    return UpdatedEmbeddings(updated, n_embedded)


def _remove_all(index: Index, run_id: str, started: float) -> UpdatedEmbeddings:
    """Remove all vectors, and the errors of texts that had none."""
    none = pl.DataFrame(schema=polars_schema(schema.EMBEDDINGS))
    with index.working.transaction() as connection:
        changes = {"embeddings": replace_table(connection, schema.EMBEDDINGS, none)}
        connection.execute("DELETE FROM index_errors WHERE stage = $stage", {"stage": EMBED})
        record_stage(connection, run_id, "embed_texts", None, time.monotonic() - started, changes, "embeddings")
        set_mark(connection, READER, TEXTS, last_revision(connection), stable_id("embeddings", CODE_VERSION, ""))
    return UpdatedEmbeddings(StageResult({"embeddings": none}, changes, {}, time.monotonic() - started), 0)


def _write_errors(connection: duckdb.DuckDBPyConnection, without: pl.DataFrame, ids: pl.Series) -> None:
    """Replace the rows of index_errors of those of `ids` that have no vector (kind, id, error)."""
    places = connection.sql(_PLACES, params={"ids": without["id"].to_list()}).pl()
    errors = without.join(places, on="id", how="left").select(
        "batch",
        pl.concat_str("source", "error", separator=": ", ignore_nulls=True).alias("error"),
        source="id",
        row_number=pl.lit(None, pl.Int64),
        stage=pl.lit(EMBED),
        hint=pl.lit(_NO_VECTOR),
    )
    replace_errors(connection, errors, _OLD_ERRORS, {"ids": ids.to_list()})


def _due(index: Index, made_with: str | None) -> _Due:
    """The rows that changed since a run `made_with` the same; all for None, or without such a run."""
    with index.working.connect() as connection:
        changed = None if made_with is None else changes_since_mark(connection, READER, TEXTS, made_with)
        if changed is None:
            ids = connection.sql(_ALL_IDS).pl()["id"]
        else:
            given = {"ids": changed.ids("entities").to_list()}
            reports = connection.sql(_CONCERNED, params=given).pl()["id"]
            ids = pl.concat([*(changed.ids(table) for table in TEXTS), reports])
        ids = ids.unique(maintain_order=True)
        parts = [ids.slice(start, ROWS_PER_PART) for start in range(0, max(len(ids), 1), ROWS_PER_PART)]
        return _Due(parts, changed.revision if changed else last_revision(connection))


def _made(index: Index, models: IndexingModels, ids: pl.Series, size: int | None) -> _Part:
    """The vectors of the rows that have one of these ids: stored ones of `size` numbers, and new ones."""
    made, failed = pl.DataFrame(schema=_VECTORS), pl.DataFrame(schema=_FAILED)
    without = pl.DataFrame(schema=_WITHOUT)
    while True:
        with index.working.connect() as connection:
            texts = _texts(connection, ids, models.embedding_model, without.filter(kind="entity")["id"])
            stored = _stored(connection, texts.rows, size)
        new = _new(texts, pl.concat([stored, made])).join(failed, on="fingerprint", how="anti")
        vectors = models.embed(new["text"].to_list())
        size_made = vectors.shape[1] if new.height else size if made.is_empty() else made["vector"].list.len()[0]
        is_made = ~np.isnan(vectors).any(axis=1)
        frame = new.select("fingerprint").with_columns(pl.Series("vector", vectors).cast(_VECTOR))
        made = pl.concat([made, frame.filter(is_made)])
        failures = new.filter(~is_made).with_columns(
            error=pl.col("text").replace_strict(models.embedding_errors, return_dtype=pl.String)
        )
        failed = pl.concat([failed, failures.select("fingerprint", "error")])
        if failures.is_empty():
            break
        # Again: the reports are made of the entities that have vectors.
        without = pl.concat([without, _without_vector(texts.rows, failed)])
    known = pl.concat([stored, made])
    rows = texts.rows.join(without, on=("kind", "id"), how="anti", maintain_order="left")
    if size in (None, size_made):  # else all are made again
        for kind in ("entity", "community_report"):  # which are made of texts, and of texts and entities
            known = pl.concat([known, _means(rows.filter(kind=kind), known)])
    frame = rows.join(known, on="fingerprint", maintain_order="left").select(schema.EMBEDDINGS.column_names)
    return _Part(frame, without, made.height, size_made)


def _without_vector(rows: pl.DataFrame, failed: pl.DataFrame) -> pl.DataFrame:
    """The rows with a part that has no vector: kind, id, error."""
    parts = rows.select("kind", "id", fingerprint="parts").explode("fingerprint")
    return parts.join(failed, on="fingerprint").group_by("kind", "id").agg(pl.col("error").min())


def _texts(connection: duckdb.DuckDBPyConnection, ids: pl.Series, model: str, lacking: pl.Series) -> EmbeddingTexts:
    """The texts to embed of the rows that have one of these ids, without those of the entities `lacking` a vector."""
    given = {"ids": ids.to_list()}
    queries = (query.format(among=_AMONG) for query in TEXTS.values())
    units, entities, reports = (connection.sql(query, params=given).pl() for query in queries)
    return embedding_texts(units, entities.filter(~pl.col("id").is_in(lacking.implode())), reports, model)


def _stored(connection: duckdb.DuckDBPyConnection, rows: pl.DataFrame, size: int | None) -> pl.DataFrame:
    """Stored vectors of `size` numbers of the rows and of their parts: fingerprint, vector."""
    wanted = pl.concat([rows["fingerprint"], rows["parts"].explode()]).unique().to_list()
    found = connection.sql(_STORED, params={"fingerprints": wanted}).pl()
    # Not in SQL, where comparing lengths reads those of all vectors.
    return found.filter(pl.col("vector").list.len() == pl.lit(size, pl.UInt32)).unique("fingerprint")


def _new(found: EmbeddingTexts, stored: pl.DataFrame) -> pl.DataFrame:
    """The distinct texts to embed: fingerprint, text."""
    needed = found.rows.join(stored, on="fingerprint", how="anti").select(fingerprint=pl.col("parts").explode())
    needed = needed.join(stored, on="fingerprint", how="anti").unique(maintain_order=True)
    texts = {key: found.texts[key] for key in needed["fingerprint"] if key in found.texts}
    return pl.DataFrame(
        {"fingerprint": texts.keys(), "text": texts.values()}, {"fingerprint": pl.String, "text": pl.String}
    )


def _means(rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Vectors of rows with several parts, whose vectors are known: the mean of theirs, of length 1."""
    several = (
        rows.filter(pl.col("parts").list.len() > 1).join(known, on="fingerprint", how="anti").unique("fingerprint")
    )
    if several.is_empty():
        return known.clear()
    place = {key: number for number, key in enumerate(known["fingerprint"])}
    vectors = known["vector"].list.to_array(len(known["vector"][0])).to_numpy()
    means = []
    for some in several["parts"].to_frame().iter_slices(_ROWS_PER_SLICE):
        places = [place[part] for parts in some["parts"] for part in parts]
        ends = some["parts"].list.len().cum_sum().to_numpy()
        sums = np.add.reduceat(vectors[places], np.concatenate([[0], ends[:-1]]))
        means.append(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12))
    return several.select("fingerprint").with_columns(
        pl.Series("vector", np.concatenate(means)).cast(known["vector"].dtype)
    )
