"""Embeddings: what searching by similarity needs, computed for new and changed texts only; none without a model."""

from graphrag_assets.defs.reporting import Metadata, table_metadata, usage_metadata
from graphrag_assets.defs.stages import Stage, Step
from graphrag_assets.indexing import embeddings
from graphrag_assets.indexing.stage import usage_sums


def embed_texts(step: Step) -> Metadata:
    """A vector of each text unit, entity and report; no rows without an embedding model."""
    models = step.models(step.index)
    updated, n_embedded = embeddings.update_embeddings(step.index, models, step.run_id)
    more = {"embedded": n_embedded, **usage_metadata(usage_sums(updated.usage))}
    more |= {} if models.embedding_model else {"note": embeddings.NO_MODEL}
    vectors, changes = updated.frames["embeddings"], updated.changes["embeddings"]
    return {"embeddings": table_metadata(step.names, "embeddings", changes, updated.seconds, vectors, **more)}


EMBED_TEXTS = Stage(
    "embed_texts",
    "retrieval",
    {"embeddings": ("text_units", "entities", "community_reports")},
    embeddings.CODE_VERSION,
    embed_texts,
)
