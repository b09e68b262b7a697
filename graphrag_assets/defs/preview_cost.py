"""The job preview_cost."""

import dagster as dg
import polars as pl

from graphrag_assets.defs.reporting import markdown_table
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.indexing.cost_preview import plan_index


@dg.op(description="A dry run of indexing what changed: the calls, tokens and dollars that are not in the ledger yet.")
def preview(context: dg.OpExecutionContext, index: GraphIndex) -> dg.Output[None]:
    plan = plan_index(index.open())
    table = markdown_table(plan.by_task, 50)
    total = plan.costs.select(pl.col("calls", "prompt_tokens", "completion_tokens", "cost_usd").sum()).row(
        0, named=True
    )
    context.log.info("%d batches to index\n\n%s\n\n%s", len(plan.batches), table, "\n".join(plan.notes))
    metadata = {
        "batches": len(plan.batches),
        **total,
        "by_task": dg.MetadataValue.md(table),
        "notes": dg.MetadataValue.md("\n".join(f"- {note}" for note in plan.notes)),
    }
    return dg.Output(None, metadata=metadata)


@dg.job(description="The cost of indexing the changed batches, before anything is paid: see the op's output.")
def preview_cost() -> None:
    preview()
