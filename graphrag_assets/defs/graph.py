"""The knowledge graph: mentions of all batches merged into entities and relationships."""

from graphrag_assets.defs.index_names import BATCH_STATE
from graphrag_assets.defs.options import GraphOptions
from graphrag_assets.defs.reporting import Metadata, tables_metadata, usage_metadata
from graphrag_assets.defs.stages import Stage, Step
from graphrag_assets.indexing import knowledge_graph as stage
from graphrag_assets.indexing.stage import usage_sums
from graphrag_assets.indexing.up_to_date import record_inputs_of_run

_DEGREES = "SELECT coalesce(avg(degree), 0) AS mean_degree, coalesce(max(degree), 0) AS max_degree FROM entities"


def knowledge_graph(step: Step) -> Metadata:
    """Entities and relationships, merged from the mentions of all batches."""
    index = step.index
    record_inputs_of_run(index, step.run_id)
    from_scratch = step.options.rerun != "NOTHING"
    updated = stage.knowledge_graph(index, step.models(index), step.run_id, from_scratch=from_scratch)
    degrees = index.working.read(_DEGREES).row(0, named=True)
    more = {"entities": {**degrees, **usage_metadata(usage_sums(updated.usage))}}
    previews = updated.frames | {"entities": updated.frames["entities"].sort("degree", descending=True)}
    return tables_metadata(step.names, updated.changes, updated.seconds, previews, more)


KNOWLEDGE_GRAPH = Stage(
    "knowledge_graph",
    "graph",
    {
        "entities": (BATCH_STATE, "entity_mentions", "relationship_mentions"),
        "relationships": (BATCH_STATE, "entity_mentions", "relationship_mentions"),
    },
    stage.CODE_VERSION,
    knowledge_graph,
    GraphOptions,
)
