"""Embeddings of text units, entities and reports, computed for new and changed texts only."""

import logging
import time
from typing import NamedTuple

import polars as pl

from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult, usage_sums
from graphrag_assets.indexing_models import IndexingModels
from graphrag_assets.pipeline.embedding_texts import embedding_texts
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_stage
from graphrag_assets.store.change_log import Changed, changes_since_mark, last_revision, set_mark
from graphrag_assets.store.working import replace_rows, replace_table

log = logging.getLogger(__name__)


CODE_VERSION = "2"
"""Incremented when the same inputs give other rows."""


class UpdatedEmbeddings(NamedTuple):
    """The table written, and the number of texts embedded."""

    updated: StageResult
    n_embedded: int


_READER = "embed_texts"
_TEXTS = {
    "text_units": "SELECT id, context, text FROM text_units",
    "entities": "SELECT id, title, description, degree FROM entities",
    "community_reports": "SELECT id, full_content FROM community_reports",
}
_STORED = """
SELECT DISTINCT ON (fingerprint) fingerprint, vector, model FROM embeddings
WHERE len(vector) = (SELECT mode(len(vector)) FROM embeddings) AND fingerprint IN (SELECT unnest($fingerprints))
"""
_KEPT = "SELECT count(*) AS n, mode(len(vector)) AS size, any_value(model) AS model FROM embeddings"


class _Texts(NamedTuple):
    """What is to have vectors: all texts, or, with `changed`, those of changed rows; `revision` is the next mark."""

    texts: pl.DataFrame
    changed: Changed | None
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
    (kept,) = index.working.read(_KEPT).iter_rows(named=True)
    stored, new = _known(index, found.texts)
    if kept["n"] and kept["model"] != model:
        log.warning(
            "The embedding model changed from %s to %s: embedding all %d texts again.",
            kept["model"],
            model,
            new.height,
        )
    vectors = _vectors_of(new, models)
    if new.height and kept["n"] and vectors.list.len()[0] != kept["size"]:
        log.warning(
            "%s returns vectors of %d numbers, those of the index have %d: embedding all texts again.",
            model,
            vectors.list.len()[0],
            kept["size"],
        )
        found = _read(index, model, made_with=None)
        stored, new = stored.clear(), found.texts.unique("fingerprint", maintain_order=True)
        vectors = _vectors_of(new, models)
    known = pl.concat([stored.drop("model"), new.select("fingerprint").with_columns(vectors)])
    frame = found.texts.join(known, on="fingerprint", maintain_order="left").select(schema.EMBEDDINGS.column_names)
    with index.working.transaction() as connection:
        if found.changed is None:
            changes = replace_table(connection, schema.EMBEDDINGS, frame)
        else:
            changes = replace_rows(connection, schema.EMBEDDINGS, frame, "id", found.changed.ids(*_TEXTS))
        seconds, used = time.monotonic() - started, usage_sums(models.usage)
        record_stage(connection, run_id, "embed_texts", None, seconds, {"embeddings": changes}, "embeddings", used)
        set_mark(connection, _READER, _TEXTS, found.revision, made_with)
    updated = StageResult({"embeddings": frame}, {"embeddings": changes}, models.usage, time.monotonic() - started)
    return UpdatedEmbeddings(updated, new.height)


def _read(index: Index, model: str, made_with: str | None) -> _Texts:
    """The texts of rows that changed since a run `made_with` the same; all for None, or without such a run."""
    with index.working.connect() as connection:
        changed = None if made_with is None else changes_since_mark(connection, _READER, _TEXTS, made_with)

        def rows(table: str) -> pl.DataFrame:
            if changed is None:
                return connection.sql(_TEXTS[table]).pl()
            among = f"{_TEXTS[table]} WHERE id IN (SELECT unnest($ids::VARCHAR[]))"
            return connection.sql(among, params={"ids": changed.ids(table).to_list()}).pl()

        texts = embedding_texts(rows("text_units"), rows("entities"), rows("community_reports"), model)
        return _Texts(texts, changed, changed.revision if changed else last_revision(connection))


def _known(index: Index, texts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Stored vectors of the texts (fingerprint, vector, model), and the distinct texts without one."""
    fingerprints = texts["fingerprint"].unique().to_list()
    stored = index.working.read(_STORED, {"fingerprints": fingerprints})
    return stored, texts.join(stored, on="fingerprint", how="anti").unique("fingerprint", maintain_order=True)


def _vectors_of(texts: pl.DataFrame, models: IndexingModels) -> pl.Series:
    return pl.Series("vector", models.embed(texts["text"].to_list())).cast(pl.List(pl.Float32))
