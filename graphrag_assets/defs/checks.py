"""Asset checks: the invariants of the index, one step per asset."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import dagster as dg
import polars as pl

from graphrag_assets.defs.reporting import markdown_table
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.indexing.checks import CHECKS, Check, offending_rows
from graphrag_assets.indexing.index import Index

SAMPLE_ROWS = 20


def check_results(checks: Sequence[Check], index: Index) -> list[dg.AssetCheckResult]:
    """The results of the checks, in order."""
    return [_result(check, rows) for check, rows in zip(checks, offending_rows(checks, index), strict=True)]


def _result(check: Check, rows: pl.DataFrame) -> dg.AssetCheckResult:
    metadata: dict[str, Any] = {"offending_rows": rows.height}
    if rows.height:
        metadata |= {"remedy": check.remedy, "sample": dg.MetadataValue.md(markdown_table(rows, SAMPLE_ROWS))}
    return dg.AssetCheckResult(
        check_name=check.name,
        asset_key=check.asset,
        passed=rows.is_empty(),
        severity=dg.AssetCheckSeverity.ERROR if check.blocking else dg.AssetCheckSeverity.WARN,
        description=check.statement,
        metadata=metadata,
    )


def failed_check_messages(evaluations: Iterable[dg.AssetCheckEvaluation]) -> list[str]:
    """A line for each blocking check that failed: what must hold, and the remedy."""
    failed = (evaluation for evaluation in evaluations if evaluation.blocking and not evaluation.passed)
    return [
        f"Check failed: {check.description or check.check_name}"
        + (f" {check.metadata['remedy'].value}" if "remedy" in check.metadata else "")
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
        yield from check_results([check for check in own if check.name in asked_for], index.open())

    return check_asset


ASSET_CHECKS = [checks_of(asset) for asset in sorted({check.asset for check in CHECKS})]
