"""What the model of a search reads when an option is given on the command line."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_assets.query import GraphRAG
from graphrag_assets.store.publication_reader import Reader
from tests.cli import run_command
from tests.openai_server import OpenAIServer, running
from tests.query.test_filters import whole  # noqa: F401

QUESTION = "What did Hudson command?"
HISTORY = [{"role": "user", "content": "Was the Niagara a frigate?"}]


def ask(path: Path, method: str, *arguments: str) -> object:
    return run_command("query", method, QUESTION, "--index", str(path), "--json", *arguments)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """The server of the chat model that the settings name."""
    with running() as server:
        settings = {"DATA": str(tmp_path), "CHAT_MODEL": "openai/test-chat", "CHAT_BASE_URL": server.url}
        for name, value in settings.items():
            monkeypatch.setenv(f"GRAPHRAG_{name}", value)
        yield server


def prompts(server: OpenAIServer) -> str:
    return "\n".join(message["content"] for request in server.chats for message in request.body["messages"])


@pytest.mark.parametrize(
    ("method", "arguments", "read", "unread"),
    [
        ("local", (), r"\|SHIP\|.*\|PERSON\|.*\|BRIBED\|.*was sold", r"\|hop\n"),
        ("local", ("--entity-type", "SHIP"), r"\|SHIP\|", r"\|PERSON\|"),
        ("drift", ("--entity-type", "SHIP"), r"\|SHIP\|", r"\|PERSON\|"),
        ("local", ("--relationship-type", "MET"), r"\|MET\|", r"\|VISITED\||\|PAID\|"),
        ("drift", ("--relationship-type", "MET"), r"\|MET\|", r"\|VISITED\||\|PAID\|"),
        ("basic", ("--filter", "year=1858"), "landed the cable", "was sold"),
        ("lazy", ("--filter", "year=1858"), "landed the cable", "was sold"),
        ("local", ("--as-of", "1860"), "landed the cable", "was sold"),
        ("local", ("--community-level", "0"), r"\|Report 0\|", r"\|Report 1\|"),
        ("drift", ("--community-level", "0"), r"\|Report 0\|", r"\|Report 1\|"),
        ("global", ("--level", "0"), r"\|Report 0\|", r"\|Report 1\|"),
        ("local", ("--hops", "2"), r"\|weight\|hop\n", r"\|links\n"),
        ("drift", ("--hops", "2"), r"\|weight\|hop\n", r"\|links\n"),
        ("global", ("--dynamic",), r'"ratings"|rating', "^$"),
        ("basic", ("--response-type", "a limerick"), "answer: a limerick", "^$"),
    ],
)
def test_an_option_changes_what_the_model_reads(
    whole: Reader,  # noqa: F811
    server: OpenAIServer,
    method: str,
    arguments: tuple[str, ...],
    read: str,
    unread: str,
) -> None:
    ask(whole.path, method, *arguments)
    assert re.search(read, prompts(server), re.DOTALL)
    assert not re.search(unread, prompts(server))
    assert ("CommunityRatings" in {request.task for request in server.chats}) is ("--dynamic" in arguments)


@pytest.mark.parametrize("method", ["local", "drift", "global"])
def test_summaries_are_read_in_place_of_whole_reports(index_file: Path, server: OpenAIServer, method: str) -> None:
    finding = "## Niagara"
    GraphRAG(index_file).search(method, QUESTION)
    assert finding in prompts(server)
    server.requests.clear()
    GraphRAG(index_file).search(method, QUESTION, use_community_summary=True)
    assert "carried half of the cable" in prompts(server)
    assert finding not in prompts(server)


def test_a_conversation_is_read_from_its_file(whole: Reader, server: OpenAIServer, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "turns.json"
    file.write_text(json.dumps(HISTORY))
    for method in ("local", "global", "drift", "basic"):
        server.requests.clear()
        ask(whole.path, method, "--history", str(file))
        assert HISTORY[0]["content"] in prompts(server), method
    server.requests.clear()
    run_command(
        "query", "questions", "--index", str(whole.path), "--history", str(file), "--count", "3", "--as-of", "1860"
    )
    assert {request.task for request in server.chats} == {"Questions"}
    assert HISTORY[0]["content"] in prompts(server)
    assert "was sold" not in prompts(server)


def test_questions_are_answered_by_the_model_and_the_parameters_for_questions(
    whole: Reader,  # noqa: F811
    server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GRAPHRAG_QUERY_MODEL", "openai/quick")
    parameters = {"temperature": 0.2, "seed": 1, "query": {"seed": None, "reasoning_effort": "low"}}
    monkeypatch.setenv("GRAPHRAG_MODEL_PARAMETERS", json.dumps(parameters))
    assert GraphRAG(whole.path).basic(QUESTION).model == "openai/quick"
    (sent,) = (request.body for request in server.chats)
    given = {"temperature", "seed", "reasoning_effort"} & sent.keys()
    assert {name: sent[name] for name in ("model", *given)} == {
        "model": "quick",
        "temperature": 0.2,
        "reasoning_effort": "low",
    }
