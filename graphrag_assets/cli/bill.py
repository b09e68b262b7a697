"""What runs have paid for, by task: the end of `index`."""

from collections.abc import Sequence

import polars as pl
from rich.table import Table

from graphrag_assets.cli.tables import add_numbers, table_of
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.models import existing_ledger

_HITS = """
SELECT used.task AS task, sum(used.ledger_hits)::BIGINT AS ledger_hits
FROM (SELECT unnest(usage) AS used FROM index_runs WHERE run_id IN (SELECT unnest($runs::VARCHAR[])))
GROUP BY used.task
"""
_COLUMNS = {
    "answers": "paid answers",
    "ledger_hits": "in ledger",
    "prompt_tokens": "prompt tokens",
    "cached_tokens": "of them cached",
    "completion_tokens": "answer tokens",
    "cost_usd": "US$",
}


def bill_of(index: Index, run_ids: Sequence[str]) -> Table | None:
    """Answers paid for and found in the ledger, tokens and dollars by task; None if no model was asked.

    An answer is that of a chat, or the vector of a text; several may come from one request. What failed stages have
    paid for is included; their answers from the ledger are not, since nothing records them.
    """
    ledger = existing_ledger(index.settings)
    if ledger is None:
        return None
    paid = ledger.paid_by(run_ids)
    hits = index.working.read(_HITS, {"runs": list(run_ids)})
    rows = paid.join(hits, on="task", how="full", coalesce=True).fill_null(0).sort("task")
    rows = rows.filter(pl.any_horizontal(pl.col("answers", "ledger_hits") > 0)).select("task", *_COLUMNS)
    if rows.is_empty():
        return None
    table = table_of("task", title="what models did")
    add_numbers(table, *_COLUMNS.values())
    for task, *sums in rows.iter_rows():
        table.add_row(task, *map(_in_digits, sums))
    table.add_section()
    table.add_row("in all", *map(_in_digits, rows.drop("task").sum().row(0)))
    return table


def _in_digits(value: float) -> str:
    return f"{value:,.4f}" if isinstance(value, float) else f"{value:,}"
