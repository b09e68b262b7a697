"""`index` with a model that never answers some requests validly: they are paid for in two runs, and then given up."""

import pytest

from graphrag_assets.store.index_files import current_number
from tests.cli import run_command
from tests.openai_content import FILLER, content_for, task_of
from tests.openai_server import running

DOCUMENTS = {
    "one/a.md": "Captain James Anderson commanded the Great Eastern. Cyrus Field sailed with Samuel Canning to Newfoundland."
    + FILLER,
    "two/b.md": "The Great Eastern reached Newfoundland. Robert Halpin and James Anderson were honored in London."
    + FILLER,
}


@pytest.fixture
def server(project, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/test-chat")
    monkeypatch.setattr("graphrag_assets.assets.checks.MAX_FAILED_SHARE", 1)
    for path, text in DOCUMENTS.items():
        project.write(path, text)
    with running() as server:
        monkeypatch.setenv("GRAPHRAG_CHAT_BASE_URL", server.url)
        yield server


def fails(body) -> bool:
    """The extraction of one text unit, and all reports."""
    extracts = "Cyrus Field sailed" in str(body["messages"]) and "<document" in str(body["messages"])
    return extracts or task_of(body) == "CommunityReport"


@pytest.mark.extended
def test_what_never_gets_a_valid_answer_is_paid_for_in_two_runs_and_then_when_asked_for(project, server):
    server.content = lambda body: '{"wrong": 1}' if fails(body) else content_for(body)
    paid, publications = [], []
    for _ in range(3):
        server.requests.clear()
        output = run_command("index")
        paid.append(len(server.chats))
        publications.append(current_number(project.index.settings.index_folder))
    assert paid[1] > 0
    assert paid[2] == 0
    assert publications[2] == publications[1]
    assert "0 indexed, 2 unchanged" in output
    for error, hint in project.sql("SELECT error, hint FROM index_errors"):
        assert "two runs got no valid answer" in error
        assert "index --retry" in hint
    server.content = content_for
    run_command("index", "--retry")
    assert len(server.chats) > 0
    assert project.sql("SELECT count(*) FROM index_errors") == [(0,)]
