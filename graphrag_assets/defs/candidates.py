"""Candidates of entity resolution: pairs of entities that may be one thing, for somebody to decide on."""

from collections.abc import Iterator

import dagster as dg

from graphrag_assets.defs.index_names import IndexNames
from graphrag_assets.defs.masked import masked
from graphrag_assets.defs.reporting import asset_spec, selected_results, tables_metadata
from graphrag_assets.defs.resources import MODELS, begin_step, needs
from graphrag_assets.indexing import candidates
from graphrag_assets.store import schema


def find_candidates(names: IndexNames) -> dg.AssetsDefinition:
    """The asset of the candidates."""
    deps = ["entities", "relationships", "embeddings"]

    @dg.multi_asset(
        name=names.name("find_candidates"),
        specs=[asset_spec(names, schema.ENTITY_CANDIDATES, "graph", deps, candidates.CODE_VERSION)],
        required_resource_keys=needs(names, MODELS),
    )
    @masked
    def find_candidates(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
        """Pairs of entities that may be one thing, scored, with the decisions on them."""
        index = begin_step(names, context)
        updated = candidates.update_candidates(index, context.run.run_id)
        metadata = tables_metadata(names, updated.changes, updated.seconds, updated.frames, {})
        yield from selected_results(context, index, metadata)

    return find_candidates
