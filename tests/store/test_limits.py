"""DuckDB's memory is limited."""

from pathlib import Path

import pytest

from graphrag_assets.errors import StoreError
from graphrag_assets.store.index_database import IndexDatabase


def test_a_query_that_cannot_spill_names_the_setting(tmp_path: Path) -> None:
    small = IndexDatabase(tmp_path / "working.duckdb", "60MB")
    with pytest.raises(StoreError, match="Raise GRAPHRAG_MEMORY_LIMIT"):
        small.read("SELECT len(list(range)) FROM range(20_000_000)")
