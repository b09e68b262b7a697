"""Community reports and their citations.

A report is kept while the fingerprint of what it is written from stays the same. SQL computes the fingerprints of all
communities, see `report_state.sql`; contexts are made only of those whose report is to be written. Sub-communities come
first, because their reports may replace rows in the contexts above.
"""

import logging
from importlib.resources import files

import duckdb
import polars as pl

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.stage import CODE_VERSIONS, Run, StageResult, stage, sums_of_changes
from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.community_reports import ReportInputs, community_reports, references_in
from graphrag_assets.store import schema
from graphrag_assets.store.connections import execute_with, one_value
from graphrag_assets.store.index_database import Changes, replace_rows, replace_table

log = logging.getLogger(__name__)

ENTITIES_PER_PART = 10_000
"""Communities of one level are reported on together until they have so many entities, so that memory is bounded."""

_STATE = files("graphrag_assets.store").joinpath("sql/report_state.sql").read_text()
_CLAIMS = """
SELECT c.*, n.human_readable_id, r.subject_entity_id, d.document_date
FROM covariates c JOIN resolved_claims r USING (id) LEFT JOIN documents d ON d.id = c.document_id
JOIN numbers n ON n.table_name = 'covariates' AND n.id = c.id WHERE r.subject_entity_id IS NOT NULL
"""
# A report that another writer stood in for is written again, and those that may have been written from it. An entity
# that is alone says no more in a report than by itself: only an imported report is about one. Imported reports come
# without a fingerprint: then it is that of their community as it is now.
_DUE = """
CREATE OR REPLACE TEMP TABLE due AS
WITH RECURSIVE found AS (
    SELECT community, parent FROM report_state WHERE size > 1 AND CASE model
        WHEN 'imported' THEN coalesce(stored <> fingerprint, false)
        ELSE (model, stored) IS DISTINCT FROM ($reporter, fingerprint) END
    UNION SELECT s.community, s.parent
    FROM found JOIN report_state s ON s.community = found.parent WHERE s.model IS DISTINCT FROM 'imported'
)
SELECT community, level, size, next_fingerprint AS fingerprint
FROM report_state WHERE community IN (SELECT community FROM found)
"""
_KEPT = """
CREATE OR REPLACE TEMP TABLE kept_reports AS
SELECT community, s.level, s.parent, s.size, children, period, fingerprint
FROM report_state s JOIN communities USING (community) ANTI JOIN due USING (community)
WHERE s.size > 1 OR model = 'imported' AND coalesce(stored = fingerprint, true)
"""
_OTHERWISE_KEPT = """
SELECT r.* REPLACE (
    k.level AS level, k.parent AS parent, k.children AS children, k.period AS period, k.size AS size,
    k.fingerprint AS fingerprint
)
FROM community_reports r JOIN kept_reports k USING (community)
WHERE (r.level, r.parent, r.children, r.period, r.size, r.fingerprint)
    IS DISTINCT FROM (k.level, k.parent, k.children, k.period, k.size, k.fingerprint)
"""
_GONE = (
    "SELECT community FROM community_reports ANTI JOIN kept_reports USING (community) ANTI JOIN due USING (community)"
)
# If this run is killed, the next one writes all of them.
_UNFINISHED = """
UPDATE community_reports SET fingerprint = NULL
WHERE model <> 'imported' AND community IN (SELECT community FROM due)
"""
_STALE = """
SELECT community FROM report_state
WHERE (size > 1 OR report_id IS NOT NULL) AND stored IS DISTINCT FROM fingerprint ORDER BY ALL
"""
_INSIDE = """
CREATE OR REPLACE TEMP TABLE inside AS SELECT community, entity_id AS id
FROM community_members JOIN communities USING (community, level) SEMI JOIN part USING (community)
"""
_INPUTS = (  # the tables of ReportInputs
    "SELECT communities.*, fingerprint FROM communities JOIN part USING (community)",
    "SELECT community, id AS entity_id FROM inside",
    "SELECT c.community AS child, entity_id FROM community_members JOIN communities c USING (community, level) "
    "JOIN part ON part.community = c.parent",
    "FROM entities SEMI JOIN inside USING (id)",
    "SELECT r.human_readable_id, source, target, r.type, relations, r.description, source_id, target_id, "
    "s.degree + t.degree AS combined_degree FROM relationships r "
    "JOIN inside a ON a.id = source_id JOIN inside b ON b.id = target_id AND b.community = a.community "
    "JOIN entities s ON s.id = source_id JOIN entities t ON t.id = target_id",
    f"FROM ({_CLAIMS}) WHERE subject_entity_id IN (SELECT id FROM inside)",
    "SELECT r.* FROM community_reports r JOIN communities c USING (community) JOIN part ON part.community = c.parent",
)
_TEXT_UNITS = """
SELECT t.id, n.human_readable_id, t.text, d.document_date FROM text_units t
JOIN documents d ON d.id = t.document_id JOIN numbers n ON n.table_name = 'text_units' AND n.id = t.id
WHERE t.id IN (SELECT unnest(text_unit_ids) FROM entities SEMI JOIN inside USING (id))
"""
# The register of numbers also remembers deleted rows.
_NUMBERS = " UNION ALL ".join(
    f"SELECT '{name}' AS table_name, id, human_readable_id FROM {rows}"
    for name, rows in (
        *((name, name) for name in ("entities", "relationships", "community_reports")),
        *(
            (name, f"numbers SEMI JOIN {name} USING (id) WHERE table_name = '{name}'")
            for name in ("covariates", "text_units")
        ),
    )
)
_RESOLVED = f"""
SELECT report_id, table_name, human_readable_id, max(n.id) FILTER (NOT is_marked) AS cited_id
FROM cited LEFT JOIN ({_NUMBERS}) n USING (table_name, human_readable_id) GROUP BY ALL
"""
# A row may have another id now. A citation that led nowhere is marked in the report.
_RESOLVED_AGAIN = f"""
SELECT c.report_id, c.table_name, c.human_readable_id, if(c.cited_id IS NULL, NULL, n.id) AS cited_id
FROM citations c SEMI JOIN community_reports r ON r.id = c.report_id
LEFT JOIN ({_NUMBERS}) n USING (table_name, human_readable_id)
"""


@stage(
    "communities",
    {"community_reports": ("communities", "entities", "relationships", "covariates")},
    CODE_VERSIONS["community_reports"],
)
def write_community_reports(run: Run) -> StageResult:
    """Write the reports whose fingerprint is new; keep the others; resolve all citations."""
    index, models, encoding = run.index, run.models, run.index.settings.tokenizer
    with index.working.transaction() as connection:
        due, changes = _begin(connection, index, models)
    by_part, removed = [changes], list[str]()
    for part in _parts(due):
        inputs = _read(index, part)
        reports = community_reports(inputs, models.write_reports, models.reporter, encoding=encoding, removed=removed)
        with index.working.transaction() as connection:
            by_part.append(_write(connection, reports, part["community"]))
        log.info(
            "%d of %d reports are written", sum(part["community_reports"].inserted for part in by_part[1:]), due.height
        )
    with index.working.transaction() as connection:
        by_part.append({"citations": replace_table(connection, schema.CITATIONS, _RESOLVED_AGAIN)})
        n_unresolved = one_value(connection, "SELECT count(*) FROM citations WHERE cited_id IS NULL")
    changes = sums_of_changes(by_part)
    return StageResult(
        changes,
        {
            "reports_written": due.height,
            "reports_kept": changes["community_reports"].rows - due.height,
            "citations": changes["citations"].rows,
            "unresolved_citations": n_unresolved,
            "removed_citations": len(removed),
        },
    )


def stale_reports(index: Index, models: IndexingModels) -> pl.DataFrame:
    """Return the communities whose report was written from other inputs than the present ones."""
    with index.working.connect() as connection:
        _find_state(connection, index, models)
        return pl.DataFrame(connection.sql(_STALE))


def _find_state(connection: duckdb.DuckDBPyConnection, index: Index, models: IndexingModels) -> None:
    """Create the table report_state."""
    reads_texts = index.settings.reports_from_text
    version = CODE_VERSIONS["community_reports"]
    written_by = stable_id("reports", version, models.reporter, index.settings.tokenizer, reads_texts)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE claims AS {_CLAIMS}")
    *first, state = duckdb.extract_statements(_STATE)
    for statement in first:
        connection.execute(statement)
    connection.execute(state, {"written_by": written_by, "reads_texts": reads_texts})


def _begin(
    connection: duckdb.DuckDBPyConnection, index: Index, models: IndexingModels
) -> tuple[pl.DataFrame, dict[str, Changes]]:
    """Return the reports to write (community, level, size, fingerprint); the others are made as they are to be."""
    _find_state(connection, index, models)
    connection.execute(_DUE, {"reporter": models.reporter})
    connection.execute(_KEPT)
    otherwise = pl.DataFrame(connection.sql(_OTHERWISE_KEPT))
    replaced = pl.concat([otherwise["community"], pl.DataFrame(connection.sql(_GONE))["community"]])
    changes = _write(connection, otherwise, replaced)
    connection.execute(_UNFINISHED)
    return pl.DataFrame(connection.sql("FROM due ORDER BY level DESC, community")), changes


def _write(connection: duckdb.DuckDBPyConnection, reports: pl.DataFrame, communities: pl.Series) -> dict[str, Changes]:
    """Replace the reports of `communities` and what they cite."""
    cited = references_in(reports)
    execute_with(connection, "CREATE OR REPLACE TEMP TABLE cited AS FROM given", given=cited)
    return {
        "community_reports": replace_rows(connection, schema.COMMUNITY_REPORTS, reports, "community", communities),
        "citations": replace_rows(connection, schema.CITATIONS, _RESOLVED, "report_id", reports["id"]),
    }


def _parts(due: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the reports to write, of the deepest level first."""
    place = (pl.col("size").cum_sum().over("level") - 1) // ENTITIES_PER_PART
    return due.with_columns(place=place).partition_by("level", "place", maintain_order=True)


def _read(index: Index, part: pl.DataFrame) -> ReportInputs:
    with index.working.connect() as connection:
        execute_with(connection, "CREATE OR REPLACE TEMP TABLE part AS FROM given", given=part.drop("place"))
        connection.execute(_INSIDE)
        inputs = ReportInputs(*(pl.DataFrame(connection.sql(f"{query} ORDER BY ALL")) for query in _INPUTS))
        if index.settings.reports_from_text:
            return inputs._replace(text_units=pl.DataFrame(connection.sql(f"{_TEXT_UNITS} ORDER BY ALL")))
        return inputs
