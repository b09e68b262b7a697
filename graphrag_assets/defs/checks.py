"""Asset checks: the invariants of the index. Blocking ones stand between the tables and their publication."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from graphrag_assets.defs.communities import REPORT_INPUTS
from graphrag_assets.defs.reporting import markdown_table
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.pipeline.clustering import disconnected_communities
from graphrag_assets.pipeline.reports import ReportInputs, stale_reports
from graphrag_assets.store.invariants import INVARIANTS


def invariant_checks(asset: str) -> dg.AssetChecksDefinition:
    """All invariants of one asset as one step, which looks for offending rows as of one moment.

    One step per asset, not one for all: a blocking check that waits for a late asset must not hold up the assets
    before it.
    """
    invariants = [invariant for invariant in INVARIANTS if invariant.asset == asset]

    @dg.multi_asset_check(
        name=f"check_{asset}",
        specs=[
            dg.AssetCheckSpec(i.name, asset=asset, blocking=i.blocking, description=i.statement) for i in invariants
        ],
    )
    def check(index: GraphIndex) -> Iterator[dg.AssetCheckResult]:
        with index.working.connect() as connection:
            broken = [connection.sql(f"SELECT * FROM ({i.query}) ORDER BY ALL").pl() for i in invariants]
        for invariant, rows in zip(invariants, broken, strict=True):
            metadata: dict[str, Any] = {"offending_rows": rows.height}
            if rows.height:
                metadata |= {"cure": invariant.cure, "sample": dg.MetadataValue.md(markdown_table(rows))}
            yield dg.AssetCheckResult(
                check_name=invariant.name,
                asset_key=asset,
                passed=rows.is_empty(),
                severity=dg.AssetCheckSeverity.ERROR if invariant.blocking else dg.AssetCheckSeverity.WARN,
                metadata=metadata,
            )

    return check


@dg.asset_check(asset="communities", blocking=True, description="Every community is connected.")
def communities_are_connected(index: GraphIndex) -> dg.AssetCheckResult:
    members, relationships = index.working.read_tables("community_members", "relationships")
    broken = disconnected_communities(members, relationships)
    return dg.AssetCheckResult(
        passed=broken.is_empty(),
        metadata={"offending_rows": len(broken), "communities": str(broken.to_list()[:20])},
    )


@dg.asset_check(
    asset="community_reports",
    blocking=True,
    description="Every report was written from what its community is now.",
)
def reports_are_current(index: GraphIndex) -> dg.AssetCheckResult:
    *tables, stored = index.working.read_tables(*REPORT_INPUTS, "community_reports")
    settings = index.settings
    stale = stale_reports(
        ReportInputs(*tables), stored, index.backend.reporter, settings.report_input_tokens, settings.encoding
    )
    return dg.AssetCheckResult(
        passed=stale.is_empty(),
        metadata={"offending_rows": len(stale), "communities": str(stale.to_list()[:20])},
    )


@dg.asset_check(
    asset="entities",
    blocking=True,
    description="No more text units failed to be extracted than GRAPHRAG_MAX_FAILED_UNITS allows.",
)
def few_text_units_failed(index: GraphIndex) -> dg.AssetCheckResult:
    counts = index.working.read(
        "SELECT (SELECT count(*) FROM index_errors WHERE stage = 'extract') AS failed, count(*) AS n FROM text_units"
    )
    failed, total = counts.row(0)
    share = failed / total if total else 0.0
    return dg.AssetCheckResult(
        passed=share <= index.settings.max_failed_units,
        metadata={"failed": failed, "share": round(share, 4), "allowed": index.settings.max_failed_units},
    )


@dg.definitions
def checks() -> dg.Definitions:
    return dg.Definitions(
        asset_checks=[
            *(invariant_checks(asset) for asset in sorted({i.asset for i in INVARIANTS})),
            communities_are_connected,
            reports_are_current,
            few_text_units_failed,
        ]
    )
