"""Purge of the ledger: answers that are no longer needed are removed; their tokens and cost stay."""

import uuid
from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa

from graphrag_assets.llm.ledger import LLM_CALLS, Ledger

PURGED = "purged"


class PurgedRows(NamedTuple):
    """Rows that lose their answer or their origin, and the bytes of the answers."""

    rows: int
    bytes: int


_ORIGIN = (LLM_CALLS.c.batch, LLM_CALLS.c.unit)
_SIZE = sa.func.coalesce(sa.func.length(LLM_CALLS.c.response), 0) + sa.func.coalesce(
    sa.func.length(LLM_CALLS.c.vector), 0
)
_ANSWERED = sa.or_(LLM_CALLS.c.response.is_not(None), LLM_CALLS.c.vector.is_not(None))


def purge_answers(
    ledger: Ledger, needed: Collection[str], batches: Collection[str], units: Collection[str], dry_run: bool = False
) -> PurgedRows:
    """Remove every answer whose key is not `needed`, and the names of batches and units that are not given.

    The row stays as kind "purged": tokens and cost are not secret, and the budget counts them. Its key, a hash of
    the request, is replaced by a random one. On SQLite the bytes are removed from the file as well.

    Raises:
        LedgerError: the ledger cannot be used, or another process holds it.
    """
    kept, known_batches, known_units = set(needed), set(batches), set(units)
    answers: list[str] = []
    origins: list[dict[str, str | None]] = []
    size = 0
    for row in ledger.rows(sa.select(LLM_CALLS.c.key, *_ORIGIN, _SIZE, _ANSWERED.label("answered"))):
        key, batch, unit, length, answered = tuple(row)
        if answered and key not in kept:
            answers.append(key)
            size += length
        # A needed answer may have been paid for by a document that has been moved since.
        origin = (batch if batch in known_batches else None, unit if unit in known_units else None)
        if origin != (batch, unit):
            origins.append({"of": key, "to_batch": origin[0], "to_unit": origin[1]})
    found = PurgedRows(len({*answers, *(str(row["of"]) for row in origins)}), size)
    if not dry_run:
        if origins:
            ledger.execute(_WITHOUT_ORIGIN, origins)
        if answers:
            ledger.execute(_WITHOUT_ANSWER, [{"of": key, "to": uuid.uuid4().hex} for key in answers])
        ledger.shrink()
    return found


_THIS = LLM_CALLS.c.key == sa.bindparam("of")
_WITHOUT_ORIGIN = sa.update(LLM_CALLS).where(_THIS).values(batch=sa.bindparam("to_batch"), unit=sa.bindparam("to_unit"))
_WITHOUT_ANSWER = (
    sa.update(LLM_CALLS).where(_THIS).values(key=sa.bindparam("to"), kind=PURGED, response=None, vector=None)
)
