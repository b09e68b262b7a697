"""Purge of the ledger: answers that may stem from deleted documents are removed; their tokens and cost stay."""

import uuid
from collections.abc import Collection

import sqlalchemy as sa

from graphrag_assets.llm.ledger import LLM_CALLS, Ledger

PURGED = "purged"
_COLUMNS = [LLM_CALLS.c[name] for name in ("key", "batch", "unit", "run_id")]
_IS_ANSWERED = sa.or_(LLM_CALLS.c.response.is_not(None), LLM_CALLS.c.vector.is_not(None))
_THIS = LLM_CALLS.c.key == sa.bindparam("of")
_WITHOUT_ORIGIN = sa.update(LLM_CALLS).where(_THIS).values(batch=sa.bindparam("to_batch"), unit=sa.bindparam("to_unit"))
_WITHOUT_ANSWER = (
    sa.update(LLM_CALLS).where(_THIS).values(key=sa.bindparam("to"), kind=PURGED, response=None, vector=None)
)


def purge_answers(ledger: Ledger, batches: Collection[str], units: Collection[str], dry_run: bool = False) -> int:
    """Keep the answers about `units`, and remove the names of batches and units that are not given.

    What was asked about several units, such as descriptions, reports and questions, may quote any of them. So may the
    earlier answers about a unit that was asked about in several runs: its prompt has changed, with its headings, its
    document's columns or the model. All of these go.

    The row stays as kind "purged": tokens and cost are not secret, and the budget counts them. Its key, a hash of
    the request, is replaced by a random one. On SQLite and PostgreSQL the bytes are removed as well.

    Returns:
        the number of rows that lose their answer or their origin.

    Raises:
        LedgerError: the ledger cannot be used, or another process holds it.
    """
    known_batches, known_units = set(batches), set(units)
    rows = [tuple(row) for row in ledger.rows(sa.select(*_COLUMNS, _IS_ANSWERED))]
    runs: dict[str, set[str]] = {}
    for _, _, unit, run, answered in rows:
        if answered:
            runs.setdefault(unit, set()).add(run)
    answers, origins = [], []
    for key, batch, unit, _, answered in rows:
        if answered and (unit not in known_units or len(runs[unit]) > 1):
            answers.append({"of": key, "to": uuid.uuid4().hex})
        origin = (batch if batch in known_batches else None, unit if unit in known_units else None)
        if origin != (batch, unit):
            origins.append({"of": key, "to_batch": origin[0], "to_unit": origin[1]})
    if not dry_run:
        if origins:
            ledger.execute(_WITHOUT_ORIGIN, origins)
        if answers:
            ledger.execute(_WITHOUT_ANSWER, answers)
        ledger.shrink()
    return len({str(row["of"]) for row in (*answers, *origins)})
