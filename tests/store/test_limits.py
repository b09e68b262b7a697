"""DuckDB's memory is limited; what is more goes to a folder, which a purge empties."""

from pathlib import Path

import pytest

from graphrag_assets.errors import StoreError
from graphrag_assets.extras.purge import purge
from graphrag_assets.runtime.processes import peak_megabytes, restart_peak
from graphrag_assets.store.connections import SPILL_FOLDER
from graphrag_assets.store.index_database import IndexDatabase
from tests.comparison import SENTENCES, index_all, index_at, no_settings

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


@pytest.mark.extended
def test_an_index_made_with_little_memory_tells_the_peak_of_each_stage_and_a_purge_empties_the_spill_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_settings(monkeypatch)
    monkeypatch.setenv("GRAPHRAG_MEMORY_LIMIT", "200MB")
    index = index_at(tmp_path, monkeypatch)
    (tmp_path / "input" / "a").mkdir(parents=True)
    (tmp_path / "input" / "a" / "a.md").write_text(" ".join(SENTENCES[:20]))
    restart_peak()
    len(b"x" * 600_000_000)  # before the first stage, and free again
    earlier = peak_megabytes()
    index_all(index)
    peaks = index.working.read("SELECT peak_mb FROM index_runs ORDER BY committed_at")["peak_mb"].to_list()
    assert len(peaks) == 6
    assert all(50 < peak < earlier - 300 for peak in peaks)
    left = tmp_path / "index" / SPILL_FOLDER
    left.mkdir(exist_ok=True)
    (left / "duckdb_temp_storage-0.tmp").write_text("what a killed process spilled")
    purge(index)
    assert not left.exists()
