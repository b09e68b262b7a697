"""Asset checks: the invariants of the index, one step per asset."""

from collections.abc import Iterable, Iterator
from typing import Any

import dagster as dg
import polars as pl

from graphrag_assets.assets.checks import CHECKS, UP_TO_DATE, offending_rows
from graphrag_assets.assets.index_names import ASSET_OF, ASSETS, BATCH_ASSETS, BATCH_STATE, IndexNames
from graphrag_assets.assets.masked import masked
from graphrag_assets.assets.reporting import REMEDY_CHARACTERS, markdown_table
from graphrag_assets.assets.resources import begin_step, needs
from graphrag_assets.runtime.outgoing import listed
from graphrag_assets.store.invariants import Check

SAMPLE_ROWS = 20


def read_by(check: Check) -> set[str]:
    """The assets whose tables a check reads."""
    read = {ASSET_OF[table] for table in check.reads if table in ASSET_OF}
    return read | ({BATCH_STATE} if read & {*BATCH_ASSETS} or "index_errors" in check.reads else set())


def asset_of_check(check: Check) -> str:
    """The asset that shows a check. One that blocks belongs to the last asset it reads: it holds up those after it."""
    own = ASSET_OF[check.asset]
    return max({own, *read_by(check)}, key=ASSETS.index) if check.blocking else own


def check_key(names: IndexNames, check: Check) -> dg.AssetCheckKey:
    """The key of a check."""
    return dg.AssetCheckKey(names.key(asset_of_check(check)), check.name)


def check_keys(names: IndexNames) -> list[dg.AssetCheckKey]:
    """The keys of all checks of an index."""
    return [check_key(names, check) for check in CHECKS]


def asset_checks(names: IndexNames) -> list[dg.AssetChecksDefinition]:
    """All checks, one step per asset, after every asset that they read.

    Not one step for all: a blocking check that waits for a late asset must not hold up the assets before it.
    """
    return [_checks_of(names, asset) for asset in sorted({asset_of_check(check) for check in CHECKS})]


def _checks_of(names: IndexNames, asset: str) -> dg.AssetChecksDefinition:
    own = [check for check in CHECKS if asset_of_check(check) == asset]
    after = names.keys(sorted(set().union({BATCH_STATE}, *map(read_by, own)) - {asset}))

    @dg.multi_asset_check(
        name=names.name(f"check_{asset}"),
        can_subset=True,  # so that the UI can run one
        specs=[
            dg.AssetCheckSpec(
                check.name,
                asset=names.key(asset),
                blocking=check.blocking,
                description=check.statement,
                additional_deps=after,
            )
            for check in own
        ],
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
    said = [f"Not in the publication yet: {listed(batches)}."] if batches else []
    said += rows.filter(pl.col("batch") == "")["problem"].to_list()
    return dg.AssetCheckEvaluation(
        names.key(UP_TO_DATE.asset),
        UP_TO_DATE.name,
        passed=rows.is_empty(),
        severity=dg.AssetCheckSeverity.WARN,
        description=" ".join(said and [*said, names.in_words(UP_TO_DATE.remedy)]) or UP_TO_DATE.statement,
        metadata=_metadata(names, UP_TO_DATE, rows),
        blocking=False,
    )


def _result(names: IndexNames, check: Check, rows: pl.DataFrame) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=check.name,
        asset_key=names.key(asset_of_check(check)),
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
    return passed >= {tuple(check_key(names, check)) for check in CHECKS if check.blocking}


def failed_check_messages(evaluations: Iterable[dg.AssetCheckEvaluation]) -> list[str]:
    """A line for each blocking check that failed: what must hold, and the remedy."""
    failed = (evaluation for evaluation in evaluations if evaluation.blocking and not evaluation.passed)
    return [
        f"Check failed: {check.description or check.check_name}"
        + (f" {check.metadata['remedy'].value}" if "remedy" in check.metadata else "")
        for check in failed
    ]
