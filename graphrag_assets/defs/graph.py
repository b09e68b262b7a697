"""The knowledge graph: mentions of all batches merged into entities and relationships."""

from collections.abc import Iterator

import dagster as dg

from graphrag_assets.defs.index_names import BATCH_STATE, IndexNames
from graphrag_assets.defs.masked import masked
from graphrag_assets.defs.options import GraphOptions, cache_not_before
from graphrag_assets.defs.reporting import Metadata, asset_spec, selected_results, tables_metadata, usage_metadata
from graphrag_assets.defs.resources import MODELS, begin_step, needs
from graphrag_assets.indexing import knowledge_graph as stage
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.stage import StageResult, usage_sums
from graphrag_assets.store import schema

_DEPENDENCIES = {
    schema.ENTITY_ALIASES: [BATCH_STATE, "entity_mentions"],
    schema.ENTITIES: [BATCH_STATE, "entity_mentions", "relationship_mentions", "entity_aliases"],
    schema.RELATIONSHIPS: [BATCH_STATE, "entity_mentions", "relationship_mentions", "entity_aliases"],
}


def knowledge_graph(names: IndexNames) -> dg.AssetsDefinition:
    """The assets of entities, relationships and aliases."""

    @dg.multi_asset(
        name=names.name("knowledge_graph"),
        can_subset=True,
        specs=[asset_spec(names, table, "graph", deps, stage.CODE_VERSION) for table, deps in _DEPENDENCIES.items()],
        required_resource_keys=needs(names, MODELS),
    )
    @masked
    def knowledge_graph(context: dg.AssetExecutionContext, config: GraphOptions) -> Iterator[dg.MaterializeResult]:
        """Entities and relationships, merged from the mentions of all batches."""
        index, run = begin_step(names, context), context.run
        models = index.models(run_id=run.run_id, cache_not_before=cache_not_before(context.instance, run, config))
        updated = stage.knowledge_graph(index, models, run.run_id, from_scratch=config.rerun != "NOTHING")
        yield from selected_results(context, index, graph_metadata(names, index, updated))

    return knowledge_graph


_DEGREES = "SELECT coalesce(avg(degree), 0) AS mean_degree, coalesce(max(degree), 0) AS max_degree FROM entities"


def graph_metadata(names: IndexNames, index: Index, updated: StageResult) -> Metadata:
    """Metadata of the graph's tables; the entities' with their degrees."""
    degrees = index.working.read(_DEGREES).row(0, named=True)
    more = {"entities": {**degrees, **usage_metadata(usage_sums(updated.usage))}}
    previews = updated.frames | {"entities": updated.frames["entities"].sort("degree", descending=True)}
    return tables_metadata(names, updated.changes, updated.seconds, previews, more)
