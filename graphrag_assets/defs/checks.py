"""Asset checks: the invariants of the index. Blocking ones stand between the tables and their publication."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
import polars as pl

from graphrag_assets.defs.communities import REPORT_INPUTS
from graphrag_assets.defs.reporting import markdown_table
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.defs.scanning import scan
from graphrag_assets.errors import InputError
from graphrag_assets.pipeline.clustering import disconnected_communities
from graphrag_assets.pipeline.reports import ReportInputs, stale_reports
from graphrag_assets.store.batches import inputs_of, recorded_inputs
from graphrag_assets.store.invariants import INVARIANTS

SAMPLE_ROWS = 20


@dataclass(frozen=True)
class Check:
    """A check of one asset: what must hold, how to find the rows that break it, and what to do about them."""

    name: str
    asset: str
    blocking: bool
    statement: str
    cure: str
    find: Callable[[GraphIndex], pl.DataFrame] | str

    def result(self, rows: pl.DataFrame) -> dg.AssetCheckResult:
        metadata: dict[str, Any] = {"offending_rows": rows.height}
        if rows.height:
            metadata |= {"cure": self.cure, "sample": dg.MetadataValue.md(markdown_table(rows, SAMPLE_ROWS))}
        return dg.AssetCheckResult(
            check_name=self.name,
            asset_key=self.asset,
            passed=rows.is_empty(),
            severity=dg.AssetCheckSeverity.ERROR if self.blocking else dg.AssetCheckSeverity.WARN,
            description=self.statement,
            metadata=metadata,
        )


def results_of(checks: Sequence[Check], index: GraphIndex) -> list[dg.AssetCheckResult]:
    """The results of the checks; those that are queries run on one connection, which costs more than they do."""
    queries = {c.name: f"SELECT * FROM ({c.find}) ORDER BY ALL" for c in checks if isinstance(c.find, str)}
    rows = dict(zip(queries, index.working.read_all(*queries.values()) if queries else (), strict=True))
    return [c.result(rows[c.name] if isinstance(c.find, str) else c.find(index)) for c in checks]


def _disconnected(index: GraphIndex) -> pl.DataFrame:
    return disconnected_communities(*index.working.read_tables("community_members", "relationships")).to_frame()


def _stale(index: GraphIndex) -> pl.DataFrame:
    *tables, stored = index.working.read_tables(*REPORT_INPUTS, "community_reports")
    own = index.of(None)
    settings, reporter = own.settings, own.backend().reporter
    inputs = ReportInputs(*tables)
    return stale_reports(inputs, stored, reporter, settings.report_input_tokens, settings.encoding).to_frame()


def _too_many_failed(index: GraphIndex) -> pl.DataFrame:
    return index.working.read(
        "SELECT source AS text_unit, error FROM index_errors WHERE stage = 'extract' AND "
        "(SELECT count(*) FROM index_errors WHERE stage = 'extract') > $share * (SELECT count(*) FROM text_units)",
        {"share": index.settings.max_failed_units},
    )


def _out_of_date(index: GraphIndex) -> pl.DataFrame:
    try:
        found = scan(index)
    except InputError as error:  # a folder that cannot be read tells nothing of what was published
        return pl.DataFrame({"batch": ["?"], "problem": [str(error)]})
    rows = [(batch, "differs from the input folder, or has failed text units") for batch in found.changed]
    rows += [(batch, "is gone from the input folder") for batch in found.gone]
    inputs = inputs_of(index.working.read("SELECT batch, revision FROM batch_state"))
    if recorded_inputs(index.working, "published") != inputs:
        rows.append(("", "batches were indexed after the last publication"))
    return pl.DataFrame(rows, schema={"batch": pl.String, "problem": pl.String}, orient="row")


CHECKS = (
    *(Check(i.name, i.asset, i.blocking, i.statement, i.cure, i.query) for i in INVARIANTS),
    Check(
        "few_text_units_failed",
        "entities",
        True,
        "No more text units failed to be extracted than GRAPHRAG_MAX_FAILED_UNITS allows.",
        "Run `python -m graphrag_assets index`, or materialise the batches: only failed text units are tried again.",
        _too_many_failed,
    ),
    Check(
        "communities_are_connected",
        "communities",
        True,
        "Every community is connected.",
        "Launch the job refresh_graph.",
        _disconnected,
    ),
    Check(
        "reports_are_current",
        "community_reports",
        True,
        "Every report was written from what its community is now.",
        "Launch the job refresh_graph.",
        _stale,
    ),
    Check(
        "publication_is_up_to_date",
        "published_index",
        False,
        "What is published is made of the input folder as it is.",
        "Launch the job refresh_changed, or switch on document_batches_sensor.",
        _out_of_date,
    ),
)


def broken_gates(index: GraphIndex) -> list[dg.AssetCheckResult]:
    """The blocking checks that do not hold of the working database as it is."""
    results = results_of([check for check in CHECKS if check.blocking], index)
    return [result for result in results if not result.passed]


def what_does_not_hold(evaluations: Iterable[dg.AssetCheckEvaluation]) -> list[str]:
    """For people, a line for each blocking check that did not pass: what should hold, and the cure."""
    failed = (evaluation for evaluation in evaluations if evaluation.blocking and not evaluation.passed)
    return [
        f"This does not hold: {check.description or check.check_name}"
        + (f" {check.metadata['cure'].value}" if "cure" in check.metadata else "")
        for check in failed
    ]


def checks_of(asset: str) -> dg.AssetChecksDefinition:
    """All checks of one asset, as one step.

    One step per asset, not one for all: a blocking check that waits for a late asset must not hold up the assets
    before it.
    """
    own = [check for check in CHECKS if check.asset == asset]

    @dg.multi_asset_check(
        name=f"check_{asset}",
        can_subset=True,  # so that the UI can run one
        specs=[dg.AssetCheckSpec(c.name, asset=asset, blocking=c.blocking, description=c.statement) for c in own],
    )
    def check_asset(context: dg.AssetCheckExecutionContext, index: GraphIndex) -> Iterator[dg.AssetCheckResult]:
        asked_for = {key.name for key in context.selected_asset_check_keys}
        yield from results_of([check for check in own if check.name in asked_for], index)

    return check_asset


@dg.definitions
def checks() -> dg.Definitions:
    return dg.Definitions(asset_checks=[checks_of(asset) for asset in sorted({check.asset for check in CHECKS})])
