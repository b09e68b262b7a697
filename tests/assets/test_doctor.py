"""Models are checked by `graphrag-assets doctor` and `index plan --sample`."""

import re

import pytest

from tests.cli import run_command
from tests.limits import limit_calls


def break_model(fault, server, monkeypatch):
    """Give the server or the settings a fault; what the error says of it."""
    match fault:
        case "embedding server fails":
            server.replace = lambda body: (500, {}, b"{}") if "input" in body else None
            limit_calls(monkeypatch, backoff_seconds=0.01, max_retries=2)
            return r"openai/test-embedding at .* did not answer in 3 attempts"
        case "wrong key":
            server.api_key = "sk-another"
            return r"openai/test-embedding at .* cannot be called: HTTP 401.* Check the API key"
        case "unknown extraction model":
            server.models = {"test-embedding"}
            return r"`test-chat` does not exist.* Check the model's name and the base URL"
    raise AssertionError(fault)


FAULTS = [
    "embedding server fails",
    "wrong key",
    "unknown extraction model",
]


def test_doctor_asks_every_model_and_shows_its_reply(modeled, server, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_QUERY_MODEL", "openai/test-query")
    printed = run_command("doctor")
    for line in (
        r"embeddings .*openai/test-embedding at http.* 32 dimensions",
        r"extraction, summaries, reports, claims .*openai/test-chat at .* answers by json_schema",
        r"questions .*openai/test-query",
    ):
        assert any(re.search(line, row) for row in printed.splitlines()), line
    assert len(server.requests) == 3
    run_command("doctor")
    assert len(server.requests) == 6  # the ledger says nothing about today


@pytest.mark.parametrize("fault", FAULTS)
def test_doctor_names_what_is_wrong_and_fails(modeled, server, monkeypatch, fault):
    reason = break_model(fault, server, monkeypatch)
    assert re.search(reason, " ".join(run_command("doctor", status=1).split()))
    assert {request.task for request in server.chats} <= {"ModelCheck"}
