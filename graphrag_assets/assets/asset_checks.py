"""Asset checks: the invariants of the index. Each runs in the step that writes the last of the tables it reads."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import dagster as dg
import polars as pl

from graphrag_assets.assets.checks import CHECKS, UP_TO_DATE, offending_rows, out_of_date
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_names import ASSET_OF, ASSETS, BATCH_ASSETS, BATCH_STATE, IndexNames
from graphrag_assets.assets.reporting import REMEDY_CHARACTERS, cut, markdown_table
from graphrag_assets.assets.scan import Scan
from graphrag_assets.runtime.outgoing import listed
from graphrag_assets.store.index_files import current_number
from graphrag_assets.store.invariants import Check

SAMPLE_ROWS = 20
FAILED_CHECKS = "DagsterAssetCheckFailedError"
"""What Dagster raises in a step with failed blocking checks; it does not say what to do."""


def read_by(check: Check) -> set[str]:
    """Return the assets whose tables a check reads."""
    assets = {ASSET_OF[table] for table in check.reads if table in ASSET_OF}
    return assets | ({BATCH_STATE} if assets & {*BATCH_ASSETS} or "index_errors" in check.reads else set())


def asset_of_check(check: Check) -> str:
    """Return the asset that shows a check: the last one whose tables it reads, in whose step it runs."""
    return max({ASSET_OF[check.asset], *read_by(check)}, key=ASSETS.index)


def check_key(names: IndexNames, check: Check) -> dg.AssetCheckKey:
    """Return the key of a check."""
    return dg.AssetCheckKey(names.key(asset_of_check(check)), check.name)


def check_specs(names: IndexNames, assets: Iterable[str]) -> list[dg.AssetCheckSpec]:
    """Return the checks that run in the step of these assets, after it has written them."""
    return [
        dg.AssetCheckSpec(check.name, asset=names.key(asset), blocking=check.blocking, description=check.statement)
        for check in CHECKS
        if (asset := asset_of_check(check)) in assets
    ]


def check_results(names: IndexNames, selected: Collection[str], index: Index) -> Iterator[dg.AssetCheckResult]:
    """Yield the results of the checks with these names."""
    checks = [check for check in CHECKS if check.name in selected]
    for check, rows in zip(checks, offending_rows(checks, index), strict=True):
        yield dg.AssetCheckResult(
            check_name=check.name,
            asset_key=names.key(asset_of_check(check)),
            passed=rows.is_empty(),
            severity=dg.AssetCheckSeverity.ERROR if check.blocking else dg.AssetCheckSeverity.WARN,
            description=check.statement if rows.is_empty() else _problem(check, rows),
            metadata=_metadata(names, check, rows),
        )


def _problem(check: Check, rows: pl.DataFrame) -> str:
    """Return the first row that contradicts the statement of a check."""
    first = "; ".join(str(value) for value in rows.row(0) if value not in (None, ""))
    more = f" And {rows.height - 1} more." if rows.height > 1 else ""
    return f"Not so: {check.statement} {cut(first, REMEDY_CHARACTERS).rstrip('.')}.{more}"


def _metadata(names: IndexNames, check: Check, rows: pl.DataFrame) -> dict[str, Any]:
    if rows.is_empty():
        return {"offending_rows": 0}
    sample = dg.MetadataValue.md(markdown_table(rows, SAMPLE_ROWS, REMEDY_CHARACTERS))
    return {"offending_rows": rows.height, "remedy": names.in_words(check.remedy), "sample": sample}


def report_up_to_date(names: IndexNames, instance: dg.DagsterInstance, index: Index, scanned: Scan) -> None:
    """Report the check publication_is_up_to_date without a run of it, once there is a publication."""
    if not current_number(index.settings.index_folder):
        return
    rows = out_of_date(index, scanned)
    batches = rows.filter(pl.col("batch") != "")["batch"].to_list()
    said = [f"Not in the publication yet: {listed(batches)}. Launch the job update_index."] if batches else []
    said += rows.filter(pl.col("batch") == "")["problem"].to_list()
    evaluation = dg.AssetCheckEvaluation(
        names.key(UP_TO_DATE.asset),
        UP_TO_DATE.name,
        passed=rows.is_empty(),
        severity=dg.AssetCheckSeverity.WARN,
        description=names.in_words(" ".join(said)) or UP_TO_DATE.statement,
        metadata=_metadata(names, UP_TO_DATE, rows),
        blocking=False,
    )
    instance.report_runless_asset_event(evaluation)


def failed_check_messages(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    """Return a line for each blocking check that failed in a run: what must hold, and the remedy."""
    entries = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    checks = [entry.dagster_event.asset_check_evaluation_data for entry in entries if entry.dagster_event]
    return [
        f"Check failed: {check.description or check.check_name}"
        + (f" {check.metadata['remedy'].value}" if "remedy" in check.metadata else "")
        for check in checks
        if check.blocking and not check.passed
    ]
