"""The knowledge graph: mentions of all batches merged into entities and relationships."""

import time
from collections.abc import Iterator

import dagster as dg
import polars as pl

from graphrag_assets.defs.reporting import (
    Metadata,
    Updated,
    asset_spec,
    selected_results,
    table_metadata,
    usage_metadata,
    usage_sums,
)
from graphrag_assets.defs.resources import GraphIndex, alone
from graphrag_assets.indexing_models import IndexingModels
from graphrag_assets.pipeline.alias_decisions import with_decisions
from graphrag_assets.pipeline.merging import merge
from graphrag_assets.pipeline.resolution import propose_aliases
from graphrag_assets.store import schema
from graphrag_assets.store.batches import inputs_of, record_inputs, record_stage
from graphrag_assets.store.working import assign_numbers, numbered, replace_tables

# Numbers are given in this order; `content` is what a row is known by when it turns up under another id.
NUMBERED = {
    "documents": "SELECT id, content_hash AS content, batch, source, row_number FROM documents",
    "text_units": "SELECT t.id, md5(t.text) AS content, d.batch, d.source, d.row_number, t.ordinal "
    "FROM text_units t JOIN documents d ON d.id = t.document_id",
    "covariates": "SELECT c.id, "
    "md5(concat_ws(chr(31), c.subject_key, c.object_key, c.type, c.description, c.source_text)) AS content, "
    "d.batch, d.source, d.row_number, t.ordinal, c.subject_key FROM covariates c "
    "JOIN text_units t ON t.id = c.text_unit_id JOIN documents d ON d.id = t.document_id",
}


@alone("knowledge_graph")
def update_graph(index: GraphIndex, backend: IndexingModels, run_id: str) -> Updated:
    """Decide aliases, merge mentions, number what is new, write what differs."""
    started = time.monotonic()
    mentions, pairs, stored, batches = index.working.read_tables(
        "entity_mentions", "relationship_mentions", "entity_aliases", "batch_state"
    )
    text_units = index.working.read("SELECT id, n_sentences FROM text_units")
    # An imported index has decided on its names: rules for what this project extracts would undo its communities.
    own = mentions.filter(pl.col("extractor") != schema.IMPORTED)
    aliases = with_decisions(propose_aliases(own), stored)
    graph = merge(mentions, pairs, text_units, aliases, index.settings.min_concept_mentions, backend.summarize)
    with index.working.transaction() as connection:
        for table, order in NUMBERED.items():
            assign_numbers(connection, table, connection.sql(order).pl())
        assign_numbers(connection, "entities", graph.entities.select("id", "title_key"))
        assign_numbers(connection, "relationships", graph.relationships.select("id", "source", "target"))
        frames = {
            schema.ENTITY_ALIASES: aliases,
            schema.ENTITIES: numbered(connection, "entities", graph.entities),
            schema.RELATIONSHIPS: numbered(connection, "relationships", graph.relationships),
        }
        changes = replace_tables(connection, frames)
        seconds, used = time.monotonic() - started, usage_sums(backend.usage)
        record_inputs(connection, "graph", inputs_of(batches), run_id)
        record_stage(connection, run_id, "knowledge_graph", None, seconds, changes, "entities", used)
    by_name = {table.name: frame for table, frame in frames.items()}
    return Updated(by_name, changes, backend.usage, time.monotonic() - started)


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
    """Mentions of all batches become entities and relationships."""
    updated = update_graph(index, index.backend(run_id=context.run.run_id), context.run.run_id)
    yield from selected_results(context, graph_metadata(updated))


def graph_metadata(updated: Updated) -> Metadata:
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


@dg.definitions
def graph() -> dg.Definitions:
    return dg.Definitions(assets=[knowledge_graph])
