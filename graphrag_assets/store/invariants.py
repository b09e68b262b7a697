"""Invariants of the working database, as queries for violating rows: `sql/invariants.sql`."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from graphrag_assets.store.schema import INDEX_RUNS, WORKING, Table, sql


@dataclass(frozen=True, slots=True)
class Check:
    """A check of one asset.

    Attributes:
        reads: the tables that it reads.
        blocking: whether it blocks publication.
        statement: what must hold.
        find: the offending rows: a query, or a function of the index.
        remedy: what to do when there are any.
    """

    name: str
    asset: str
    reads: tuple[str, ...]
    blocking: bool
    statement: str
    find: str | Callable[..., pl.DataFrame]
    remedy: str


def _duplicates(table: Table) -> str:
    columns = ", ".join(f'"{column}"' for column in table.key)
    parts = ", ".join(f'"{column}"::VARCHAR' for column in table.key)
    return (
        f"SELECT '{table.name}' AS table_name, concat_ws(' · ', {parts}) AS key, count(*) AS n "
        f"FROM {table.name} GROUP BY {columns} HAVING n > 1"
    )


_KEYED = tuple(table for table in WORKING if table != INDEX_RUNS)
_CHECK = re.compile(r"-- (\w+) of (\w+)(, blocking)?: (.+)\n-- (.+)\n((?:[^-\n].*\n)+)")


def _declared(name: str, asset: str, blocking: str, statement: str, remedy: str, query: str) -> Check:
    names = set(re.findall(r"(?:FROM|JOIN) (\w+)", query.replace("resolved_claims", sql("resolved_claims"))))
    return Check(
        name, asset, tuple(t.name for t in WORKING if t.name in names), bool(blocking), statement, query, remedy
    )


INVARIANTS = (
    Check(
        "keys_are_unique",
        "embeddings",
        tuple(table.name for table in _KEYED),
        True,
        "Keys are unique in every table.",
        " UNION ALL ".join(map(_duplicates, _KEYED)),
        "Launch the job update_index with which: ALL: paid answers come from the ledger.",
    ),
    *(_declared(*parts) for parts in _CHECK.findall(sql("invariants"))),
)
