"""Versions of the contents of tables: equal contents have equal versions."""

from collections.abc import Iterable

from graphrag_assets.store.working import WorkingDatabase


def content_versions(working: WorkingDatabase, tables: Iterable[str], batch: str | None = None) -> dict[str, str]:
    """The version of each table's rows, by its name; with `batch`, of that batch's rows alone.

    A version is the number of rows and the exclusive or of their hashes, so it does not depend on their order.
    """
    restriction = "WHERE batch = $batch" if batch is not None else ""
    query = " UNION ALL ".join(
        f"SELECT '{name}' AS name, printf('%d-%016x', count(*), coalesce(bit_xor(hash(t)), 0)) AS version "
        f'FROM "{name}" t {restriction}'
        for name in tables
    )
    return dict(working.read(query, {"batch": batch} if batch is not None else {}).iter_rows())
