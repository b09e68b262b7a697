"""Embeddings: what searching by similarity needs, computed for new and changed texts only."""

import logging
import time
from typing import NamedTuple

import dagster as dg
import polars as pl

from graphrag_assets.defs.reporting import Metadata, Updated, asset_spec, table_metadata, usage_metadata, usage_sums
from graphrag_assets.defs.resources import GraphIndex, alone
from graphrag_assets.indexing_models import IndexingModels
from graphrag_assets.pipeline.embedding_texts import embedding_texts
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_stage
from graphrag_assets.store.working import replace_table

log = logging.getLogger(__name__)


class UpdatedEmbeddings(NamedTuple):
    """What was written, and how many texts were embedded anew."""

    updated: Updated
    n_embedded: int


@alone("embed_texts")
def update_embeddings(index: GraphIndex, backend: IndexingModels, run_id: str) -> UpdatedEmbeddings:
    """Embed the texts whose fingerprint is new; keep the vectors of the others."""
    started = time.monotonic()
    text_units = index.working.read("SELECT id, context, text FROM text_units")
    entities = index.working.read("SELECT id, title, description FROM entities")
    reports = index.working.read("SELECT id, full_content FROM community_reports")
    stored = index.working.read(
        "SELECT fingerprint, vector, model FROM embeddings "
        "WHERE len(vector) = (SELECT mode(len(vector)) FROM embeddings)"
    ).unique("fingerprint")
    texts = embedding_texts(text_units, entities, reports, backend.embedding_model)
    new = texts.join(stored, on="fingerprint", how="anti").unique("fingerprint", maintain_order=True)
    if others := sorted(set(stored["model"]) - {backend.embedding_model}):
        log.warning(
            "the embedding model is now %s, the vectors are of %s: all %d texts are embedded again",
            backend.embedding_model,
            ", ".join(others),
            new.height,
        )
    vectors = pl.Series("vector", backend.embed(new["text"].to_list())).cast(pl.List(pl.Float32))
    known = pl.concat([stored.drop("model"), new.select("fingerprint").with_columns(vectors)])
    frame = texts.join(known, on="fingerprint", maintain_order="left").select(schema.EMBEDDINGS.column_names)
    with index.working.transaction() as connection:
        changes = {"embeddings": replace_table(connection, schema.EMBEDDINGS, frame)}
        seconds, used = time.monotonic() - started, usage_sums(backend.usage)
        record_stage(connection, run_id, "embed_texts", None, seconds, changes, "embeddings", used)
    updated = Updated({"embeddings": frame}, changes, backend.usage, time.monotonic() - started)
    return UpdatedEmbeddings(updated, new.height)


@dg.multi_asset(
    name="embed_texts",
    specs=[asset_spec(schema.EMBEDDINGS, "retrieval", ["text_units", "entities", "community_reports"])],
)
def embed_texts(context: dg.AssetExecutionContext, index: GraphIndex) -> dg.MaterializeResult:
    """A vector of each text unit, entity and report."""
    written = update_embeddings(index, index.backend(run_id=context.run.run_id), context.run.run_id)
    return dg.MaterializeResult(asset_key="embeddings", metadata=embedding_metadata(*written)["embeddings"])


def embedding_metadata(updated: Updated, n_embedded: int) -> Metadata:
    """Metadata of the embeddings."""
    more = {"embedded": n_embedded, **usage_metadata(updated.usage)}
    vectors = updated.frames["embeddings"]
    return {"embeddings": table_metadata("embeddings", updated.changes["embeddings"], updated.seconds, vectors, **more)}


@dg.definitions
def retrieval() -> dg.Definitions:
    return dg.Definitions(assets=[embed_texts])
