"""Embeddings of text units, entities and reports, computed for new and changed texts only."""

import logging
import time
from typing import NamedTuple

import polars as pl

from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult, usage_sums
from graphrag_assets.indexing_models import IndexingModels
from graphrag_assets.pipeline.embedding_texts import embedding_texts
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_stage
from graphrag_assets.store.working import replace_table

log = logging.getLogger(__name__)


CODE_VERSION = "2"
"""Incremented when the same inputs give other rows."""


class UpdatedEmbeddings(NamedTuple):
    """The table written, and the number of texts embedded."""

    updated: StageResult
    n_embedded: int


@exclusive("embed_texts")
def update_embeddings(index: Index, models: IndexingModels, run_id: str) -> UpdatedEmbeddings:
    """Embed the texts whose fingerprint is new; keep the vectors of the others."""
    started = time.monotonic()
    text_units = index.working.read("SELECT id, context, text FROM text_units")
    entities = index.working.read("SELECT id, title, description, degree FROM entities")
    reports = index.working.read("SELECT id, full_content FROM community_reports")
    stored = index.working.read(
        "SELECT fingerprint, vector, model FROM embeddings "
        "WHERE len(vector) = (SELECT mode(len(vector)) FROM embeddings)"
    ).unique("fingerprint")
    texts = embedding_texts(text_units, entities, reports, models.embedding_model)
    new = texts.join(stored, on="fingerprint", how="anti").unique("fingerprint", maintain_order=True)
    if others := sorted(set(stored["model"]) - {models.embedding_model}):
        log.warning(
            "The embedding model changed from %s to %s: embedding all %d texts again.",
            ", ".join(others),
            models.embedding_model,
            new.height,
        )
    vectors = _vectors_of(new, models)
    if new.height and stored.height and vectors.list.len()[0] != (size := stored["vector"].list.len()[0]):
        log.warning(
            "%s returns vectors of %d numbers, those of the index have %d: embedding all texts again.",
            models.embedding_model,
            vectors.list.len()[0],
            size,
        )
        stored, new = stored.clear(), texts.unique("fingerprint", maintain_order=True)
        vectors = _vectors_of(new, models)
    known = pl.concat([stored.drop("model"), new.select("fingerprint").with_columns(vectors)])
    frame = texts.join(known, on="fingerprint", maintain_order="left").select(schema.EMBEDDINGS.column_names)
    with index.working.transaction() as connection:
        changes = {"embeddings": replace_table(connection, schema.EMBEDDINGS, frame)}
        seconds, used = time.monotonic() - started, usage_sums(models.usage)
        record_stage(connection, run_id, "embed_texts", None, seconds, changes, "embeddings", used)
    updated = StageResult({"embeddings": frame}, changes, models.usage, time.monotonic() - started)
    return UpdatedEmbeddings(updated, new.height)


def _vectors_of(texts: pl.DataFrame, models: IndexingModels) -> pl.Series:
    return pl.Series("vector", models.embed(texts["text"].to_list())).cast(pl.List(pl.Float32))
