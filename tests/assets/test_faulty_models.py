"""An index made with server faults and invalid answers equals the clean one; each fault costs one request."""

import pytest

from graphrag_assets.store import schema
from tests.limits import limit_calls
from tests.openai_server import FaultPlan, OpenAIServer, running

DOCUMENTS = {
    "one/a.md": "Captain James Anderson commanded the Great Eastern. Cyrus Field sailed with Samuel Canning to Newfoundland.",
    "two/b.md": "The Great Eastern reached Newfoundland. Robert Halpin and James Anderson were honoured in London.",
}
TABLES = [table.name for table in (*schema.BATCH_TABLES, *schema.GLOBAL_TABLES, schema.NUMBERS)]


@pytest.mark.extended
def test_an_index_made_with_faults_equals_the_clean_one(project, monkeypatch, tmp_path):
    def made_with(server: OpenAIServer, folder: str) -> dict:
        for kind in ("CHAT", "EMBEDDING"):
            monkeypatch.setenv(f"GRAPHRAG_{kind}_MODEL", f"openai/test-{kind.lower()}")
            monkeypatch.setenv(f"GRAPHRAG_{kind}_BASE_URL", server.url)
        monkeypatch.setenv("GRAPHRAG_DATA", str(tmp_path / folder))
        project.root = tmp_path / folder
        project.index_all()
        return {name: project.index.working.read(f"SELECT * FROM {name} ORDER BY ALL").to_dicts() for name in TABLES}

    monkeypatch.setenv("GRAPHRAG_INPUT", str(project.input))
    limit_calls(monkeypatch, backoff_seconds=0.01)
    for path, text in DOCUMENTS.items():
        project.write(path, text)
    with running() as server:
        clean, n_clean = made_with(server, "clean"), len(server.requests)
    with running(faults=FaultPlan({"429": 0.15, "500": 0.15, "closed": 0.15, "malformed-content": 0.15}, 8)) as server:
        faulty, n_faulty = made_with(server, "faulty"), len(server.requests)
        n_faults = {fault: server.counts[f"fault {fault}"] for fault in server.faults.shares}
    assert faulty == clean
    assert n_faulty - n_clean == sum(n_faults.values())
    assert all(n_faults.values())
