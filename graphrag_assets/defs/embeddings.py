"""Embeddings: what searching by similarity needs, computed for new and changed texts only; none without a model."""

from collections.abc import Iterator

import dagster as dg

from graphrag_assets.defs.index_names import IndexNames
from graphrag_assets.defs.masked import masked
from graphrag_assets.defs.reporting import Metadata, asset_spec, selected_results, table_metadata, usage_metadata
from graphrag_assets.defs.resources import MODELS, begin_step, needs
from graphrag_assets.indexing import embeddings
from graphrag_assets.indexing.stage import StageResult, usage_sums
from graphrag_assets.store import schema


def embed_texts(names: IndexNames) -> dg.AssetsDefinition:
    """The asset of the embeddings."""
    deps = ["text_units", "entities", "community_reports"]

    @dg.multi_asset(
        name=names.name("embed_texts"),
        specs=[asset_spec(names, schema.EMBEDDINGS, "retrieval", deps, embeddings.CODE_VERSION)],
        required_resource_keys=needs(names, MODELS),
    )
    @masked
    def embed_texts(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
        """A vector of each text unit, entity and report; no rows without an embedding model."""
        index, run_id = begin_step(names, context), context.run.run_id
        models = index.models(run_id=run_id)
        written = embeddings.update_embeddings(index, models, run_id)
        note = "" if models.embedding_model else embeddings.NO_MODEL
        yield from selected_results(context, index, embedding_metadata(names, *written, note))

    return embed_texts


def embedding_metadata(names: IndexNames, updated: StageResult, n_embedded: int, note: str = "") -> Metadata:
    """Metadata of the embeddings; `note`: why there are none."""
    more = {"embedded": n_embedded, **usage_metadata(usage_sums(updated.usage))} | ({"note": note} if note else {})
    vectors, changes = updated.frames["embeddings"], updated.changes["embeddings"]
    return {"embeddings": table_metadata(names, "embeddings", changes, updated.seconds, vectors, **more)}
