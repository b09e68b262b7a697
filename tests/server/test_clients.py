"""Tokens with filters and limits: nothing of another client in any field, and limits that outlast a restart."""

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor

import httpx2
import openai
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from graphrag_assets.errors import SettingsError
from graphrag_assets.extras.server.access import USAGE_FILE, Clients, RefusedError, clients_of
from graphrag_assets.runtime.masking import mask
from graphrag_assets.testing import FakeAnswerer, index_of
from tests.server.conftest import serve

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
    for template in ("Who leads {}?", "What did {} buy?", "What are the plans of {}?", "When did {} meet others?")
]


@pytest.fixture(scope="module")
def tenants():
    with index_of(DOCUMENTS) as rag, serve(rag, clients_of(CLIENTS), allow_sql=True) as served:
        yield served


@pytest.mark.parametrize(
    ("token", "own", "other"), [(RED, "red", "blue"), pytest.param(BLUE, "blue", "red", marks=pytest.mark.long)]
)
def test_sixty_questions_show_nothing_of_the_other_client(tenants, token, own, other):
    hidden = [*SECRETS[other].split(), f"{other}/"]
    asked = [(question, method) for question in QUESTIONS for method in ("local", "global", "basic")]
    assert len(asked) == 60

    def ask(given: tuple[str, str]) -> str:
        question, method = given
        body = {"question": question, "method": method}
        with tenants.http(token) as http:
            texts = [http.post("/api/query", json=body).text]
            if method == "local":
                texts += [http.post("/api/context", json=body).text]
                texts += [http.post("/api/retrieve", json={"question": question}).text]
        return "".join(texts).replace(question, "").replace(json.dumps(question), "")

    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(ask, asked))
    assert [word for word in hidden for text in texts if word in text] == []
    assert any(SECRETS[own] in text for text in texts)


def test_lookups_show_nothing_of_the_other_client(tenants):
    with tenants.http(ALL) as everything:
        blue = everything.get("/api/entities/Cobalt Heron/evidence").json()["passages"][0]["text_unit_id"]
        reports = [row["human_readable_id"] for row in everything.get("/api/communities").json()["communities"]]
    paths = [
        "/api/entities?q=Cobalt Heron",
        "/api/entities/Cobalt Heron",
        "/api/entities/Mercury Works",
        "/api/entities/Mercury Works/relationships",
        "/api/entities/Mercury Works/timeline",
        "/api/entities/Mercury Works/evidence",
        "/api/path?from=Mercury Works&to=Great Eastern",
        "/api/communities",
        "/api/status",
        f"/api/source/{blue}",
        *(f"/api/entities/{number}" for number in range(30)),
        *(f"/api/reports/{number}" for number in reports),
    ]
    with tenants.http(RED) as http:
        found = {path: http.get(path) for path in paths}
        assert found["/api/entities/Mercury Works"].json()["relationships"]
        assert found[f"/api/source/{blue}"].status_code == 404
        for path, response in found.items():
            assert not ({"Heron", "blue/"} & set(response.text.replace("'Cobalt Heron'", "").split('"'))), path
            assert "Heron" not in response.text.replace("'Cobalt Heron'", ""), path
        assert http.get("/explorer").status_code == http.get("/metrics").status_code == 403
        assert http.post("/api/sql", json={"query": "SELECT 1"}).status_code == 403
        refused = http.post("/api/query", json={"question": "x", "filter": {"batches": ["blue"]}})
        assert refused.status_code == 400
        assert "may see: red" in refused.json()["error"]["message"]
    with tenants.http(ALL) as http:
        assert http.post("/api/sql", json={"query": "SELECT 1"}).status_code == 200
        assert "Explorer" in http.get("/explorer").text


def test_a_filter_that_the_index_does_not_have_lists_nothing_of_others(tenants):
    with tenants.http(GONE) as http:
        responses = [http.post(f"/api/{path}", json={"question": "x"}) for path in ("query", "context", "retrieve")]
        responses.append(http.get("/api/status"))
    assert [response.status_code for response in responses] == [400] * 4
    assert not [found for response in responses for found in re.findall(r"\b(?:red|blue)\b", response.text)]
    assert "what the filter of this token names" in responses[0].text


def test_tokens_are_asked_for_everywhere_but_at_the_page(tenants):
    paths = ["/api/status", "/v1/models", "/metrics", "/explorer", "/mcp", "/api/entities?q=x", "/api/source/1"]
    with tenants.http() as http:
        assert {path: http.get(path).status_code for path in paths} == dict.fromkeys(paths, 401)
        assert http.get("/").status_code == http.get("/healthz").status_code == 200
    with tenants.http("wrong-token-0123456789") as http:
        assert http.post("/api/query", json={"question": "x"}).status_code == 401


def test_links_open_without_a_token_and_only_what_they_were_signed_for(tenants):
    with tenants.http(RED) as http:
        answer = http.post("/api/query", json={"question": "Who leads Vermilion Falcon?", "method": "local"}).json()
    url = answer["citations"][0]["url"]
    with tenants.http() as http:
        page = http.get(url, headers={"Accept": "text/html"})
        assert page.status_code == 200
        assert "Vermilion" in page.text
        assert http.get(url.replace("for=red", "for=blue")).status_code == 401
        assert http.get(url.replace("/api/source/", "/api/entities/api/source/")).status_code == 401
        assert http.get(url.replace("/api/source/", "/api/source/../")).status_code in (401, 404)
        assert http.get(url[:-1] + ("0" if url[-1] != "0" else "1")).status_code == 401
        with tenants.http(ALL) as everything:
            blue = everything.get("/api/entities/Cobalt Heron/evidence").json()["passages"][0]["text_unit_id"]
        assert http.get(url.replace(answer["citations"][0]["text_unit_id"], blue)).status_code == 401


def test_openai_and_mcp_clients_have_the_filter_of_their_token(tenants):
    for token, own, other in ((RED, "Vermilion", "Cobalt"), (BLUE, "Cobalt", "Vermilion")):
        with openai.OpenAI(base_url=f"{tenants.url}/v1", api_key=token, max_retries=0) as client:
            asked = [{"role": "user", "content": "Who met Mercury Works?"}]
            found = client.chat.completions.create(model="graphrag-local", messages=asked)
        assert own in found.choices[0].message.content
        assert other not in str(found.model_dump())

        async def call(token: str = token) -> str:
            headers = {"Authorization": f"Bearer {token}"}
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Client(streamable_http_client(f"{tenants.url}/mcp", http_client=http)) as mcp,
            ):
                result = await mcp.call_tool("retrieve", {"question": "Who met Mercury Works?"})
                refused = await mcp.call_tool("sql", {"query": "SELECT 1"})
                assert refused.is_error
                return str(result.structured_content)

        text = asyncio.run(call())
        assert own in text
        assert other not in text


def test_limits_of_a_day_hold_over_a_restart_and_those_of_a_minute_say_when_to_ask_again(tmp_path):
    given = json.dumps({"few": {"token": RED, "questions_per_day": 2, "usd_per_day": 1, "requests_per_minute": 3}})
    with index_of({"note": "Ada Lovelace met Charles Babbage."}, FakeAnswerer("She met Babbage.")) as rag:
        with serve(rag, clients_of(given)) as served, served.http(RED) as http:
            for _ in range(2):
                assert http.post("/api/query", json={"question": "Whom did Ada meet?"}).status_code == 200
            refused = http.post("/api/query", json={"question": "Whom did Ada meet?"})
            assert refused.status_code == 429
            assert "2 questions a day" in refused.json()["error"]["message"]
            assert int(refused.headers["retry-after"]) > 0
            assert "3 requests a minute" in http.get("/api/status").json()["error"]["message"]
        file = rag.index.path / USAGE_FILE
        assert RED not in file.read_text()
        with serve(rag, clients_of(given)) as served, served.http(RED) as http:
            assert http.post("/api/query", json={"question": "Whom did Ada meet?"}).status_code == 429


def test_dollars_of_a_day_are_added_up(tmp_path):
    (client,) = clients_of(json.dumps({"few": {"token": RED, "usd_per_day": 0.5}}))
    clients = Clients([client], tmp_path / USAGE_FILE)
    for _ in range(2):
        clients.admit(client)
        clients.charge(client, 0.3)
    with pytest.raises(RefusedError, match=r"US\$ 0.5 a day"):
        Clients([client], tmp_path / USAGE_FILE).admit(client)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("short", "16 characters"),
        ('{"a": {"token": "short"}}', "16 characters"),
        ('{"a": {}}', "a has no token"),
        ('{"a": {"token": "long-enough-token-1", "filter": {"batchs": ["x"]}}}', "batchs"),
        ('{"a": {"token": "long-enough-token-1", "budget": 5}}', "budget"),
        ('{"a": {"token": "long-enough-token-1"}, "b": {"token": "long-enough-token-1"}}', "same token"),
        ("{nonsense", "JSON object"),
        ('{"a": "long-enough-token-1"}', "JSON object"),
    ],
)
def test_wrong_tokens_are_explained_without_them(text, said):
    with pytest.raises(SettingsError, match=said) as error:
        clients_of(text)
    assert "long-enough-token-1" not in str(error.value)


def test_tokens_are_masked_in_what_leaves_the_process():
    clients_of(CLIENTS)
    assert RED not in mask(f"the token is {RED}")


def test_a_client_sees_the_index_of_its_own_batch_in_its_status(tenants):
    with tenants.http(RED) as http:
        assert "rows" not in http.get("/api/status").json()
