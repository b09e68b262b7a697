"""DuckDB's memory is limited; what is more goes to a folder, which a purge empties."""

from pathlib import Path

import pytest

from graphrag_assets.errors import StoreError
from graphrag_assets.store.connections import SPILL_FOLDER
from graphrag_assets.store.index_database import IndexDatabase

SORTED = "SELECT count(*) AS n FROM (SELECT DISTINCT md5(range::VARCHAR) FROM range(3_000_000))"


@pytest.mark.extended
def test_a_query_beyond_the_limit_spills_beside_the_index(tmp_path: Path) -> None:
    working = IndexDatabase(tmp_path / "working.duckdb", "150MB")
    with working.connect() as connection:
        connection.execute("SET threads = 1")
        assert connection.execute(SORTED).fetchall() == [(3_000_000,)]
        assert connection.execute("SELECT current_setting('memory_limit')").fetchall() == [("143.0 MiB",)]
        assert any((tmp_path / SPILL_FOLDER).iterdir())


def test_a_query_that_cannot_spill_names_the_setting(tmp_path: Path) -> None:
    small = IndexDatabase(tmp_path / "working.duckdb", "60MB")
    with pytest.raises(StoreError, match="Raise GRAPHRAG_MEMORY_LIMIT"):
        small.read("SELECT len(list(range)) FROM range(20_000_000)")
