"""Invariants hold for a real index. Broken indexes are in tests/assets/test_broken_indexes.py."""

import re
import shutil

import pytest

from graphrag_assets.assets.checks import CHECKS
from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.invariants import INVARIANTS
from graphrag_assets.store.schema import WORKING


@pytest.fixture
def copy(sample_index, tmp_path) -> IndexDatabase:
    shutil.copy(sample_index.root / "index" / "working.duckdb", tmp_path / "working.duckdb")
    return IndexDatabase(tmp_path / "working.duckdb")


def offending(working: IndexDatabase, name: str) -> int:
    (query,) = (invariant.find for invariant in INVARIANTS if invariant.name == name)
    return working.read(query).height


def test_every_blocking_invariant_holds_of_the_sample_corpus(copy):
    assert {i.name: offending(copy, i.name) for i in INVARIANTS if i.blocking and offending(copy, i.name)} == {}


def test_every_check_names_the_tables_that_it_reads(copy):
    with copy.connect() as connection:
        connection.execute("PRAGMA disable_optimizer")  # which leaves out empty tables
        for check in CHECKS:
            if isinstance(check.find, str):
                ((_, plan),) = connection.execute(f"EXPLAIN (FORMAT json) {check.find}").fetchall()
                assert set(check.reads) == set(re.findall(r'"Table": "working.main.(?:\\")?(\w+)', plan)), check.name
    assert {name for check in CHECKS for name in check.reads} <= {table.name for table in WORKING}
