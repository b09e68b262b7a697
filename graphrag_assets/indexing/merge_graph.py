"""The knowledge graph: mentions of all batches merged into entities and relationships."""

import logging
import time

from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult, usage_sums
from graphrag_assets.indexing_models import IndexingModels
from graphrag_assets.pipeline.alias_decisions import with_decisions
from graphrag_assets.pipeline.merging import merge
from graphrag_assets.pipeline.pruning import PruningOptions
from graphrag_assets.pipeline.resolution import propose_aliases
from graphrag_assets.store import schema
from graphrag_assets.store.batches import inputs_of, record_inputs, record_stage
from graphrag_assets.store.working import assign_numbers, numbered, replace_tables

log = logging.getLogger(__name__)

# Rows are numbered in this order; `content` identifies a row whose id has changed.
NUMBERED = {
    "documents": "SELECT id, content_hash AS content, batch, source, row_number FROM documents",
    "text_units": "SELECT t.id, md5(t.text) AS content, d.batch, d.source, d.row_number, t.ordinal "
    "FROM text_units t JOIN documents d ON d.id = t.document_id",
    "covariates": "SELECT c.id, "
    "md5(concat_ws(chr(31), c.subject_key, c.object_key, c.type, c.description, c.source_text)) AS content, "
    "d.batch, d.source, d.row_number, t.ordinal, c.subject_key FROM covariates c "
    "JOIN text_units t ON t.id = c.text_unit_id JOIN documents d ON d.id = t.document_id",
}


CODE_VERSION = "2"
"""Incremented when the same inputs give other rows."""


@exclusive("knowledge_graph")
def merge_graph(index: Index, models: IndexingModels, run_id: str) -> StageResult:
    """Resolve aliases, merge mentions, number new rows, and write what differs."""
    started = time.monotonic()
    mentions, pairs, stored, batches = index.working.read_tables(
        "entity_mentions", "relationship_mentions", "entity_aliases", "batch_state"
    )
    # An imported index has resolved its names: rules made for our own extraction would undo its communities.
    own = mentions.filter(mentions["extractor"] != schema.IMPORTED)
    aliases = with_decisions(propose_aliases(own), stored)
    settings = index.settings
    pruning = PruningOptions(
        settings.prune_min_frequency, settings.prune_min_degree, settings.prune_min_weight_percentile
    )
    graph = merge(mentions, pairs, aliases, settings.min_concept_mentions, models.summarize, pruning)
    pruned = {"entities": graph.n_pruned_entities, "relationships": graph.n_pruned_relationships}
    if any(pruned.values()):
        log.info("%(entities)d entities and %(relationships)d relationships are pruned", pruned)
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
        seconds, used = time.monotonic() - started, usage_sums(models.usage)
        record_inputs(connection, "graph", inputs_of(batches), run_id)
        record_stage(connection, run_id, "knowledge_graph", None, seconds, changes, "entities", used)
    by_name = {table.name: frame for table, frame in frames.items()}
    return StageResult(by_name, changes, models.usage, time.monotonic() - started, pruned)
