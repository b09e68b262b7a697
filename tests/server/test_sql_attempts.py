"""SQL of clients reaches nothing but the published tables, and ends within its limits."""

import pytest

from graphrag_assets.errors import InvalidOption
from graphrag_assets.extras.server.sql import SqlQuery
from graphrag_assets.query import GraphRAG
from tests.server.conftest import serve

ATTEMPTS = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM '{secret}'",
    "FROM read_parquet('{secret}')",
    "FROM read_json('{secret}')",
    "FROM read_ndjson_objects('{secret}')",
    "FROM glob('/etc/*')",
    "FROM sniff_csv('{secret}')",
    "FROM parquet_metadata('{secret}')",
    "FROM query('SELECT * FROM read_text(''{secret}'')')",
    "SELECT * FROM query_table('{secret}')",
    "COPY entities TO '/tmp/stolen.csv'",
    "COPY (SELECT 1) TO '/tmp/stolen.parquet'",
    "COPY entities FROM '{secret}'",
    "EXPORT DATABASE '/tmp/stolen'",
    "IMPORT DATABASE '/tmp/stolen'",
    "ATTACH '{secret}' AS other",
    "ATTACH ':memory:' AS other",
    "DETACH published",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET memory_limit = '100GB'",
    "RESET ALL",
    "PRAGMA enable_external_access",
    "PRAGMA database_list",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL spatial",
    "CREATE TABLE x AS SELECT 1",
    "CREATE SECRET s (TYPE s3)",
    "CREATE MACRO entities_called(x) AS 1",
    "INSERT INTO entities SELECT * FROM entities",
    "UPDATE entities SET title = 'x'",
    "DELETE FROM entities",
    "DROP TABLE entities",
    "USE memory",
    "CHECKPOINT",
    "BEGIN; SELECT 1; COMMIT",
    "SELECT 1; SELECT * FROM read_text('{secret}')",
    "CALL pragma_version()",
    "EXECUTE x",
    "PREPARE x AS SELECT 1",
    "VACUUM",
    "",
    "nonsense",
]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_attempt_is_refused(sample_server, tmp_path, attempt):
    secret = tmp_path / "secret.csv"
    secret.write_text("planted,secret\n1,2\n")
    with sample_server.http() as http:
        response = http.post("/api/sql", json={"query": attempt.replace("{secret}", str(secret))})
    assert response.status_code == 400, response.text
    assert "planted" not in response.text


def test_select_is_answered_and_limited(sample_server):
    with sample_server.http() as http:
        assert http.post("/api/sql", json={"query": "SELECT 1 AS a, NULL AS b"}).json() == {
            "columns": ["a", "b"],
            "rows": [["1", None]],
            "complete": True,
        }
        many = http.post("/api/sql", json={"query": "SELECT * FROM range(100000)"}).json()
        assert len(many["rows"]) == 1_000
        assert not many["complete"]
        large = http.post("/api/sql", json={"query": "SELECT repeat('x', 1000000)"}).json()
        assert large == {"columns": large["columns"], "rows": [], "complete": False}
        memory = http.post("/api/sql", json={"query": "SELECT list(a.range) FROM range(1000000000) a"})
        assert memory.status_code == 400


def test_sql_is_off_by_default(sample_index):
    with GraphRAG(sample_index.root / "index") as rag, serve(rag) as served, served.http() as http:
        assert http.post("/api/sql", json={"query": "SELECT 1"}).status_code == 403


def test_a_query_that_takes_too_long_is_ended(sample_index):
    with GraphRAG(sample_index.root / "index") as rag, pytest.raises(InvalidOption, match=r"longer than 0\.5 seconds"):
        SqlQuery(0.5)(rag.index.reader(), "SELECT count(*) FROM range(10000000000) a, range(1000) b")
