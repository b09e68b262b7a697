"""The test server as a separate process, as benchmarks use it."""

import json
import urllib.error
import urllib.request

import pytest

from graphrag_assets.llm.model_errors import InvalidAnswer
from graphrag_assets.llm.structured_output import again
from tests.model_index import server_process
from tests.openai_content import content_for


def post(url: str, body: dict) -> dict:
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def get(url: str) -> dict:
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


def test_test_server_runs_as_a_process_and_reports_its_counts() -> None:
    with server_process("--fault", "500=1.0") as url:
        with pytest.raises(urllib.error.HTTPError, match="500"):
            post(url, {"model": "m", "messages": []})
        assert get(f"{url}/stats")["counts"]["fault 500"] == 1
        assert get(f"{url}/models")["data"][0]["id"] == "test-model"


def test_repeated_requests_are_answered_from_memory_and_counted() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Ada met Charles in London, it is said."}]}
    with server_process("--remember") as url:
        assert post(url, body) == post(url, body)
        counts = get(f"{url}/stats")["counts"]
        assert (counts["requests"], counts["task text"]) == (2, 2)


def test_answer_depends_on_the_request_and_not_on_invalid_answers() -> None:
    first = [{"role": "system", "content": "Be exact."}, {"role": "user", "content": "Ada met Charles. She wrote him."}]
    more = [*first, {"role": "assistant", "content": "{}"}, {"role": "user", "content": "What was missed?"}]
    wanted = {"type": "object", "properties": {"name": {"type": "string"}, "text": {"type": "string"}}}
    response_format = {"type": "json_schema", "json_schema": {"name": "Answer", "schema": wanted}}

    def answer(messages: list) -> str:
        return content_for({"messages": messages, "response_format": response_format})

    assert answer(again(first, "Sure: {", InvalidAnswer("It is not valid JSON."))) == answer(first)
    assert answer(again(more, "", InvalidAnswer("The answer was empty."))) == answer(more)
    assert len({answer([*more, *more[2:] * n]) for n in range(6)}) > 1
