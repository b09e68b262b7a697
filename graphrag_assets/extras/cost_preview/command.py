"""`plan`: what the next `index` would cost before anything is paid."""

import click
import polars as pl
from rich.table import Table

from graphrag_assets.assets.index import Index
from graphrag_assets.cli.tables import print_table, table_of
from graphrag_assets.cli.terminal import Console
from graphrag_assets.extras.cost_preview.preview import plan_index


@click.command()
@click.option("--sample", is_flag=True, help="Have five text units extracted first, paid for once, to estimate by.")
def plan(sample: bool) -> None:
    """Estimate the cost of the next `index`: calls, tokens and dollars of the requests that are not in the ledger."""
    console = Console()
    with console.status("Reading the changed batches"):
        planned = plan_index(Index.from_environment(), sample)
    names = f" ({', '.join(planned.batches)})" if planned.batches else ""
    console.say(f"Batches to index: {len(planned.batches)}{names}")
    print_table(console, cost_table(planned.costs))
    if planned.cost_usd:
        least, most = planned.costs.select(pl.col("least_usd", "most_usd").sum()).row(0)
        console.say(f"Between ${_dollars(least)} and ${_dollars(most)}.")
    for note in planned.notes:
        console.say(note)


def cost_table(rows: pl.DataFrame) -> Table:
    """A table of costs by task, with their sums; a cost that is null is unknown, and the sum is then a minimum."""
    numbers = ("calls", "in ledger", "prompt tokens", "answer tokens", "US$")
    table = table_of("task", numbers=numbers, title="requests to be paid for, estimated")
    columns = ["calls", "in_ledger", "prompt_tokens", "completion_tokens", "cost_usd"]
    for task, calls, known, prompt, completion, cost in rows.select("task", *columns).iter_rows():
        table.add_row(task, f"{calls:,}", f"{known:,}", f"{prompt:,}", f"{completion:,}", _dollars(cost))
    calls, known, prompt, completion = (rows[name].sum() for name in columns[:-1])
    cost = float(rows["cost_usd"].sum())
    all_known = rows["cost_usd"].null_count() == 0
    in_all = _dollars(cost) if all_known else f"≥ {_dollars(cost)}" if cost else _dollars(None)
    table.add_section()
    table.add_row("in all", f"{calls:,}", f"{known:,}", f"{prompt:,}", f"{completion:,}", in_all)
    return table


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:,.4f}"
