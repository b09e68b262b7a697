"""Fills the tables of a publication in their reading orders, which the schema declares: zone maps serve as indexes."""

import re
from collections.abc import Mapping

import duckdb

from graphrag_assets.store.schema import PUBLISHED

_ORDERS = {table.name if table.schema == "main" else f"{table.schema}.{table.name}": table.order for table in PUBLISHED}
_INSERT = re.compile(r"INSERT INTO ([\w.]+)( BY NAME)?\s+(.*)", re.DOTALL)


def execute_in_order(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object] | None = None
) -> None:
    """Execute statements; what they insert into tables of the publication in use is sorted."""
    for statement in connection.extract_statements(sql):
        query = statement.query.strip().removesuffix(";")
        if (insert := _INSERT.search(query)) and (order := _ORDERS.get(insert[1])):
            query = f"INSERT INTO {insert[1]}{insert[2] or ''} FROM ({insert[3]}) ORDER BY {order}"
        connection.execute(query, {name: (parameters or {})[name] for name in statement.named_parameters})
