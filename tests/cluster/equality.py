"""Whether the index of a cluster is, row for row, that of one process that indexes the same batches before each refresh.

Refreshes matter to numbers, which new rows get in each, and to communities, which depend on their history.
"""

from pathlib import Path

import duckdb
import pytest

from graphrag_assets.indexing.candidates import update_candidates
from graphrag_assets.indexing.communities import update_communities
from graphrag_assets.indexing.embeddings import update_embeddings
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.index_batch import index_batch
from graphrag_assets.indexing.merge_graph import merge_graph
from graphrag_assets.indexing.publish import update_publication
from graphrag_assets.indexing.reports import record_state, update_reports
from graphrag_assets.store.publication_schema import PUBLISHED
from graphrag_assets.store.schema import WORKING, Table, identifier
from tests.conftest import default_settings

TIMES = {
    "batch_state": ("run_id", "committed_at"),
    "community_history": ("published_at",),
    "index_errors": ("first_seen",),
    "publication": ("published_at",),
    "publications": ("published_at",),
    "refresh_state": ("run_id",),
}
"""Columns that say when something was done and by which run: they are not compared."""
RECORDS = {"index_runs", "llm_calls"}
"""Tables of runs and calls, with their seconds: not compared. All others are."""
_STEPS = """
SELECT stage, batch FROM index_runs
ORDER BY (SELECT count(*) FROM index_runs r WHERE r.stage <> 'index_batch' AND r.rowid < index_runs.rowid), batch, rowid
"""
"""The batches before each refresh in the order of their names, in which one process takes them."""


def index_in_one_process(database: Path, documents: Path, root: Path, settings: dict[str, str]) -> Path:
    """Do in one process, without a staging area, what the index at `database` records; returns the index folder."""
    with duckdb.connect(str(database), read_only=True) as connection:
        steps = connection.execute(_STEPS).fetchall()
    with pytest.MonkeyPatch.context() as patch:
        default_settings(root, patch)
        for name, value in settings.items():
            patch.setenv(name, value)
        patch.setenv("GRAPHRAG_INPUT", str(documents))
        index = Index.from_environment()
        for stage, batch in steps:
            models = index.models(batch, "one")
            match stage:
                case "index_batch":
                    index_batch(index, batch, models, "one")
                case "knowledge_graph":
                    merge_graph(index, models, "one")
                case "detect_communities":
                    update_communities(index, "one")
                case "write_community_reports":
                    update_reports(index, models, "one")
                    record_state(index, models)  # as in a run of Dagster, which checks all rows after it
                case "embed_texts":
                    update_embeddings(index, models, "one")
                case "find_candidates":
                    update_candidates(index, "one")
                    update_publication(index, "one")
                case _:
                    raise AssertionError(f"no such stage: {stage}")
    return index.database.parent


def differences(ours: Path, theirs: Path) -> dict[str, int]:
    """Of two index folders: the rows that only one has, by table; tables without such rows are left out."""
    compared = (("working.duckdb", WORKING), ("graphrag.duckdb", PUBLISHED))
    found = {}
    for file, tables in compared:
        with duckdb.connect() as connection:
            for name, folder in (("ours", ours), ("theirs", theirs)):
                connection.execute(f"ATTACH '{(folder / file).resolve()}' AS {name} (READ_ONLY)")
            rows = {f"{file}: {table.name}": _differing(connection, table) for table in tables}
            found |= {name: n for name, n in rows.items() if n}
    return found


def _differing(connection: duckdb.DuckDBPyConnection, table: Table) -> int:
    if table.name in RECORDS:
        return 0
    name = f"{table.schema}.{identifier(table.name)}"
    without = ", ".join(column for column in TIMES.get(table.name, ()) if column in table.column_names)
    columns = f"* EXCLUDE ({without})" if without else "*"
    one, two = (f"SELECT {columns} FROM {side}.{name}" for side in ("ours", "theirs"))
    query = f"SELECT count(*) FROM (({one} EXCEPT ALL {two}) UNION ALL ({two} EXCEPT ALL {one}))"
    return int(connection.execute(query).fetchall()[0][0])
