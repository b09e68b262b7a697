"""Community reports and their citations."""

import time
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.report_inputs import (
    LOGGED_INPUTS,
    READER,
    ReportsToUpdate,
    made_with,
    read_changed,
    state_of_reports,
)
from graphrag_assets.indexing.stage import StageResult, usage_sums
from graphrag_assets.indexing_models import IndexingModels
from graphrag_assets.pipeline.report_citations import references_in, resolved
from graphrag_assets.pipeline.report_updates import community_reports
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_options, record_stage
from graphrag_assets.store.change_log import last_revision, set_mark
from graphrag_assets.store.working import Changes, replace_rows, replace_table

CHECKED = "reports_are_current"
"""The reader whose mark holds the state of the reports that are known to be up to date."""
# The register of numbers also remembers deleted rows.
_NUMBERS = " UNION ALL ".join(
    f"SELECT '{name}' AS table_name, t.id, {number} AS human_readable_id FROM {rows} "
    f"WHERE {number} IN (SELECT unnest($wanted::BIGINT[]))"
    for name, number, rows in (
        ("entities", "t.human_readable_id", "entities t"),
        ("relationships", "t.human_readable_id", "relationships t"),
        ("community_reports", "t.human_readable_id", "community_reports t"),
        *(
            (name, "n.human_readable_id", f"{name} t JOIN numbers n ON n.table_name = '{name}' AND n.id = t.id")
            for name in ("covariates", "text_units")
        ),
    )
)


class UpdatedReports(NamedTuple):
    """The tables written, with the frames read; the numbers of reports kept and of citations of missing rows."""

    updated: StageResult
    n_kept: int
    n_unresolved: int


@exclusive("write_community_reports")
def update_reports(index: Index, models: IndexingModels, run_id: str, rewrite: bool = False) -> UpdatedReports:
    """Write the reports whose inputs changed, or with `rewrite` all; keep the others; resolve their citations.

    Only what the changes since the last run concern is looked at, unless settings or models have changed.

    Stores the run options of `index`.
    """
    started = time.monotonic()
    settings = index.settings
    found = read_changed(index, models, rewrite)
    previous = found.previous.clear() if rewrite else found.previous
    written_by = (models.reporter, settings.report_input_tokens, settings.tokenizer)
    reports = community_reports(found.inputs, previous, models.write_reports, *written_by, others=found.others)
    with index.working.transaction() as connection:
        changes = {"community_reports": _replace_reports(connection, reports, found)}
        citations, changes["citations"] = _update_citations(connection, reports, found)
        seconds, used = time.monotonic() - started, usage_sums(models.usage)
        record_options(connection, None, index.run_options)
        record_stage(connection, run_id, "write_community_reports", None, seconds, changes, "community_reports", used)
        set_mark(connection, READER, LOGGED_INPUTS, found.revision, made_with(connection, index, models))
        if found.touched is None:
            _record_state(connection, index, models)
        ((unresolved,),) = connection.execute("SELECT count(*) FROM citations WHERE cited_id IS NULL").fetchall()
    frames = {"community_reports": reports, "citations": citations}
    updated = StageResult(frames, changes, models.usage, time.monotonic() - started)
    n_written = reports.join(previous, on="fingerprint", how="anti").height
    return UpdatedReports(updated, changes["community_reports"].rows - n_written, unresolved)


def record_state(index: Index, models: IndexingModels) -> None:
    """Record the present state as that of reports that are up to date, for checks of all rows: none is read again."""
    with index.working.transaction() as connection:
        _record_state(connection, index, models)


def _record_state(connection: duckdb.DuckDBPyConnection, index: Index, models: IndexingModels) -> None:
    set_mark(connection, CHECKED, (), last_revision(connection), state_of_reports(connection, index, models))


def _replace_reports(connection: duckdb.DuckDBPyConnection, reports: pl.DataFrame, found: ReportsToUpdate) -> Changes:
    if found.touched is None:
        return replace_table(connection, schema.COMMUNITY_REPORTS, reports)
    return replace_rows(connection, schema.COMMUNITY_REPORTS, reports, "community", found.touched)


def _update_citations(
    connection: duckdb.DuckDBPyConnection, reports: pl.DataFrame, found: ReportsToUpdate
) -> tuple[pl.DataFrame, Changes]:
    """Resolve the citations of the reports written, and of those that cite rows that have come or gone."""
    if found.touched is not None:
        citing = connection.sql(
            "FROM community_reports WHERE id IN (SELECT unnest($ids::VARCHAR[]))",
            params={"ids": pl.concat([reports["id"], found.citing]).unique().to_list()},
        ).pl()
        ids = pl.concat([found.previous["id"], citing["id"]]).unique()
    else:
        citing, ids = reports, None
    references = references_in(citing)
    wanted = references["human_readable_id"].unique().to_list()
    citations = resolved(references, connection.sql(_NUMBERS, params={"wanted": wanted}).pl())
    if ids is None:
        return citations, replace_table(connection, schema.CITATIONS, citations)
    return citations, replace_rows(connection, schema.CITATIONS, citations, "report_id", ids)
