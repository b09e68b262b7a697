"""The tools in docs/sql.md: each row of the table, where the tool is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.test_docs import ROOT


@pytest.fixture
def path(sample_index) -> Path:
    return sample_index.root / "index" / "graphrag.duckdb"


DBT = shutil.which("dbt", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.extended
@pytest.mark.skipif(DBT is None, reason="dbt is not installed")
def test_the_dbt_project_builds(path, tmp_path):
    project = shutil.copytree(ROOT / "examples" / "dbt", tmp_path / "dbt")
    environment = {**os.environ, "INDEX_FILE": str(path), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    subprocess.run([str(DBT), "build", "--profiles-dir", "."], cwd=project, env=environment, check=True)
    with duckdb.connect(str(project / "analysis.duckdb"), read_only=True) as connection:
        wrong = connection.execute("SELECT title FROM hubs WHERE len(neighbors) <> degree").fetchall()
        counts = connection.execute("SELECT (SELECT count(*) FROM hubs), sum(mentions) FROM entities_by_document")
        assert wrong == []
        assert counts.fetchall()[0][0] == 10
