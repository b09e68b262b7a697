"""The knowledge graph: mentions of all batches merged into entities and relationships."""

import logging
import time
from collections.abc import Mapping
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult, usage_sums
from graphrag_assets.indexing_models import IndexingModels
from graphrag_assets.pipeline.alias_decisions import decisions, with_decisions
from graphrag_assets.pipeline.merging import PAIR_SEPARATOR, Graph, merge
from graphrag_assets.pipeline.pruning import PruningOptions
from graphrag_assets.pipeline.resolution import propose_aliases
from graphrag_assets.pipeline.touched import part_of, replacement, touched_keys
from graphrag_assets.store import schema
from graphrag_assets.store.batches import inputs_of, record_inputs, record_stage
from graphrag_assets.store.change_log import Changed, changes_since_mark, last_revision, set_mark
from graphrag_assets.store.working import Changes, assign_numbers, numbered, replace_rows, replace_table, replace_tables

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

_READER = "knowledge_graph"
_MENTIONS = ("entity_mentions", "relationship_mentions")
_READ = (*NUMBERED, *_MENTIONS)
# An imported index has resolved its names: rules made for our own extraction would undo its communities.
_OWN = f"SELECT document_id, title, title_key, type FROM entity_mentions WHERE extractor <> '{schema.IMPORTED}'"
_ALIASES = "FROM entity_aliases ORDER BY ALL"
_BATCHES = "SELECT batch, revision FROM batch_state"


class _Inputs(NamedTuple):
    """What the graph is merged from; `changed` is None if everything is to be merged, with `revision` as its mark.

    `own`: the mentions that aliases are proposed from; None if none has changed.
    """

    own: pl.DataFrame | None
    stored_aliases: pl.DataFrame
    batches: pl.DataFrame
    changed: Changed | None
    revision: int


class _Merged(NamedTuple):
    """The graph, or the part of it that replaces the rows of some ids (None: all rows)."""

    graph: Graph
    entity_ids: pl.Series | None = None
    relationship_ids: pl.Series | None = None


@exclusive("knowledge_graph")
def merge_graph(index: Index, models: IndexingModels, run_id: str, from_scratch: bool = False) -> StageResult:
    """Resolve aliases, merge mentions, number new rows, and write what differs.

    Only what the changes since the last run touch is merged, unless settings, models or decisions on aliases
    have changed, entities are pruned by a limit, or with `from_scratch`.

    The frames of the result hold the rows merged.
    """
    started = time.monotonic()
    inputs = _read(index, models, from_scratch)
    aliases = inputs.stored_aliases
    if inputs.own is not None:
        aliases = with_decisions(propose_aliases(inputs.own), aliases)
    merged = _merge(index, models, aliases, inputs)
    graph = merged.graph
    pruned = {"entities": graph.n_pruned_entities, "relationships": graph.n_pruned_relationships}
    if any(pruned.values()):
        log.info("%(entities)d entities and %(relationships)d relationships are pruned", pruned)
    used = usage_sums(models.usage)
    with index.working.transaction() as connection:
        _assign_numbers(connection, graph, inputs.changed)
        frames = {
            schema.ENTITY_ALIASES: aliases,
            schema.ENTITIES: numbered(connection, "entities", graph.entities),
            schema.RELATIONSHIPS: numbered(connection, "relationships", graph.relationships),
        }
        changes = _write(connection, frames, merged)
        record_inputs(connection, "graph", inputs_of(inputs.batches), run_id)
        record_stage(connection, run_id, "knowledge_graph", None, time.monotonic() - started, changes, "entities", used)
        if not any(sums["failures"] for sums in used.values()):  # a failed summary is tried again
            made_with = _made_with(index, models, aliases)
            set_mark(connection, _READER, _READ, inputs.revision, made_with)
    by_name = {table.name: frame for table, frame in frames.items()}
    return StageResult(by_name, changes, models.usage, time.monotonic() - started, pruned)


def _read(index: Index, models: IndexingModels, from_scratch: bool) -> _Inputs:
    with index.working.connect() as connection:
        aliases = connection.sql(_ALIASES).pl()
        changed = None
        if not from_scratch and _pruning(index) == PruningOptions():
            made_with = _made_with(index, models, aliases)
            changed = changes_since_mark(connection, _READER, _READ, made_with)
        mentions_changed = changed is None or len(changed.ids(*_MENTIONS))
        own, batches = connection.sql(_OWN).pl() if mentions_changed else None, connection.sql(_BATCHES).pl()
        return _Inputs(own, aliases, batches, changed, changed.revision if changed else last_revision(connection))


def _made_with(index: Index, models: IndexingModels, aliases: pl.DataFrame) -> str:
    """Hash of what the graph depends on besides mentions. People change decisions on aliases past the change log."""
    settings, decided = index.settings, decisions(aliases).sort(pl.all()).iter_rows()
    return stable_id("graph", CODE_VERSION, settings.min_concept_mentions, _pruning(index), models.summarizer, *decided)


def _pruning(index: Index) -> PruningOptions:
    settings = index.settings
    return PruningOptions(settings.prune_min_frequency, settings.prune_min_degree, settings.prune_min_weight_percentile)


def _merge(index: Index, models: IndexingModels, aliases: pl.DataFrame, inputs: _Inputs) -> _Merged:
    minimum = index.settings.min_concept_mentions
    if inputs.changed is None:
        mentions, pairs = index.working.read_tables(*_MENTIONS)
        return _Merged(merge(mentions, pairs, aliases, minimum, models.summarize, _pruning(index)))
    changed = pl.concat([inputs.changed.concerns(table)["key"] for table in _MENTIONS]).drop_nulls().to_list()
    keys = touched_keys(changed, inputs.stored_aliases, aliases)
    with index.working.connect() as connection:
        part = part_of(
            keys,
            aliases,
            lambda given: _rows(connection, "entity_mentions", given, "title_key"),
            lambda given: _rows(connection, "relationship_mentions", given, "source_key", "target_key"),
        )

    def summarize(descriptions: pl.DataFrame) -> pl.DataFrame:
        """Without those of neighbors, which are as they were."""
        ends = pl.col("key").str.split(PAIR_SEPARATOR)
        return models.summarize(descriptions.filter(ends.list.eval(pl.element().is_in(list(part.keys))).list.any()))

    graph = merge(part.mentions, part.pairs, aliases, minimum, summarize)
    with index.working.connect() as connection:
        replaced = replacement(
            part,
            graph,
            lambda given: _rows(connection, "entities", given, "id"),
            lambda given: _rows(connection, "relationships", given, "source_id", "target_id"),
        )
    return _Merged(
        Graph(replaced.entities.sort("id"), replaced.relationships.sort("id")),
        replaced.entity_ids,
        replaced.relationship_ids,
    )


def _rows(connection: duckdb.DuckDBPyConnection, table: str, given: pl.Series, *columns: str) -> pl.DataFrame:
    """The rows of which a column has one of the values given."""
    where = " OR ".join(f"{column} IN (SELECT unnest($given::VARCHAR[]))" for column in columns)
    return connection.sql(f"FROM {table} WHERE {where} ORDER BY ALL", params={"given": given.to_list()}).pl()


def _assign_numbers(connection: duckdb.DuckDBPyConnection, graph: Graph, changed: Changed | None) -> None:
    for table, query in NUMBERED.items():
        if changed is None:
            assign_numbers(connection, table, connection.sql(query).pl())
        elif len(ids := changed.ids(table)):
            new = connection.sql(
                f"FROM ({query}) WHERE id IN (SELECT unnest($ids::VARCHAR[]))", params={"ids": ids.to_list()}
            )
            assign_numbers(connection, table, new.pl(), present=table)
    assign_numbers(connection, "entities", graph.entities.select("id", "title_key"))
    assign_numbers(connection, "relationships", graph.relationships.select("id", "source", "target"))


def _write(
    connection: duckdb.DuckDBPyConnection, frames: Mapping[schema.Table, pl.DataFrame], merged: _Merged
) -> dict[str, Changes]:
    if merged.entity_ids is None or merged.relationship_ids is None:
        return replace_tables(connection, frames)
    given = {schema.ENTITIES: merged.entity_ids, schema.RELATIONSHIPS: merged.relationship_ids}
    changes = {"entity_aliases": replace_table(connection, schema.ENTITY_ALIASES, frames[schema.ENTITY_ALIASES])}
    for table, ids in given.items():
        changes[table.name] = replace_rows(connection, table, frames[table], "id", ids)
    return changes
