"""The sample corpus's publication on a plain read-only connection."""

from collections.abc import Iterator

import duckdb
import pytest


@pytest.fixture(scope="module")
def index(sample_index) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(sample_index.root / "index" / "graphrag.duckdb"), read_only=True) as connection:
        yield connection
