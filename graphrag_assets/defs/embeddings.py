"""Embeddings: what searching by similarity needs, computed for new and changed texts only."""

import dagster as dg

from graphrag_assets.defs.reporting import Metadata, asset_spec, table_metadata, usage_metadata
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.indexing.embeddings import update_embeddings
from graphrag_assets.indexing.stage import StageResult
from graphrag_assets.store import schema


@dg.multi_asset(
    name="embed_texts",
    specs=[asset_spec(schema.EMBEDDINGS, "retrieval", ["text_units", "entities", "community_reports"])],
)
def embed_texts(context: dg.AssetExecutionContext, index: GraphIndex) -> dg.MaterializeResult:
    """A vector of each text unit, entity and report."""
    own, run_id = index.open(), context.run.run_id
    written = update_embeddings(own, own.models(run_id=run_id), run_id)
    return dg.MaterializeResult(asset_key="embeddings", metadata=embedding_metadata(*written)["embeddings"])


def embedding_metadata(updated: StageResult, n_embedded: int) -> Metadata:
    """Metadata of the embeddings."""
    more = {"embedded": n_embedded, **usage_metadata(updated.usage)}
    vectors = updated.frames["embeddings"]
    return {"embeddings": table_metadata("embeddings", updated.changes["embeddings"], updated.seconds, vectors, **more)}
