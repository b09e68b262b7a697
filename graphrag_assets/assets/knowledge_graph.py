"""The knowledge graph: the mentions of all batches merged into entities and relationships.

Entities are grouped by normalized title; relationships are undirected pairs. Weights are sums of strengths. A
co-occurrence counted by the embedded default is damped by the cosine of the two ends' sentences (Salton and McGill,
1983, "Introduction to Modern Information Retrieval"), mapped from [0, 1] to [1/2, 1], so that two frequently named
things do not appear related merely because they meet often. It depends on the counts of both ends and of the pair
alone: a new document changes the weights of what it names, not those of the whole graph.
"""

from collections.abc import Callable, Collection
from importlib.resources import files
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.publication import record_inputs_of_run
from graphrag_assets.assets.stage import CODE_VERSIONS, Run, StageResult, stage
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.alias_decisions import SPLIT, decided_aliases
from graphrag_assets.pipeline.resolution import propose_aliases
from graphrag_assets.store import schema
from graphrag_assets.store.connections import ArrowStream
from graphrag_assets.store.decisions import Decision, read_decisions
from graphrag_assets.store.index_database import assign_numbers, numbered, replace_table

MIN_CONCEPT_MENTIONS = 2
"""A common-noun concept that only the embedded default finds becomes an entity when so many text units name it."""
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
# An imported index has resolved its names: rules made for our own extraction would undo its communities.
_OWN = f"m.extractor NOT IN ('{schema.IMPORTED}', '{schema.DENIED}')"
_BY_MODEL = f"NOT starts_with(m.extractor, '{EXTRACTOR}') AND m.extractor <> '{schema.STATED}'"
_OWN_NAMES = f"""
SELECT m.document_id, m.title, title_key, type,
       CASE WHEN {_BY_MODEL} AND m.n_sentences > 0 THEN text_unit_id END AS text_unit_id,
       coalesce(is_mail AND NOT contains(lower(t.text), lower(m.title)), false) AS in_header
FROM entity_mentions m JOIN text_units t ON t.id = m.text_unit_id
JOIN (SELECT id, contains(raw_data->>'from', '@') AS is_mail FROM documents) d ON d.id = m.document_id
WHERE {_OWN}
"""
_OWN_RELATIONSHIPS = f"""
SELECT document_id, source_key, target_key, type <> '' AND {_BY_MODEL} AS by_model
FROM relationship_mentions m WHERE {_OWN}
"""
_STATED_ALIASES = f"""
SELECT DISTINCT source_key, target_key, extractor = '{schema.DENIED}' AS is_denied FROM relationship_mentions
WHERE type = '{schema.SAME_AS}' AND extractor IN ('{schema.STATED}', '{schema.DENIED}') ORDER BY ALL
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
_GRAPH = files("graphrag_assets.store").joinpath("sql/knowledge_graph.sql").read_text("utf-8")
_TO_SUMMARIZE = """
WITH undescribed AS (
    SELECT key FROM new_entities WHERE description IS NULL
    UNION ALL SELECT key FROM new_relationships WHERE description IS NULL
)
SELECT concat_ws(chr(31), key, nullif(high, '')) AS key, title, description, n, dated FROM said
WHERE concat_ws(chr(31), key, nullif(high, '')) IN (FROM undescribed)
"""


class Graph(NamedTuple):
    """What mentions are merged into, but for descriptions that are to be summarized.

    entities, relationships: the columns of their tables but the number; `description` null: to be summarized; `key`:
    of its name or names; `fingerprint`: of what its description is summarized from; null: of one description at most.
    to_summarize: key, title, description, n (how often it is given), dated (of the newest document that gives it).
    """

    entities: pl.DataFrame
    relationships: pl.DataFrame
    to_summarize: pl.DataFrame

    def described(self, summarize: Callable[[pl.DataFrame], pl.DataFrame]) -> "Graph":
        """Return the graph with the descriptions that are to be summarized."""
        if self.to_summarize.is_empty():
            return self
        summaries = summarize(self.to_summarize).select("key", made="description")
        entities, relationships = (
            rows.join(summaries, on="key", how="left", maintain_order="left")
            .with_columns(pl.coalesce("description", "made", pl.lit("")).alias("description"))
            .drop("made")
            for rows in (self.entities, self.relationships)
        )
        return Graph(entities, relationships, self.to_summarize.clear())

    @property
    def summarized(self) -> pl.DataFrame:
        """Rows of the table of this name: id and fingerprint of what has a summary."""
        ids = pl.concat(rows.select("id", "fingerprint", "description") for rows in (self.entities, self.relationships))
        return ids.drop_nulls().drop("description")


_FROM = ("batch_state", "entity_mentions", "relationship_mentions")


@stage("graph", {"entities": _FROM, "relationships": _FROM}, CODE_VERSIONS["knowledge_graph"])
def knowledge_graph(run: Run) -> StageResult:
    """Resolve names, merge mentions, number new rows, and write what differs.

    Descriptions are summarized where something else is said than before.
    """
    index, models = run.index, run.models
    record_inputs_of_run(index)
    aliases = resolved_aliases(index)
    with index.working.connect() as connection:
        graph = merged(connection, aliases, models.summarizer)
    described = graph.described(models.summarize)
    # A failed summary is tried again by the next run, and the others of this one, which the ledger has.
    failed = any(used.failures for used in models.usage.values())
    summarized = (graph if failed else described).summarized
    with index.working.transaction() as connection:
        assign_numbers(connection, "entities", described.entities.select("id", "title_key"))
        assign_numbers(connection, "relationships", described.relationships.select("id", "source", "target"))
        for name, query in NUMBERED.items():
            assign_numbers(connection, name, query)
        frames = {
            schema.ENTITY_ALIASES: aliases,
            schema.ENTITIES: numbered(connection, "entities", described.entities),
            schema.RELATIONSHIPS: numbered(connection, "relationships", described.relationships),
        }
        changes = {table.name: replace_table(connection, table, frame) for table, frame in frames.items()}
        replace_table(connection, schema.SUMMARIZED, summarized)
    return StageResult(changes)


def resolved_aliases(index: Index) -> pl.DataFrame:
    """Return the aliases in force: what the rules find in all names, changed by decisions of people and judges."""
    names, related, stated = index.working.read_all(_OWN_NAMES, _OWN_RELATIONSHIPS, _STATED_ALIASES)
    # The decisions of the file, and of pairs that it lacks those that files of facts state.
    decided = {one.key: one for one in read_decisions(index.settings.index_folder)}
    for name, other, is_denied in stated.iter_rows():
        one = Decision("reject" if is_denied else "accept", name, other)
        decided.setdefault(one.key, one)

    def read_named(keys: Collection[str]) -> pl.DataFrame:
        return index.working.read(_NAMED_AS, {"keys": sorted(keys)})

    proposed = propose_aliases(names, related)
    return decided_aliases(proposed, [decided[key] for key in sorted(decided)], read_named)


def merged(connection: duckdb.DuckDBPyConnection, aliases: pl.DataFrame, summarizer: str) -> Graph:
    """Return the graph of all mentions, independent of their order; `aliases` are those in force.

    Descriptions that another `summarizer` has made are to be summarized again.
    """
    keys = aliases.filter(rule=SPLIT)["title_key"].unique()
    values = {
        "embedded": EXTRACTOR,
        "fewest_units": MIN_CONCEPT_MENTIONS,
        "made_with": f"{CODE_VERSIONS['knowledge_graph']} {summarizer}",
    }
    connection.create_function("entity_id", _entity_id, ["VARCHAR"], "VARCHAR")
    connection.create_function("relationship_id", _relationship_id, ["VARCHAR", "VARCHAR"], "VARCHAR")
    connection.register("aliases", ArrowStream(aliases))
    things = pl.DataFrame({"key": keys, "title": keys.str.to_titlecase()})
    connection.register("things", ArrowStream(things))
    try:
        for statement in connection.extract_statements(_GRAPH):
            connection.execute(statement, {name: values[name] for name in statement.named_parameters})
    finally:
        connection.remove_function("entity_id").remove_function("relationship_id")
    return Graph(
        *(
            pl.DataFrame(connection.sql(query))
            for query in ("FROM new_entities", "FROM new_relationships", _TO_SUMMARIZE)
        )
    )


def _entity_id(key: str) -> str:
    return stable_id("entity", key)


def _relationship_id(low: str, high: str) -> str:
    return stable_id("relationship", low, high)
