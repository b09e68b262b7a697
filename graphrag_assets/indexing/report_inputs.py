"""What community reports are written from: everything, or what the changes since the last run concern.

A report depends on its community's row, on the entities, relationships and claims inside, and on the reports of its
sub-communities. So a change concerns the communities of the changed rows, of a relationship those with both ends, and
all communities above them.

Reports are written part by part, so that memory is bounded. A part is whole communities of level 0 with all that is
inside: it needs nothing of another.
"""

from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.embedded import REPORTER
from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.index import Index
from graphrag_assets.pipeline.alias_decisions import USER_RULE
from graphrag_assets.pipeline.report_updates import ReportInputs
from graphrag_assets.store import schema
from graphrag_assets.store.change_log import Changed, changes_since_mark, last_revision
from graphrag_assets.store.connections import execute_with, one_value
from graphrag_assets.store.decisions import read_decisions
from graphrag_assets.store.resolved_claims import claims_of_entities

CODE_VERSION = f"4/{REPORTER}"
"""Differs when the same inputs give other reports."""
READER = "write_community_reports"
LOGGED_INPUTS = (
    *("documents", "text_units", "entity_mentions", "relationship_mentions", "covariates"),
    *("entities", "relationships", "communities", "community_members"),
)
"""The tables whose logged changes may concern a report."""
ENTITIES_PER_PART = 10_000
"""More entities are reported on in parts: communities of level 0 until they have so many."""
_TEXT_UNITS = (
    "SELECT t.id, n.human_readable_id, t.text, d.document_date FROM text_units t "
    "LEFT JOIN documents d ON d.id = t.document_id JOIN numbers n ON n.table_name = 'text_units' AND n.id = t.id"
)
DECISIONS = f"FROM entity_aliases WHERE rule = '{USER_RULE}' OR NOT accepted ORDER BY ALL"
"""Query for the aliases that people have decided on."""
_IN_DOCUMENTS = "FROM covariates WHERE document_id IN (SELECT unnest($documents::VARCHAR[]))"
_TOUCHED = f"""
CREATE OR REPLACE TEMP TABLE touched_communities AS
WITH RECURSIVE claimed AS (  -- keys of subjects of changed claims; claims in documents whose aliases may have changed
    SELECT title_key AS key FROM entity_aliases WHERE alias_key IN (SELECT unnest($claims::VARCHAR[]))
    UNION SELECT unnest($claims::VARCHAR[])
), named AS (
    SELECT unnest($entities::VARCHAR[]) AS id
    UNION SELECT e.id FROM entities e JOIN claimed c ON e.title_key = c.key
    UNION SELECT subject_entity_id FROM ({claims_of_entities(_IN_DOCUMENTS)})
    UNION SELECT e.id FROM text_units t JOIN entities e ON list_contains(e.text_unit_ids, t.id)
        WHERE t.document_id IN (SELECT unnest($shown_documents::VARCHAR[]))
), touched AS (
    SELECT unnest($communities::BIGINT[]) AS community
    UNION SELECT m.community FROM community_members m JOIN named ON named.id = m.entity_id
    UNION SELECT s.community
        FROM (SELECT unnest($sources::VARCHAR[]) AS source_id, unnest($targets::VARCHAR[]) AS target_id)
        JOIN community_members s ON s.entity_id = source_id
        JOIN community_members t ON t.entity_id = target_id AND t.community = s.community
    -- A report that another writer stood in for is written again.
    UNION SELECT community FROM community_reports
        WHERE model NOT IN ($reporter, '{schema.IMPORTED}') OR fingerprint IS NULL
    UNION SELECT c.community FROM communities c ANTI JOIN community_reports r USING (community) WHERE c.size > 1
    UNION SELECT c.parent FROM touched t JOIN communities c ON c.community = t.community WHERE c.parent >= 0
)
FROM touched WHERE community IS NOT NULL
"""
_ALL = """
CREATE OR REPLACE TEMP TABLE touched_communities AS
SELECT community FROM communities UNION SELECT community FROM community_reports
"""
_PARTS = """
WITH RECURSIVE present AS (FROM communities SEMI JOIN touched_communities USING (community)), trees AS (
    SELECT community, community AS top, size FROM present WHERE parent < 0
    UNION ALL SELECT p.community, t.top, t.size FROM trees t JOIN present p ON p.parent = t.community
), placed AS (  -- communities that are gone come last
    SELECT touched.community, t.top, CASE WHEN t.community = t.top THEN t.size ELSE 0 END AS size
    FROM touched_communities touched LEFT JOIN trees t USING (community)
)
SELECT community, ((sum(size) OVER (ORDER BY top NULLS LAST) - 1) // $per_part)::BIGINT AS part
FROM placed ORDER BY part, community
"""
_PART = """
CREATE OR REPLACE TEMP TABLE inside AS
SELECT DISTINCT entity_id AS id FROM community_members SEMI JOIN part USING (community)
"""
# By every name that may lead to one of its entities.
_NAMING_PART = """
FROM covariates WHERE subject_key IN (
    SELECT title_key FROM entities WHERE id IN (FROM inside)
    UNION SELECT alias_key FROM entity_aliases WHERE accepted AND title_key IN (
        SELECT title_key FROM entities WHERE id IN (FROM inside)
    )
)
"""
_ROWS_OF_PART = (  # of the tables of ReportInputs
    "FROM communities SEMI JOIN part USING (community)",
    "FROM community_members m WHERE entity_id IN (FROM inside)",
    "FROM entities WHERE id IN (FROM inside)",
    "SELECT r.*, s.degree + t.degree AS combined_degree FROM relationships r JOIN entities s ON s.id = source_id "
    "JOIN entities t ON t.id = target_id WHERE source_id IN (FROM inside) AND target_id IN (FROM inside)",
    f"FROM ({claims_of_entities(_NAMING_PART)}) WHERE subject_entity_id IN (FROM inside)",
)
# The report of a community that is gone may be that of a new one.
_PREVIOUS = """
FROM community_reports WHERE community IN (
    FROM part UNION (SELECT community FROM community_reports EXCEPT SELECT community FROM communities)
)
"""
_OTHERS = (
    "FROM community_reports ANTI JOIN part USING (community) "
    "WHERE community IN (SELECT unnest(children) FROM communities SEMI JOIN part USING (community))"
)


class ReportsToUpdate(NamedTuple):
    """Which reports to write.

    parts: the numbers of communities whose reports are replaced, at least one part; it may be empty. everything:
    whether they are all. cited: ids of rows that were written or deleted: what cites them is resolved again. revision:
    of the change log, to set the mark to.
    """

    parts: list[pl.Series]
    everything: bool
    cited: pl.Series
    revision: int


class ReportsPart(NamedTuple):
    """What the reports of a part are written from.

    previous: the present reports of its communities, and of those that are gone. others: the reports of their
    sub-communities that stay.
    """

    inputs: ReportInputs
    previous: pl.DataFrame
    others: pl.DataFrame


def read_changed(index: Index, models: IndexingModels, everything: bool = False) -> ReportsToUpdate:
    """What the changes since the last run concern; all with `everything`, or when settings or models have changed."""
    with index.working.connect() as connection:
        changed = None
        if not everything:
            changed = changes_since_mark(connection, READER, LOGGED_INPUTS, made_with(connection, index, models))
        if changed is None:
            connection.execute(_ALL)
        else:
            _find_touched(connection, changed, models.reporter, index.settings.reports_from_text)
        found = connection.sql(_PARTS, params={"per_part": ENTITIES_PER_PART}).pl()
        parts = [part["community"] for part in found.partition_by("part", maintain_order=True)]
        cited = changed.ids("entities", "relationships", "covariates", "text_units") if changed else pl.Series()
        revision = changed.revision if changed else last_revision(connection)
        return ReportsToUpdate(parts or [found["community"]], changed is None, cited, revision)


def read_part(index: Index, communities: pl.Series) -> ReportsPart:
    """What the reports of these communities are written from, with the settings of `index`."""
    with index.working.connect() as connection:
        create = "CREATE OR REPLACE TEMP TABLE part AS FROM given"
        execute_with(connection, create, given=pl.DataFrame({"community": communities}))
        connection.execute(_PART)
        inputs = ReportInputs(*(_rows(connection, query) for query in _ROWS_OF_PART))
        if index.settings.reports_from_text:
            inputs = inputs._replace(text_units=_texts(connection, inputs.entities["text_unit_ids"].explode().unique()))
        return ReportsPart(inputs, _rows(connection, _PREVIOUS), _rows(connection, _OTHERS))


def made_with(connection: duckdb.DuckDBPyConnection, index: Index, models: IndexingModels) -> str:
    """Hash of what reports depend on besides logged tables. People change decisions on aliases past the change log."""
    settings = index.settings
    decided = [*connection.sql(DECISIONS).pl().iter_rows(), *(d.effect for d in read_decisions(settings.index_folder))]
    written_by = (models.reporter, settings.tokenizer, settings.reports_from_text)
    return stable_id("reports", CODE_VERSION, *written_by, *decided)


def state_of_reports(connection: duckdb.DuckDBPyConnection, index: Index, models: IndexingModels) -> str:
    """Hash of the reports and of all that they are written from: while it is the same, none is out of date."""
    relations = [
        *("communities", "community_members", "entities", "relationships", "covariates", "entity_aliases"),
        *("community_reports", "(SELECT id FROM text_units)", "(SELECT id, document_date FROM documents)"),
        "(SELECT id, human_readable_id FROM numbers WHERE table_name IN ('covariates', 'text_units'))",
    ]
    parts = " UNION ALL ".join(
        f"SELECT {place} AS place, coalesce(sum(hash(t)::HUGEINT), 0) AS total FROM {relation} AS t"
        for place, relation in enumerate(relations)
    )
    rows = one_value(connection, f"SELECT string_agg(place || ':' || total, ',' ORDER BY place) FROM ({parts})")
    return stable_id("state of reports", made_with(connection, index, models), rows)


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> pl.DataFrame:
    return connection.sql(f"{query} ORDER BY ALL").pl()


def _texts(connection: duckdb.DuckDBPyConnection, ids: pl.Series) -> pl.DataFrame:
    among = f"{_TEXT_UNITS} WHERE t.id IN (SELECT unnest($ids::VARCHAR[])) ORDER BY t.id"
    return connection.sql(among, params={"ids": ids.drop_nulls().to_list()}).pl()


def _find_touched(connection: duckdb.DuckDBPyConnection, changed: Changed, reporter: str, from_text: bool) -> None:
    """Write the numbers of the communities that the changes concern into touched_communities."""
    numbers = [changed.concerns(table)["key"] for table in ("communities", "community_members")]
    in_documents = [changed.concerns(t)["key"] for t in ("text_units", "entity_mentions", "relationship_mentions")]
    given = {
        "communities": pl.concat(numbers).cast(pl.Int64).unique().drop_nulls().to_list(),
        "entities": changed.ids("entities", "community_members").to_list(),
        **changed.ends(),
        "claims": changed.concerns("covariates")["key"].unique().drop_nulls().to_list(),
        "documents": pl.concat([changed.ids("documents"), *in_documents]).unique().drop_nulls().to_list(),
        "shown_documents": changed.ids("documents").to_list() if from_text else [],
        "reporter": reporter,
    }
    connection.execute(_TOUCHED, given)
