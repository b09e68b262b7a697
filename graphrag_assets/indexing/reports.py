"""Community reports and their citations."""

import time
from typing import NamedTuple

import polars as pl

from graphrag_assets.embedded import REPORTER
from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult, usage_sums
from graphrag_assets.indexing_models import IndexingModels
from graphrag_assets.pipeline.report_citations import report_citations
from graphrag_assets.pipeline.report_updates import ReportInputs, community_reports, compare_written
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_options, record_stage
from graphrag_assets.store.working import replace_tables

_INPUTS = ("communities", "community_members", "entities", "relationships", "entity_claims")
_TEXT_UNITS = (
    "SELECT t.id, n.human_readable_id, t.text FROM text_units t "
    "JOIN numbers n ON n.table_name = 'text_units' AND n.id = t.id ORDER BY t.id"
)
CODE_VERSION = f"2/{REPORTER}"
"""Differs when the same inputs give other reports."""


class UpdatedReports(NamedTuple):
    """The tables written, and the number of reports kept."""

    updated: StageResult
    n_kept: int


def read_inputs(index: Index, *more: str) -> tuple[ReportInputs, list[pl.DataFrame]]:
    """What reports are written from with the settings of `index`, and the tables `more`."""
    tables = index.working.read_tables(*_INPUTS, *more)
    text_units = index.working.read(_TEXT_UNITS) if index.settings.reports_from_text else None
    inputs = ReportInputs(*tables[: len(_INPUTS)])
    return inputs._replace(text_units=text_units), tables[len(_INPUTS) :]


@exclusive("write_community_reports")
def update_reports(index: Index, models: IndexingModels, run_id: str, rewrite: bool = False) -> UpdatedReports:
    """Write the reports whose inputs changed, or with `rewrite` all; keep the others; resolve their citations.

    Stores the run options of `index`.
    """
    started = time.monotonic()
    settings = index.settings
    inputs, (previous, numbers) = read_inputs(index, "community_reports", "numbers")
    previous = previous.clear() if rewrite else previous
    written_by = (models.reporter, settings.report_input_tokens, settings.tokenizer)
    reports = community_reports(inputs, previous, models.write_reports, *written_by)
    report_numbers = reports.select(pl.lit("community_reports").alias("table_name"), "id", "human_readable_id")
    current = _current_numbers(numbers, *(table for table in inputs[2:] if table is not None))
    citations = report_citations(reports, pl.concat([current, report_numbers], how="vertical_relaxed"))
    frames = {schema.COMMUNITY_REPORTS: reports, schema.CITATIONS: citations}
    with index.working.transaction() as connection:
        changes = replace_tables(connection, frames)
        seconds, used = time.monotonic() - started, usage_sums(models.usage)
        record_options(connection, None, index.run_options)
        record_stage(connection, run_id, "write_community_reports", None, seconds, changes, "community_reports", used)
    (stored,) = index.working.read_tables("community_reports")
    compare_written(inputs, reports, stored, *written_by)
    by_name = {written.name: frame for written, frame in frames.items()}
    updated = StageResult(by_name, changes, models.usage, time.monotonic() - started)
    return UpdatedReports(updated, reports.join(previous, on="fingerprint", how="semi").height)


def _current_numbers(numbers: pl.DataFrame, *tables: pl.DataFrame) -> pl.DataFrame:
    """The numbers of existing rows; the register also remembers deleted ones."""
    ids = pl.concat([table.select("id") for table in tables])
    return numbers.join(ids, on="id", how="semi").select("table_name", "id", "human_readable_id")
