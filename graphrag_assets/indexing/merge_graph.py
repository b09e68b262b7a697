"""The knowledge graph: mentions of all batches merged into entities and relationships."""

import logging
import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult, sums_of_changes, usage_sums
from graphrag_assets.pipeline.alias_decisions import decided_aliases, decisions
from graphrag_assets.pipeline.alias_updates import UpdatedAliases, update_aliases
from graphrag_assets.pipeline.merging import MIN_CONCEPT_MENTIONS, PAIR_SEPARATOR, Graph, merge
from graphrag_assets.pipeline.repeated_lines import SAMPLE, repeated_lines, without_lines
from graphrag_assets.pipeline.resolution import propose_aliases, resolve_names
from graphrag_assets.pipeline.touched import (
    Replacement,
    Stored,
    part_of,
    replacement,
    replacement_in_range,
    touched_keys,
)
from graphrag_assets.runtime.tracing import traced
from graphrag_assets.store import schema
from graphrag_assets.store.batches import inputs_of, record_inputs, record_stage
from graphrag_assets.store.change_log import Changed, changes_since_mark, last_revision, remove_mark, set_mark
from graphrag_assets.store.connections import one_value
from graphrag_assets.store.decisions import Decision, read_decisions
from graphrag_assets.store.working import Changes, assign_numbers, numbered, replace_rows

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


CODE_VERSION = "6"
"""Incremented when the same inputs give other rows."""

READER = "knowledge_graph"
_MENTIONS = ("entity_mentions", "relationship_mentions")
_READ = (*NUMBERED, *_MENTIONS)
# An imported index has resolved its names: rules made for our own extraction would undo its communities.
_NAMED = "document_id, title, title_key, type"
_IS_OWN = f"extractor NOT IN ('{schema.IMPORTED}', '{schema.DENIED}')"
_OWN = f"SELECT {_NAMED} FROM entity_mentions WHERE {_IS_OWN}"
_ALIASES = "FROM entity_aliases ORDER BY ALL"
_STATED_ALIASES = f"""
SELECT DISTINCT source_key, target_key, extractor = '{schema.DENIED}' AS is_denied FROM relationship_mentions
WHERE type = '{schema.SAME_AS}' AND extractor IN ('{schema.STATED}', '{schema.DENIED}') ORDER BY ALL
"""
_SAMPLE = "SELECT id FROM documents ORDER BY id LIMIT $limit"
_DESCRIBED = """
SELECT DISTINCT document_id, description FROM (
    SELECT document_id, description, extractor FROM entity_mentions
    UNION ALL SELECT document_id, description, extractor FROM relationship_mentions
)
WHERE document_id IN (SELECT unnest($documents::VARCHAR[])) AND starts_with(extractor, $extractor) AND description <> ''
"""
_DATES = "SELECT id AS document_id, document_date FROM documents WHERE document_date IS NOT NULL"
_NAMED_IN = """
WITH named AS (SELECT unnest($documents::VARCHAR[]) AS document_id)
SELECT title_key AS key FROM entity_mentions SEMI JOIN named USING (document_id)
UNION SELECT unnest([source_key, target_key]) FROM relationship_mentions SEMI JOIN named USING (document_id)
"""
_NAMED_AS = """
WITH wanted AS (SELECT unnest($keys::VARCHAR[]) AS key), named AS (
    SELECT document_id, title_key AS key, type FROM entity_mentions
    UNION ALL SELECT document_id, unnest([source_key, target_key]), '' FROM relationship_mentions
    UNION ALL SELECT document_id, unnest([subject_key, object_key]), '' FROM covariates
)
SELECT document_id, d.source, d.title, key, n.type, count(*) AS n
FROM named n SEMI JOIN wanted USING (key) JOIN documents d ON d.id = n.document_id GROUP BY ALL
"""
_UNDESCRIBED = "* REPLACE ('' AS description)"
_KNOWN = "title_key, title, type, n_sentences"
_ENDS = ("source_id", "target_id")
MENTIONS_PER_PART = 100_000
"""More mentions are merged range by range of their names, in ranges of so many or more."""
MAX_RANGES = 20
"""Of a larger graph the ranges are larger, because each range reads the neighbors of its names, too."""
# Not logged, as the entities are: rows that differ in nothing else are not written again.
_COMBINED_DEGREES = """
WITH moved AS MATERIALIZED (SELECT unnest($moved::VARCHAR[]) AS id)
UPDATE relationships SET combined_degree = s.degree + t.degree FROM entities s, entities t
WHERE s.id = source_id AND t.id = target_id AND combined_degree <> s.degree + t.degree AND relationships.id IN (
    SELECT id FROM relationships WHERE source_id IN (FROM moved)
    UNION SELECT id FROM relationships WHERE target_id IN (FROM moved)
)
"""
_NAMES = """
WITH named AS (
    SELECT title_key AS key, count(*) AS n FROM entity_mentions GROUP BY title_key
    UNION ALL SELECT source_key, 0 FROM relationship_mentions
    UNION ALL SELECT target_key, 0 FROM relationship_mentions
    UNION ALL SELECT title_key, 0 FROM new_aliases
    UNION ALL SELECT title_key, 0 FROM entities
)
SELECT key, (sum(sum(n)) OVER (ORDER BY key) // $per_part)::BIGINT AS place FROM named GROUP BY key ORDER BY key
"""


class _Inputs(NamedTuple):
    """What the graph is merged from; `changed` is None if everything is to be merged, with `revision` as its mark.

    `own`: the mentions that aliases are proposed from, if they all are; else `updated` aliases, or None if no mention
    has changed. `batches`: the hash of their revisions. `repeated`: the lines that most documents repeat. `decided`:
    decisions on names.
    """

    own: pl.DataFrame | None
    updated: UpdatedAliases | None
    stored_aliases: pl.DataFrame
    batches: str
    changed: Changed | None
    revision: int
    repeated: list[str]
    decided: list[Decision]


@exclusive("knowledge_graph")
@traced("knowledge_graph")
def merge_graph(index: Index, models: IndexingModels, run_id: str, from_scratch: bool = False) -> StageResult:
    """Resolve aliases, merge mentions, number new rows, and write what differs.

    Only what the changes since the last run touch is merged, unless settings, models or decisions on aliases
    have changed, or with `from_scratch`.

    The frames of the result hold the rows merged.
    """
    started = time.monotonic()
    inputs = _read(index, models, from_scratch)
    aliases, names, families = _resolved(index, inputs)
    inputs = inputs._replace(own=None)  # as many rows as the corpus has
    *ranges, last = _ranges(index, aliases, inputs)
    earlier = [_write_range(index, models, aliases, inputs.repeated, one) for one in ranges]
    merged = _merge(index, models, aliases, inputs.repeated, last)
    graph = merged.graph
    used = usage_sums(models.usage)
    with index.working.transaction() as connection:
        _assign_numbers(connection, inputs.changed)
        frames = {schema.ENTITY_ALIASES: aliases, **_numbered(connection, graph)}
        changes = sums_of_changes([*earlier, _write(connection, frames, merged)])
        if names is not None:
            replace_rows(connection, schema.RESOLVED_NAMES, names, "family", families)
        record_inputs(connection, "graph", inputs.batches, run_id)
        record_stage(connection, run_id, "knowledge_graph", None, time.monotonic() - started, changes, "entities", used)
        if not any(sums["failures"] for sums in used.values()):  # a failed summary is tried again
            made_with = _made_with(models, aliases, inputs.repeated, inputs.decided)
            set_mark(connection, READER, _READ, inputs.revision, made_with)
    by_name = {table.name: frame for table, frame in frames.items()}
    return StageResult(by_name, changes, models.usage, time.monotonic() - started)


def _read(index: Index, models: IndexingModels, from_scratch: bool) -> _Inputs:
    with index.working.connect() as connection:
        aliases = connection.sql(_ALIASES).pl()
        repeated = _repeated_lines(connection)
        decided = _decided(index, connection)
        changed = None
        if not from_scratch:
            made_with = _made_with(models, aliases, repeated, decided)
            changed = changes_since_mark(connection, READER, _READ, made_with)
        mentioned = None if changed is None else changed.of("entity_mentions")["concerns"]
        # A decision may join names of any two families, and a split one concerns all that a document names.
        all_names = mentioned is None or (decisions(aliases).height > 0 and mentioned.len() > 0)
        all_names |= changed is not None and bool(decided) and changed.rows.height > 0
        own, updated = connection.sql(_OWN).pl() if all_names else None, None
        if mentioned is not None and mentioned.len() and not all_names:
            updated = _update_aliases(connection, aliases, *(set(mentioned.list.get(place)) for place in (0, 1)))
        revision = changed.revision if changed else last_revision(connection)
        return _Inputs(own, updated, aliases, inputs_of(connection), changed, revision, repeated, decided)


def _decided(index: Index, connection: duckdb.DuckDBPyConnection) -> list[Decision]:
    """The decisions on names: those of the file, and of pairs that it lacks those that files of facts state."""
    decided = {one.key: one for one in read_decisions(index.settings.index_folder)}
    for name, other, is_denied in connection.execute(_STATED_ALIASES).fetchall():
        one = Decision("reject" if is_denied else "accept", name, other)
        decided.setdefault(one.key, one)
    return [decided[key] for key in sorted(decided)]


def _repeated_lines(connection: duckdb.DuckDBPyConnection) -> list[str]:
    documents = connection.sql(_SAMPLE, params={"limit": SAMPLE}).pl()["id"].to_list()
    described = connection.sql(_DESCRIBED, params={"documents": documents, "extractor": EXTRACTOR}).pl()
    return repeated_lines(described, len(documents))


def _update_aliases(
    connection: duckdb.DuckDBPyConnection, stored: pl.DataFrame, keys: set[str], documents: set[str]
) -> UpdatedAliases:
    def read_mentions(column: str, values: Collection[str]) -> pl.DataFrame:
        return _rows(connection, "entity_mentions", values, column, shown=_NAMED, among=_IS_OWN)

    def read_names(column: str, values: Collection[str]) -> pl.DataFrame:
        return _rows(connection, "resolved_names", values, column)

    return update_aliases(keys, documents, stored, read_mentions, read_names)


def _resolved(index: Index, inputs: _Inputs) -> tuple[pl.DataFrame, pl.DataFrame | None, pl.Series | None]:
    """The aliases, and the rows of resolved_names to write: those of some families, or all, or none for None."""
    if inputs.updated is not None:
        return inputs.updated
    if inputs.own is None:
        return inputs.stored_aliases, None, None
    names = resolve_names(inputs.own)

    def read_named(keys: Collection[str]) -> pl.DataFrame:
        return index.working.read(_NAMED_AS, {"keys": sorted(keys)})

    proposals = propose_aliases(inputs.own, names)
    return decided_aliases(proposals, inputs.stored_aliases, inputs.decided, read_named), names, None


def _made_with(models: IndexingModels, aliases: pl.DataFrame, repeated: list[str], decided: list[Decision]) -> str:
    """Hash of what the graph depends on besides mentions. People change decisions on aliases past the change log."""
    by_people = [*decisions(aliases).sort(pl.all()).iter_rows(), *(each.effect for each in decided)]
    made_with = CODE_VERSION, MIN_CONCEPT_MENTIONS, models.summarizer
    return stable_id("graph", *made_with, *by_people, *repeated)


class _Range(NamedTuple):
    """Names to merge: those that changes touch, or, `of_all`, a range of all names up to the next (None: the last)."""

    keys: set[str]
    of_all: bool = False
    end: str | None = None


def _ranges(index: Index, aliases: pl.DataFrame, inputs: _Inputs) -> list[_Range]:
    """The names to merge: the touched ones, or all, in ranges where these are many, so that memory is bounded."""
    if inputs.changed is not None:
        changed = pl.concat([inputs.changed.concerns(table)["key"] for table in _MENTIONS]).drop_nulls().to_list()
        if redated := _redated(inputs.changed):
            changed += index.working.read(_NAMED_IN, {"documents": redated})["key"].to_list()
        return [_Range(touched_keys(changed, inputs.stored_aliases, aliases))]
    with index.working.connect() as connection:
        mentions = one_value(connection, "SELECT count(*) FROM entity_mentions")
        connection.register("new_aliases", aliases)
        named = connection.sql(_NAMES, params={"per_part": max(MENTIONS_PER_PART, mentions // MAX_RANGES)}).pl()
        connection.unregister("new_aliases")
    parts = [part["key"].to_list() for part in named.partition_by("place", maintain_order=True)] or [[]]
    ends = [keys[0] for keys in parts[1:]]
    return [_Range(set(keys) - {""}, True, end) for keys, end in zip(parts, [*ends, None], strict=True)]


def _write_range(
    index: Index, models: IndexingModels, aliases: pl.DataFrame, repeated: list[str], names: _Range
) -> dict[str, Changes]:
    """Write the part of the graph in a range. The mark goes, so that after a crash the next run begins again."""
    merged = _merge(index, models, aliases, repeated, names)
    log.info("%d entities merged", merged.graph.entities.height)
    with index.working.transaction() as connection:
        remove_mark(connection, READER)
        return _write(connection, _numbered(connection, merged.graph), merged)


def _redated(changed: Changed) -> list[str]:
    """The documents whose date has changed, which decides between types and orders descriptions."""
    dates = changed.of("documents").select("id", date=pl.col("concerns").list.get(1, null_on_oob=True))
    return dates.group_by("id").agg(pl.col("date").n_unique()).filter(pl.col("date") > 1)["id"].to_list()


def _merge(
    index: Index, models: IndexingModels, aliases: pl.DataFrame, repeated: list[str], names: _Range
) -> Replacement:
    """The rows of the names; in a range of all, without relationships to names of later ranges."""
    with index.working.connect() as connection:

        def read_mentions(given: pl.Series) -> pl.DataFrame:
            return without_lines(_rows(connection, "entity_mentions", given, "title_key"), repeated, "n_sentences")

        def read_undescribed(given: pl.Series) -> pl.DataFrame:
            if repeated:
                return read_mentions(given).with_columns(description=pl.lit(""))
            return _rows(connection, "entity_mentions", given, "title_key", shown=_UNDESCRIBED)

        def read_pairs(given: pl.Series) -> pl.DataFrame:
            pairs = _rows(connection, "relationship_mentions", given, "source_key", "target_key")
            return without_lines(pairs, repeated, "strength")

        part = part_of(
            names.keys,
            aliases,
            read_mentions,
            read_undescribed,
            read_pairs,
            # While a whole graph is merged range by range, what is stored is of another graph.
            lambda given: _rows(connection, "entities", () if names.of_all else given, "id", shown=_KNOWN),
        )

    def summarize(descriptions: pl.DataFrame) -> pl.DataFrame:
        """Without those of neighbors, which are as they were."""
        ends = pl.col("key").str.split_exact(PAIR_SEPARATOR, 1).struct
        is_of_part = pl.any_horizontal(ends[place].is_in(list(part.keys)) for place in (0, 1))
        return models.summarize(descriptions.filter(is_of_part))

    documents = pl.concat([part.mentions["document_id"], part.pairs["document_id"]]).unique().to_list()
    dates = index.working.read(f"{_DATES} AND id IN (SELECT unnest($documents::VARCHAR[]))", {"documents": documents})
    graph = merge(part.mentions, part.pairs, aliases, MIN_CONCEPT_MENTIONS, summarize, known=part.known, dates=dates)
    with index.working.connect() as connection:
        stored = Stored(
            lambda given: _rows(connection, "entities", given, "id"),
            lambda given: _rows(connection, "entities", given, "id", shown="id, degree"),
            lambda given: _rows(connection, "relationships", given, *_ENDS, shown="id, source_id, target_id"),
        )
        if names.of_all:
            return replacement_in_range(part, graph, names.end, stored)
        return replacement(part, graph, stored)


def _rows(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    given: Collection[str],
    *columns: str,
    shown: str = "*",
    among: str = "true",
) -> pl.DataFrame:
    """The rows of a table, `among` those of a condition, of which a column has one of the values `given`."""
    wanted = "(SELECT unnest($given::VARCHAR[]))"
    # By rowid, so that nothing is read of other rows but keys.
    found = " UNION ".join(f"SELECT rowid FROM {table} WHERE {column} IN {wanted}" for column in columns)
    query = f"SELECT {shown} FROM {table} WHERE rowid IN ({found}) AND {among} ORDER BY ALL"
    return connection.sql(query, params={"given": list(given)}).pl()


def _assign_numbers(connection: duckdb.DuckDBPyConnection, changed: Changed | None) -> None:
    for table, query in NUMBERED.items():
        if changed is None:
            assign_numbers(connection, table, query)
        elif len(ids := changed.ids(table)):
            new = connection.sql(
                f"FROM ({query}) WHERE id IN (SELECT unnest($ids::VARCHAR[]))", params={"ids": ids.to_list()}
            )
            assign_numbers(connection, table, new.pl(), present=table)


def _numbered(connection: duckdb.DuckDBPyConnection, graph: Graph) -> dict[schema.Table, pl.DataFrame]:
    """Entities and relationships with their numbers; new ones get the next."""
    assign_numbers(connection, "entities", graph.entities.select("id", "title_key"))
    assign_numbers(connection, "relationships", graph.relationships.select("id", "source", "target"))
    return {
        schema.ENTITIES: numbered(connection, "entities", graph.entities),
        schema.RELATIONSHIPS: numbered(connection, "relationships", graph.relationships),
    }


def _write(
    connection: duckdb.DuckDBPyConnection, frames: Mapping[schema.Table, pl.DataFrame], merged: Replacement
) -> dict[str, Changes]:
    ids = {schema.ENTITIES: merged.entity_ids, schema.RELATIONSHIPS: merged.relationship_ids}
    changes = {}
    for table, frame in frames.items():
        if table is schema.RELATIONSHIPS and merged.moved is not None:  # with the entities' new degrees
            connection.execute(_COMBINED_DEGREES, {"moved": merged.moved.to_list()})
        changes[table.name] = replace_rows(connection, table, frame, "id", ids.get(table))
    return changes
