"""Tokens with filters: nothing of another client in any field."""

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from graphrag_assets.errors import SettingsError
from graphrag_assets.extras.server.access import clients_of
from graphrag_assets.runtime.outgoing import mask
from graphrag_assets.testing import index_of
from tests.server.conftest import completion, serve

RED, BLUE, ALL = "red-token-0123456789", "blue-token-0123456789", "all-token-0123456789"
GONE = "gone-token-0123456789"
CLIENTS = json.dumps(
    {
        "red": {"token": RED, "filter": {"batches": ["red"]}},
        "blue": {"token": BLUE, "filter": {"batches": ["blue"]}},
        "all": {"token": ALL},
        "gone": {"token": GONE, "filter": {"batches": ["gone"]}},
    }
)
SECRETS = {"red": "Vermilion Falcon", "blue": "Cobalt Heron"}
DOCUMENTS = {
    f"{color}/{n}.md": f"# Plan {n} of {name}\n\nProject {name} {n} is led by Captain {color.title()} Ashton. {name} met "
    f"Mercury Works in 186{n} and bought the Great Eastern from Mercury Works. Mercury Works sold {name} a cable.\n"
    for color, name in SECRETS.items()
    for n in range(1, 4)
}
QUESTIONS = [
    template.format(name)
    for name in [*SECRETS.values(), "Mercury Works", "the Great Eastern", "Captain Ashton"]
    for template in ("Who leads {}?", "What are the plans of {}?")
]


@pytest.fixture(scope="module")
def tenants():
    with index_of(DOCUMENTS) as rag, serve(rag, clients_of(CLIENTS)) as served:
        yield served


def tool_results(served: Any, token: str, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """What tools answer, or why not."""

    async def call_all() -> list[str]:
        async with served.mcp(token) as client:
            return [str((await client.call_tool(*call)).content) for call in calls]

    return asyncio.run(call_all())


def test_thirty_questions_show_nothing_of_the_other_client(tenants):
    token, own, hidden = RED, "red", [*SECRETS["blue"].split(), "blue/"]
    asked = [(question, method) for question in QUESTIONS for method in ("local", "global", "basic")]
    assert len(asked) == 30

    def ask(given: tuple[str, str]) -> str:
        question, method = given
        return str(tenants.chunks(token, question, method)).replace(question, "")

    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(ask, asked))
    retrieved = tool_results(tenants, token, *(("retrieve", {"question": question}) for question in QUESTIONS))
    with tenants.http(token) as http:
        message = {"role": "user", "content": "Who met Mercury Works?"}
        body = {"model": "graphrag-local", "messages": [message]}
        completed = http.post("/v1/chat/completions", json=body).text
    assert SECRETS[own] in completed
    assert [word for word in hidden for text in [*texts, *retrieved, completed] if word in text] == []
    assert any(SECRETS[own] in text for text in texts)


def test_lookups_show_nothing_of_the_other_client(tenants):
    (blue,) = tool_results(tenants, ALL, ("evidence", {"name": "Cobalt Heron"}))
    unit = re.search(r'"text_unit_id": ?"(\w+)"', blue)[1]
    calls = [
        ("entity", {"name": "Mercury Works"}),
        ("entity", {"name": "Cobalt Heron"}),
        ("evidence", {"name": "Mercury Works"}),
        ("evidence", {"name": "Cobalt Heron"}),
        ("path", {"start": "Mercury Works", "end": "Great Eastern"}),
        ("path", {"start": "Mercury Works", "end": "Cobalt Heron"}),
        ("communities", {}),
        *(("entity", {"name": str(number)}) for number in range(30)),
    ]
    found = tool_results(tenants, RED, *calls)
    assert "Vermilion Falcon" in found[0]
    for call, text in zip(calls, found, strict=True):
        assert not re.search(r"Heron|blue/|Blue", text.replace("'Cobalt Heron'", "")), call

    with tenants.http(RED) as http:
        assert http.get(f"/source/{unit}").status_code == 404
        assert http.get("/explorer").status_code == 403
        about = {"client": "red", "url": tenants.url, "publication": 1, "map": None}
        assert http.get("/v1/models").json()["graphrag"] == about
    with tenants.http(ALL) as http:
        assert "Heron" in http.get(f"/source/{unit}").text
        assert "Explorer" in http.get("/explorer").text


def test_a_filter_of_a_request_can_only_narrow_that_of_its_token(tenants):
    answers = [
        tenants.answer(RED, "Who met Mercury Works?", filter=limits)
        for limits in (
            {"batches": ["blue"]},
            {"batches": ["lube"]},
            {"documents": ["Plan 1 of Cobalt Heron"]},
            {"documents": ["Plan 9 of Cobalt Heron"]},
        )
    ]
    for hidden, absent in (answers[:2], answers[2:]):
        assert hidden["citations"] == hidden["entities"] == []
        assert (hidden["text"], len(hidden["errors"])) == (absent["text"], len(absent["errors"]))
        assert "red" not in str(hidden["errors"])
    answer = tenants.answer(RED, "Who met Mercury Works?", filter={"documents": ["Plan 1 of Vermilion Falcon"]})
    assert {citation["title"] for citation in answer["citations"]} == {"Plan 1 of Vermilion Falcon"}
    (text,) = tool_results(tenants, RED, ("retrieve", {"question": "Mercury", "filter": {"batches": ["blue", "red"]}}))
    assert "Vermilion" in text
    assert "Cobalt" not in text
    with tenants.http(RED) as http:
        for options in ({"rights": {}}, {"batches": ["blue"]}):
            refused = http.post("/v1/chat/completions", json=completion("x", options=options))
            assert "is no option here" in refused.text


def test_a_filter_of_a_token_whose_names_are_gone_shows_nothing_and_fails_nothing(tenants):
    texts = [str(tenants.chunks(GONE, "x")), *tool_results(tenants, GONE, ("retrieve", {"question": "x"}))]
    with tenants.http(GONE) as http:
        assert http.get("/v1/models").status_code == 200
    assert re.findall(r"\b(?:red|blue|gone|error)\b", str(texts).replace("'errors'", "")) == []


def test_tokens_are_asked_for_everywhere_but_at_the_page(tenants):
    paths = ["/v1/models", "/explorer", "/mcp", "/source/1"]
    with tenants.http() as http:
        assert {path: http.get(path).status_code for path in paths} == dict.fromkeys(paths, 401)
        assert http.get("/").status_code == http.get("/healthz").status_code == 200
    with tenants.http("wrong-token-0123456789") as http:
        assert http.post("/v1/chat/completions", json=completion("x")).status_code == 401


def test_links_open_without_a_token_and_only_what_they_were_signed_for(tenants):
    answer = tenants.answer(RED, "Who leads Vermilion Falcon?")
    citation = answer["citations"][0]
    blue = tenants.answer(BLUE, "Who leads Cobalt Heron?")["citations"][0]
    url = citation["url"]
    with tenants.http() as http:
        page = http.get(url)
        assert page.status_code == 200
        assert "Vermilion" in page.text
        for other in (
            url.replace("for=red", "for=blue"),
            url.replace("/source/", "/v1/models/source/"),
            url[:-1] + ("0" if url[-1] != "0" else "1"),
            url.replace(citation["text_unit_id"], blue["text_unit_id"]),
        ):
            assert http.get(other).status_code == 401, other
        assert http.get(url.replace("/source/", "/source/../")).status_code in (401, 404)
        access, path = tenants.searches.access, f"/source/{citation['text_unit_id']}"
        timed = [access.url(access.named("red"), path, {"until": until}) for until in (1, 9_999_999_999)]
        assert [http.get(one).status_code for one in timed] == [401, 200]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("short", "16 characters"),
        ('{"a": {}}', "a has no token"),
        ('{"a": {"token": "long-enough-token-1", "filter": {"batchs": ["x"]}}}', "batchs"),
        ('{"a": {"token": "long-enough-token-1", "budget": 5}}', "budget"),
        ('{"a": {"token": "long-enough-token-1", "filter": {"entity_types": ["X"]}}}', "hide no text"),
        ('{"a": {"token": "long-enough-token-1"}, "b": {"token": "long-enough-token-1"}}', "same token"),
        ("{nonsense", "JSON object"),
    ],
)
def test_wrong_tokens_are_explained_without_them(text, said):
    with pytest.raises(SettingsError, match=said) as error:
        clients_of(text)
    assert "long-enough-token-1" not in str(error.value)


def test_tokens_are_masked_in_what_leaves_the_process():
    clients_of(CLIENTS)
    assert RED not in mask(f"the token is {RED}")
