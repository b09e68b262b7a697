"""Asset checks: the invariants of the index, one step per asset."""

from collections.abc import Iterable, Iterator
from typing import Any

import dagster as dg
import polars as pl

from graphrag_assets.defs.index_names import IndexNames
from graphrag_assets.defs.masked import masked
from graphrag_assets.defs.reporting import REMEDY_CHARACTERS, markdown_table
from graphrag_assets.defs.resources import begin_step, needs
from graphrag_assets.indexing.checks import CHECKS, UP_TO_DATE, offending_rows
from graphrag_assets.runtime.outgoing import listed
from graphrag_assets.store.invariants import Check

SAMPLE_ROWS = 20


def check_keys(names: IndexNames) -> list[dg.AssetCheckKey]:
    """The keys of all checks of an index."""
    return [dg.AssetCheckKey(names.key(check.asset), check.name) for check in CHECKS]


def asset_checks(names: IndexNames) -> list[dg.AssetChecksDefinition]:
    """All checks, one step per asset.

    Not one step for all: a blocking check that waits for a late asset must not hold up the assets before it.
    """
    return [_checks_of(names, asset) for asset in sorted({check.asset for check in CHECKS})]


def _checks_of(names: IndexNames, asset: str) -> dg.AssetChecksDefinition:
    own, key = [check for check in CHECKS if check.asset == asset], names.key(asset)

    @dg.multi_asset_check(
        name=names.name(f"check_{asset}"),
        can_subset=True,  # so that the UI can run one
        specs=[dg.AssetCheckSpec(c.name, asset=key, blocking=c.blocking, description=c.statement) for c in own],
        required_resource_keys=needs(names),
    )
    @masked
    def check_asset(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        asked_for = {check.name for check in context.selected_asset_check_keys}
        checks = [check for check in own if check.name in asked_for]
        found = offending_rows(checks, begin_step(names, context))
        yield from (_result(names, check, rows) for check, rows in zip(checks, found, strict=True))

    return check_asset


def _metadata(names: IndexNames, check: Check, rows: pl.DataFrame) -> dict[str, Any]:
    if rows.is_empty():
        return {"offending_rows": 0}
    sample = dg.MetadataValue.md(markdown_table(rows, SAMPLE_ROWS, REMEDY_CHARACTERS))
    return {"offending_rows": rows.height, "remedy": names.in_words(check.remedy), "sample": sample}


def up_to_date_evaluation(names: IndexNames, rows: pl.DataFrame) -> dg.AssetCheckEvaluation:
    """What the check publication_is_up_to_date finds if `rows` are those of `out_of_date`, without a run."""
    batches = rows.filter(pl.col("batch") != "")["batch"].to_list()
    what = f"Not in the publication yet: {listed(batches)}." if batches else "Not all batches are in the publication."
    return dg.AssetCheckEvaluation(
        names.key(UP_TO_DATE.asset),
        UP_TO_DATE.name,
        passed=rows.is_empty(),
        severity=dg.AssetCheckSeverity.WARN,
        description=UP_TO_DATE.statement if rows.is_empty() else f"{what} {names.in_words(UP_TO_DATE.remedy)}",
        metadata=_metadata(names, UP_TO_DATE, rows),
        blocking=False,
    )


def _result(names: IndexNames, check: Check, rows: pl.DataFrame) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=check.name,
        asset_key=names.key(check.asset),
        passed=rows.is_empty(),
        severity=dg.AssetCheckSeverity.ERROR if check.blocking else dg.AssetCheckSeverity.WARN,
        description=check.statement,
        metadata=_metadata(names, check, rows),
    )


def evaluations_of(instance: dg.DagsterInstance, run_id: str) -> list[dg.AssetCheckEvaluation]:
    """The evaluations of checks in a run."""
    entries = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    return [entry.dagster_event.asset_check_evaluation_data for entry in entries if entry.dagster_event]


def blocking_checks_passed(names: IndexNames, instance: dg.DagsterInstance, run_id: str) -> bool:
    """Whether all blocking checks of the index have run and passed in this run."""
    passed = {(e.asset_key, e.check_name) for e in evaluations_of(instance, run_id) if e.passed}
    return passed >= {(names.key(check.asset), check.name) for check in CHECKS if check.blocking}


def failed_check_messages(evaluations: Iterable[dg.AssetCheckEvaluation]) -> list[str]:
    """A line for each blocking check that failed: what must hold, and the remedy."""
    failed = (evaluation for evaluation in evaluations if evaluation.blocking and not evaluation.passed)
    return [
        f"Check failed: {check.description or check.check_name}"
        + (f" {check.metadata['remedy'].value}" if "remedy" in check.metadata else "")
        for check in failed
    ]
