"""Embeddings of text units, entities and reports, computed for new and changed texts only."""

import logging
import time
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult, usage_sums
from graphrag_assets.indexing_models import IndexingModels
from graphrag_assets.pipeline.embedding_texts import embedding_texts
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_stage
from graphrag_assets.store.change_log import changes_since_mark, last_revision, set_mark
from graphrag_assets.store.working import replace_rows, replace_table

log = logging.getLogger(__name__)


CODE_VERSION = "4"
"""Incremented when the same inputs give other rows."""


class UpdatedEmbeddings(NamedTuple):
    """The table written, and the number of texts embedded."""

    updated: StageResult
    n_embedded: int


_READER = "embed_texts"
TEXTS = {
    "text_units": "SELECT id, context, text FROM text_units {among}",
    "entities": "SELECT id, title, description, degree FROM entities {among}",
    "community_reports": """
        WITH reports AS (SELECT id, community, title, summary FROM community_reports {among})
        SELECT id, title, summary, members FROM reports LEFT JOIN (
            SELECT community, max_by(e.id, (e.degree, e.id), 10) AS members
            FROM (SELECT community, unnest(entity_ids) AS id FROM communities SEMI JOIN reports USING (community))
            JOIN entities e USING (id) WHERE e.degree > 0 GROUP BY community
        ) USING (community)""",
}
"""What `embedding_texts` reads of the working database."""
_AMONG = "WHERE id IN (SELECT unnest($ids::VARCHAR[]))"
# The vector of a report depends on entities, and follows them.
_CONCERNED = """
SELECT unnest($ids::VARCHAR[]) AS id UNION
SELECT r.id FROM community_reports r JOIN community_members m USING (community)
WHERE m.entity_id IN (SELECT unnest($ids::VARCHAR[]))
"""
_STORED = """
SELECT DISTINCT ON (fingerprint) fingerprint, vector FROM embeddings
WHERE len(vector) = $size AND fingerprint IN (SELECT unnest($fingerprints))
"""
# Of one row: a blocking check verifies that all vectors are of one model and one length.
_KEPT = "SELECT len(vector) AS size, model FROM embeddings LIMIT 1"


_AT_ONCE = 250  # rows whose parts are in memory


class _Found(NamedTuple):
    """What is to have vectors: all rows, or those of `ids`; `revision` is the next mark."""

    rows: pl.DataFrame
    texts: dict[str, str]
    ids: pl.Series | None
    revision: int


@exclusive("embed_texts")
def update_embeddings(index: Index, models: IndexingModels, run_id: str) -> UpdatedEmbeddings:
    """Embed the texts whose fingerprint is new; keep the vectors of the others.

    Only the texts of rows that changed since the last run are looked at, unless the model is another one. The frame of
    the result has their vectors.
    """
    started = time.monotonic()
    model, made_with = models.embedding_model, stable_id("embeddings", CODE_VERSION, models.embedding_model)
    found = _read(index, model, made_with)
    ((size, kept_model),) = index.working.read(_KEPT).rows() or [(None, model)]
    stored = _stored(index, found.rows, size)
    new = _new(found, stored)
    if kept_model != model:
        log.warning(
            "The embedding model changed from %s to %s: embedding all %d texts again.", kept_model, model, new.height
        )
    vectors = _vectors_of(new, models)
    if new.height and size and vectors.list.len()[0] != size:
        log.warning(
            "%s returns vectors of %d numbers, those of the index have %d: embedding all texts again.",
            model,
            vectors.list.len()[0],
            size,
        )
        found, stored = _read(index, model, made_with=None), stored.clear()
        new = _new(found, stored)
        vectors = _vectors_of(new, models)
    known = pl.concat([stored, new.select("fingerprint").with_columns(vectors)])
    for kind in ("entity", "community_report"):  # which are made of texts, and of texts and entities
        known = pl.concat([known, _means(found.rows.filter(kind=kind), known)])
    frame = found.rows.join(known, on="fingerprint", maintain_order="left").select(schema.EMBEDDINGS.column_names)
    with index.working.transaction() as connection:
        if found.ids is None:
            changes = replace_table(connection, schema.EMBEDDINGS, frame)
        else:
            changes = replace_rows(connection, schema.EMBEDDINGS, frame, "id", found.ids)
        seconds, used = time.monotonic() - started, usage_sums(models.usage)
        record_stage(connection, run_id, "embed_texts", None, seconds, {"embeddings": changes}, "embeddings", used)
        set_mark(connection, _READER, TEXTS, found.revision, made_with)
    updated = StageResult({"embeddings": frame}, {"embeddings": changes}, models.usage, time.monotonic() - started)
    return UpdatedEmbeddings(updated, new.height)


def _read(index: Index, model: str, made_with: str | None) -> _Found:
    """The texts of rows that changed since a run `made_with` the same; all for None, or without such a run."""
    with index.working.connect() as connection:
        changed = None if made_with is None else changes_since_mark(connection, _READER, TEXTS, made_with)
        ids = None
        if changed is not None:
            ids = connection.sql(_CONCERNED, params={"ids": changed.ids(*TEXTS).to_list()}).pl()["id"]

        def rows(table: str) -> pl.DataFrame:
            if ids is None:
                return connection.sql(TEXTS[table].format(among="")).pl()
            return connection.sql(TEXTS[table].format(among=_AMONG), params={"ids": ids.to_list()}).pl()

        reports = rows("community_reports")
        if ids is not None:
            ids = pl.concat([ids, reports["members"].explode().drop_nulls()]).unique()
        found = embedding_texts(rows("text_units"), rows("entities"), reports, model)
        return _Found(*found, ids, changed.revision if changed else last_revision(connection))


def _stored(index: Index, rows: pl.DataFrame, size: int | None) -> pl.DataFrame:
    """Stored vectors of `size` numbers of the rows and of their parts: fingerprint, vector."""
    wanted = pl.concat([rows["fingerprint"], rows["parts"].explode()]).unique().to_list()
    return index.working.read(_STORED, {"fingerprints": wanted, "size": size})


def _new(found: _Found, stored: pl.DataFrame) -> pl.DataFrame:
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
    for some in several["parts"].to_frame().iter_slices(_AT_ONCE):
        places = [place[part] for parts in some["parts"] for part in parts]
        ends = some["parts"].list.len().cum_sum().to_numpy()
        sums = np.add.reduceat(vectors[places], np.concatenate([[0], ends[:-1]]))
        means.append(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12))
    return several.select("fingerprint").with_columns(
        pl.Series("vector", np.concatenate(means)).cast(known["vector"].dtype)
    )


def _vectors_of(texts: pl.DataFrame, models: IndexingModels) -> pl.Series:
    return pl.Series("vector", models.embed(texts["text"].to_list())).cast(pl.List(pl.Float32))
