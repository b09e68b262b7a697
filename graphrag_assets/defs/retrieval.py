"""Embeddings: what searching by similarity needs, computed for new and changed texts only."""

import time

import dagster as dg
import polars as pl

from graphrag_assets.defs.reporting import asset_spec, table_metadata, usage_metadata
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.pipeline.embedding_texts import embedding_texts
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_stage
from graphrag_assets.store.working import replace_table


@dg.multi_asset(
    name="embed_texts",
    specs=[asset_spec(schema.EMBEDDINGS, "retrieval", ["text_units", "entities", "community_reports"])],
)
def embed_texts(context: dg.AssetExecutionContext, index: GraphIndex) -> dg.MaterializeResult:
    """Embed the texts whose fingerprint is new; keep the vectors of the others."""
    started = time.monotonic()
    text_units = index.working.read("SELECT id, text FROM text_units")
    entities = index.working.read("SELECT id, title, description FROM entities")
    reports = index.working.read("SELECT id, full_content FROM community_reports")
    stored = index.working.read("SELECT fingerprint, vector FROM embeddings").unique("fingerprint")
    backend = index.backend(run_id=context.run.run_id)
    texts = embedding_texts(text_units, entities, reports, backend.embedding_model)
    new = texts.join(stored, on="fingerprint", how="anti").unique("fingerprint", maintain_order=True)
    vectors = pl.Series("vector", backend.embed(new["text"].to_list())).cast(pl.List(pl.Float32))
    known = pl.concat([stored, new.select("fingerprint").with_columns(vectors)])
    frame = texts.join(known, on="fingerprint", maintain_order="left").select(schema.EMBEDDINGS.column_names)
    with index.working.transaction() as connection:
        changes = {"embeddings": replace_table(connection, schema.EMBEDDINGS, frame)}
        record_stage(
            connection,
            context.run.run_id,
            "embed_texts",
            None,
            time.monotonic() - started,
            changes,
            "embeddings",
        )
    more = {"embedded": new.height, **usage_metadata(backend.usage)}
    metadata = table_metadata(changes["embeddings"], time.monotonic() - started, None, **more)
    return dg.MaterializeResult(asset_key="embeddings", metadata=metadata)


@dg.definitions
def retrieval() -> dg.Definitions:
    return dg.Definitions(assets=[embed_texts])
