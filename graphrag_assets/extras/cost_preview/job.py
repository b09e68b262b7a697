"""The job that previews the cost."""

import dagster as dg
import polars as pl

from graphrag_assets.assets.automation import job_of
from graphrag_assets.assets.index_names import PREVIEW_COST, IndexNames
from graphrag_assets.assets.stages import markdown_table, masked
from graphrag_assets.runtime.outgoing import as_markdown


def preview_cost_job(names: IndexNames) -> dg.JobDefinition:
    """Return the job preview_cost."""

    @dg.op(
        name=names.name("preview"),
        required_resource_keys={names.resource},
        description="The calls, tokens and dollars of indexing what changed that are not in the ledger yet, estimated.",
    )
    @masked()
    def preview(context: dg.OpExecutionContext) -> dg.Output[None]:
        from graphrag_assets.extras.cost_preview.preview import plan_index  # imports the clients of models

        plan = plan_index(names.index(context.resources))
        costs = pl.col("cost_usd", "least_usd", "most_usd").cast(pl.String).fill_null("unknown")
        table = markdown_table(plan.costs.with_columns(costs), 50)
        total = plan.costs.select(pl.col("calls", "prompt_tokens", "completion_tokens").sum())
        context.log.info("batches to index: %d\n\n%s\n\n%s", len(plan.batches), table, "\n".join(plan.notes))
        metadata = {
            "batches": len(plan.batches),
            **total.row(0, named=True),
            "cost_usd": "unknown" if plan.cost_usd is None else plan.cost_usd,
            "by_task": dg.MetadataValue.md(table),
            "notes": dg.MetadataValue.md("\n".join(f"- {as_markdown(note)}" for note in plan.notes)),
        }
        return dg.Output(None, metadata=metadata)

    description = "The cost of indexing the changed batches, before anything is paid: see the op's output."
    return job_of(preview, names.name(PREVIEW_COST), description)
