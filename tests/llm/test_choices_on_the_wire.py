"""What performs each task of indexing: the settings in the environment, and the requests that they make."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_assets.assets.index import models_for
from graphrag_assets.assets.model_tasks import IndexingTasks
from graphrag_assets.contracts.records import ReportMaterial, TextUnit
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.settings import Settings
from tests.openai_server import OpenAIServer

UNIT = TextUnit("u", "Cyrus Field founded the Atlantic Telegraph Company in 1856.")
DESCRIBED = pl.DataFrame(
    [("k", "Great Eastern", text, 1) for text in ("It laid the cable.", "It was a ship.")],
    ["key", "title", "description", "n"],
    orient="row",
)
MATERIAL = ReportMaterial(3, 1, ("Great Eastern",), (), "The Great Eastern laid the cable.")
ALL = {"ExtractGraphWithClaims", "Summary", "CommunityReport"}


def sent(server: OpenAIServer, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: str) -> dict[str, Any]:
    """The body of the request of each task, after every task was done with these settings."""
    shared = {"CHAT_MODEL": "openai/test-chat", "EMBEDDING_MODEL": "openai/test-embedding", "DATA": str(folder)}
    shared |= {"CHAT_BASE_URL": server.url, "EMBEDDING_BASE_URL": server.url}
    for name, value in (shared | {"MAX_GLEANINGS": "0"} | settings).items():
        monkeypatch.setenv(f"GRAPHRAG_{name}", value)
    monkeypatch.setattr("graphrag_assets.assets.model_tasks.SUMMARY_MIN_TOKENS", 0)
    models = models_for(Settings.load())
    list(models.extract([UNIT]))
    models.summarize(DESCRIBED)
    models.write_reports([MATERIAL])
    models.embed(["Ada"])
    return {request.task: request.body for request in server.requests}


@pytest.mark.parametrize(
    ("settings", "tasks"),
    [
        ({}, ALL),
        ({"METHOD": "standard"}, ALL),
        ({"METHOD": "fast"}, {"CommunityReport"}),
        ({"METHOD": "embedded"}, set()),
        ({"CLAIMS": "off"}, {"ExtractGraph", "Summary", "CommunityReport"}),
        ({"CLAIMS": "embedded"}, {"ExtractGraph", "Summary", "CommunityReport"}),
    ],
)
def test_a_choice_sends_the_requests_of_its_tasks_alone(openai_server, tmp_path, monkeypatch, settings, tasks):
    asked = sent(openai_server, tmp_path, monkeypatch, **settings)
    assert asked.keys() - {"embedding"} == tasks
    if "CommunityReport" in tasks:
        from_text = "from the passages that speak of it" in asked["CommunityReport"]["messages"][0]["content"]
        assert from_text is (not any(task.startswith("Extract") for task in tasks))


def test_indexing_has_its_own_model_and_parameters(openai_server, tmp_path, monkeypatch):
    parameters = {"temperature": 0.2, "seed": 1, "extraction": {"num_ctx": 8192, "seed": None}, "query": {"seed": 2}}
    parameters["embedding"] = {"dimensions": 8}
    given = {"EXTRACTION_MODEL": "openai/small", "MODEL_PARAMETERS": json.dumps(parameters)}
    asked = sent(openai_server, tmp_path, monkeypatch, **given)
    expected = {task: {"model": "small", "temperature": 0.2, "num_ctx": 8192} for task in ALL}
    others = {"messages", "response_format", "input", "encoding_format"}
    assert {
        task: {name: value for name, value in body.items() if name not in others} for task, body in asked.items()
    } == expected | {"embedding": {"model": "test-embedding", "dimensions": 8}}


def tasks_with(chat=None, **settings) -> IndexingTasks:
    return IndexingTasks(Settings.load(chat_model="openai/test-model", **settings), Prompts(), lambda: chat, run_id="r")


def test_a_community_of_two_has_a_report_without_a_request(lab):
    reports = tasks_with(lab.chat()).write_reports([ReportMaterial(2, 1, ("Ada", "Ben"), (), "Ada met Ben.")])
    assert len(list(reports)) == 1
    assert lab.server.chats == []


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        ({"claim_description": "losses of money"}, ["extractor"]),
        ({"claim_description": "losses of money", "claims": "off"}, []),
        ({"relationship_types": "PART_OF, laid by"}, ["extractor"]),
        ({"language": "Welsh"}, ["extractor", "summarizer", "reporter"]),
    ],
)
def test_a_setting_changes_the_fingerprint_of_its_stage_alone(settings, changed):
    before, after = tasks_with(claims=settings.get("claims", "")), tasks_with(**settings)
    stages = ("extractor", "summarizer", "reporter")
    assert [name for name in stages if getattr(before, name) != getattr(after, name)] == changed
