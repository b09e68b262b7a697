"""Community reports and their citations."""

import logging
import time
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.report_inputs import (
    LOGGED_INPUTS,
    READER,
    made_with,
    read_changed,
    read_part,
    state_of_reports,
)
from graphrag_assets.indexing.stage import StageResult, sums_of_changes, usage_sums
from graphrag_assets.pipeline.report_citations import references_in, resolved
from graphrag_assets.pipeline.report_updates import community_reports
from graphrag_assets.runtime.tracing import traced
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_stage
from graphrag_assets.store.change_log import last_revision, remove_mark, set_mark
from graphrag_assets.store.working import Changes, replace_rows

log = logging.getLogger(__name__)

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
_REPORTS = "SELECT id, full_content FROM community_reports WHERE id IN (SELECT unnest($ids::VARCHAR[])) ORDER BY id"
# Reports that cite a row that was written or deleted, or one that was not there; and reports that are gone.
_CITING = (
    "SELECT DISTINCT report_id FROM citations WHERE cited_id IS NULL OR cited_id IN (SELECT unnest($ids::VARCHAR[])) "
    "OR report_id NOT IN (SELECT id FROM community_reports)"
)


class UpdatedReports(NamedTuple):
    """The tables written, with the frames read; the numbers of reports kept and of citations of missing rows."""

    updated: StageResult
    n_kept: int
    n_unresolved: int


class _Part(NamedTuple):
    """The reports of a part, with those that they replace; `n_written`: how many of them are not as before."""

    reports: pl.DataFrame
    previous: pl.DataFrame
    n_written: int


@exclusive("write_community_reports")
@traced("write_community_reports")
def update_reports(index: Index, models: IndexingModels, run_id: str, rewrite: bool = False) -> UpdatedReports:
    """Write the reports whose inputs changed, or with `rewrite` all; keep the others; resolve their citations.

    Only what the changes since the last run concern is looked at, unless settings or models have changed.

    Stores the run options of `index`. The frames of the result hold the rows of the last part.
    """
    started = time.monotonic()
    found = read_changed(index, models, rewrite)
    *earlier, last = found.parts
    written, changes_by_part = 0, []
    for communities in earlier:
        part = _make_part(index, models, communities, rewrite)
        with index.working.transaction() as connection:
            remove_mark(connection, READER)  # after a crash the next run begins again
            changes_by_part.append(_write(connection, part, communities)[1])
        written += part.n_written
        log.info("%d reports are up to date", changes_by_part[-1]["community_reports"].rows)
    part = _make_part(index, models, last, rewrite)
    with index.working.transaction() as connection:
        citing = connection.sql(_CITING, params={"ids": found.cited.to_list()}).pl()["report_id"]
        citations, changes = _write(connection, part, last, citing)
        changes = sums_of_changes([*changes_by_part, changes])
        seconds, used = time.monotonic() - started, usage_sums(models.usage)
        record_stage(connection, run_id, "write_community_reports", None, seconds, changes, "community_reports", used)
        set_mark(connection, READER, LOGGED_INPUTS, found.revision, made_with(connection, index, models))
        if found.everything:
            _record_state(connection, index, models)
        ((unresolved,),) = connection.execute("SELECT count(*) FROM citations WHERE cited_id IS NULL").fetchall()
    frames = {"community_reports": part.reports, "citations": citations}
    updated = StageResult(frames, changes, models.usage, time.monotonic() - started)
    return UpdatedReports(updated, changes["community_reports"].rows - written - part.n_written, unresolved)


def _make_part(index: Index, models: IndexingModels, communities: pl.Series, rewrite: bool) -> _Part:
    inputs, previous, others = read_part(index, communities)
    known, encoding = previous.clear() if rewrite else previous, index.settings.tokenizer
    reports = community_reports(inputs, known, models.write_reports, models.reporter, encoding=encoding, others=others)
    return _Part(reports, previous, reports.join(known, on="fingerprint", how="anti").height)


def record_state(index: Index, models: IndexingModels) -> None:
    """Record the present state as that of reports that are up to date, for checks of all rows: none is read again."""
    with index.working.transaction() as connection:
        _record_state(connection, index, models)


def _record_state(connection: duckdb.DuckDBPyConnection, index: Index, models: IndexingModels) -> None:
    set_mark(connection, CHECKED, (), last_revision(connection), state_of_reports(connection, index, models))


def _write(
    connection: duckdb.DuckDBPyConnection, part: _Part, communities: pl.Series, citing: pl.Series | None = None
) -> tuple[pl.DataFrame, dict[str, Changes]]:
    """Replace the reports of `communities`, and resolve their citations and those of the reports `citing`."""
    replaced = replace_rows(connection, schema.COMMUNITY_REPORTS, part.reports, "community", communities)
    gone = part.previous.filter(pl.col("community").is_in(communities.implode()))["id"]
    ids = pl.concat([gone, part.reports["id"], *([] if citing is None else [citing])]).unique()
    references = references_in(connection.sql(_REPORTS, params={"ids": ids.to_list()}).pl())
    wanted = references["human_readable_id"].unique().to_list()
    citations = resolved(references, connection.sql(_NUMBERS, params={"wanted": wanted}).pl())
    changes = replace_rows(connection, schema.CITATIONS, citations, "report_id", ids)
    return citations, {"community_reports": replaced, "citations": changes}
