"""The knowledge graph: mentions of all batches merged into entities and relationships."""

from collections.abc import Iterator

import dagster as dg

from graphrag_assets.defs.reporting import (
    Metadata,
    asset_spec,
    selected_results,
    table_metadata,
    usage_metadata,
)
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.indexing.merge_graph import merge_graph
from graphrag_assets.indexing.stage import StageResult
from graphrag_assets.store import schema


@dg.multi_asset(
    name="knowledge_graph",
    can_subset=True,
    specs=[
        asset_spec(schema.ENTITY_ALIASES, "graph", ["entity_mentions"]),
        asset_spec(schema.ENTITIES, "graph", ["entity_mentions", "relationship_mentions", "entity_aliases"]),
        asset_spec(schema.RELATIONSHIPS, "graph", ["entity_mentions", "relationship_mentions", "entity_aliases"]),
    ],
)
def knowledge_graph(context: dg.AssetExecutionContext, index: GraphIndex) -> Iterator[dg.MaterializeResult]:
    """Entities and relationships, merged from the mentions of all batches."""
    own, run_id = index.open(), context.run.run_id
    updated = merge_graph(own, own.models(run_id=run_id), run_id)
    yield from selected_results(context, graph_metadata(updated))


def graph_metadata(updated: StageResult) -> Metadata:
    """Metadata of the graph's tables; the entities' with the distribution of degrees."""
    entities = updated.frames["entities"]
    degrees = {"mean_degree": entities["degree"].mean() or 0.0, "max_degree": entities["degree"].max() or 0}
    more = {"entities": {**degrees, **usage_metadata(updated.usage)}}
    return {
        name: table_metadata(
            name,
            updated.changes[name],
            updated.seconds,
            frame.sort("degree", descending=True) if "degree" in frame.columns else frame,
            **more.get(name, {}),
        )
        for name, frame in updated.frames.items()
    }
