"""`plan`: what the next `index`, or a question, would cost before anything is paid."""

import click
import polars as pl
from rich.table import Table

from graphrag_assets.cli.tables import print_table, table_of
from graphrag_assets.cli.terminal import Console
from graphrag_assets.indexing.cost_preview import plan_index
from graphrag_assets.indexing.index import Index
from graphrag_assets.query import GraphRAG
from graphrag_assets.settings import Settings


@click.command()
@click.option("--question", help="Estimate the cost of this question by each method instead.")
@click.option("--budget", type=int, help="Lazy search: maximum number of text units that are tested.")
def plan(question: str | None, budget: int | None) -> None:
    """Estimate the cost of the next `index`: calls, tokens and dollars of the requests that are not in the ledger."""
    if question is not None:
        _print_prices(question, budget)
        return
    console = Console()
    with console.status("Dry run: reading the changed batches"):
        planned = plan_index(Index.from_environment())
    names = f" ({', '.join(planned.batches)})" if planned.batches else ""
    console.say(f"Batches to index: {len(planned.batches)}{names}")
    print_table(console, cost_table(planned.by_task))
    for note in planned.notes:
        console.say(note)


def _print_prices(question: str, budget: int | None) -> None:
    console, settings = Console(), Settings.load()
    if not settings.model_of("query"):
        console.say("No model is set for questions (GRAPHRAG_CHAT_MODEL, GRAPHRAG_QUERY_MODEL), so they cost nothing.")
        return
    from graphrag_assets.indexing.dry_run import key_notes, price_in_words
    from graphrag_assets.llm.backend import chat_model, chat_prices  # imports litellm
    from graphrag_assets.llm.prices import Prices

    model, prices = settings.model_of("query"), Prices.of(settings.model_of("query"), chat_prices(settings, "query"))
    unknown = prices.source == "unknown"
    numbers = ("text units tested", "requests", "~ prompt tokens", "~ answer tokens", "US$")
    title = "requests that are not in the ledger: if nothing is relevant – if everything is"
    table = table_of("method", numbers=numbers, title=title)
    with GraphRAG() as rag:
        for price in rag.prices(question, lazy={} if budget is None else {"budget": budget}):
            counts = ("tested", "requests", "prompt_tokens", "completion_tokens")
            cells = [
                _between(f"{getattr(price.minimum, name):,}", f"{getattr(price.maximum, name):,}") for name in counts
            ]
            costs = [_dollars(None if unknown else bound.cost_usd) for bound in (price.minimum, price.maximum)]
            table.add_row(price.method, *cells, _between(*costs))
    print_table(console, table)
    for note in (f"{model}: {price_in_words(prices)}.", *key_notes([chat_model(settings, use="query")])):
        console.say(note)


def _between(minimum: str, maximum: str) -> str:
    return minimum if minimum == maximum else f"{minimum} – {maximum}"


def cost_table(rows: pl.DataFrame) -> Table:
    """A table of costs by task, with their sums; a cost that is null is unknown, and the sum is then a minimum."""
    numbers = ("calls", "in ledger", "prompt tokens", "answer tokens", "US$")
    table = table_of("task", numbers=numbers, title="requests to be paid for; ~ marks estimated prompts")
    columns = ["calls", "in_ledger", "prompt_tokens", "completion_tokens", "cost_usd"]
    for task, calls, known, prompt, completion, cost, exact in rows.select("task", *columns, "exact").iter_rows():
        counted = f"{prompt:,}" if exact else f"~ {prompt:,}"
        table.add_row(task, f"{calls:,}", f"{known:,}", counted, f"{completion:,}", _dollars(cost))
    calls, known, prompt, completion = (rows[name].sum() for name in columns[:-1])
    cost = float(rows["cost_usd"].sum())
    all_known = rows["cost_usd"].null_count() == 0
    in_all = _dollars(cost) if all_known else f"≥ {_dollars(cost)}" if cost else _dollars(None)
    table.add_section()
    table.add_row("in all", f"{calls:,}", f"{known:,}", f"{prompt:,}", f"{completion:,}", in_all)
    return table


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:,.4f}"
