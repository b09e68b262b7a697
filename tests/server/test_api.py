"""`/api` over a real server: answers, streams, lookups, and what is refused."""

import itertools
import json

import httpx
import pytest

from graphrag_assets.errors import SettingsError
from graphrag_assets.extras.server.app import MAX_BODY, make_app
from graphrag_assets.extras.server.openapi import openapi

QUESTION = "Who commanded the Great Eastern in 1865?"


def events(response: httpx.Response) -> list[tuple[str, dict]]:
    """Names and data of server-sent events."""
    found, name = [], ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            found.append((name, json.loads(line[6:])))
    return found


def test_answer_has_footnotes_whose_links_lead_to_the_quoted_characters(sample_server):
    with sample_server.http() as http:
        answer = http.post("/api/query", json={"question": QUESTION, "method": "local"}).json()
        assert "Anderson" in answer["text"]
        assert "[1]" in answer["text"]
        assert "[Data:" not in answer["text"]
        assert {c["footnote"] for c in answer["citations"]} == {1, 2}
        for citation in answer["citations"]:
            found = http.get(citation["url"]).json()
            start = found["start_char"]
            quoted = found["text"][citation["start_char"] - start : citation["end_char"] - start]
            assert quoted == citation["quote"]
            page = http.get(citation["url"], headers={"Accept": "text/html"})
            assert "<mark" in page.text
            assert "default-src 'none'" in page.headers["content-security-policy"]
        assert any(node["title"] == "Great Eastern" for node in answer["graph"]["nodes"])


def test_stream_reports_status_first_and_its_pieces_are_the_answer(sample_server):
    with (
        sample_server.http() as http,
        http.stream("POST", "/api/query/stream", json={"question": QUESTION}) as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        found = events(response)
    names = [name for name, _ in found]
    assert names[0] == "status"
    assert names[-2:] == ["answer", "done"]
    assert "context" in names
    pieces = "".join(data["text"] for name, data in found if name == "token")
    assert pieces == found[-2][1]["text"]


def test_history_filter_and_options_reach_the_search(sample_server):
    with sample_server.http() as http:
        asked = {"question": "Who commanded her?", "history": [{"role": "user", "content": "The Great Eastern?"}]}
        assert "Great Eastern" in http.post("/api/context", json={**asked, "method": "basic"}).json()["text"]
        passages = http.post("/api/retrieve", json={"question": QUESTION, "filter": {"batches": ["1-beginnings"]}})
        assert {row["source"].split("/")[0] for row in passages.json()["passages"]} == {"1-beginnings"}
        few = http.post("/api/query", json={"question": QUESTION, "method": "basic", "options": {"k": 1}}).json()
        assert len(few["context"]["sources"]) == 1


def test_lookups(sample_server):
    with sample_server.http() as http:
        entity = http.get("/api/entities/Great Eastern").json()
        assert entity["title"] == "Great Eastern"
        assert entity["relationships"]
        assert entity["communities"]
        number = entity["human_readable_id"]
        assert http.get(f"/api/entities/{number}").json()["title"] == "Great Eastern"
        assert http.get("/api/entities", params={"q": "Niagara"}).json()["entities"][0]["title"] == "Niagara"
        assert http.get("/api/entities/Niagara/relationships?limit=2").json()["relationships"]
        assert http.get("/api/entities/Niagara/timeline").json()["claims"]
        for row in http.get("/api/entities/Niagara/evidence?limit=3").json()["passages"]:
            assert "Niagara" in row["text"]
            assert http.get(row["url"]).status_code == 200
        way = http.get("/api/path", params={"from": "Niagara", "to": "Great Eastern"}).json()["path"]
        ends = [{row["source"], row["target"]} for row in way]
        assert "Niagara" in ends[0]
        assert "Great Eastern" in ends[-1]
        assert all(one & two for one, two in itertools.pairwise(ends))
        first = http.get("/api/communities?level=0&limit=3").json()["communities"]
        assert [row["level"] for row in first] == [0, 0, 0]
        assert http.get(f"/api/reports/{first[0]['human_readable_id']}").json()["full_content"].startswith("# ")
        assert http.get("/api/status").json()["rows"]["documents"] > 5


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("POST", "/api/query", {"question": ""}, 400, "empty"),
        ("POST", "/api/query", {"question": "x", "metod": "local"}, 400, "metod"),
        ("POST", "/api/query", {"question": "x", "method": "sideways"}, 400, "method"),
        ("POST", "/api/query", {"question": "x", "method": "local", "options": {"tok_k": 3}}, 400, "tok_k"),
        ("POST", "/api/query", {"question": "x", "options": {"callbacks": 1}}, 400, "callbacks"),
        ("POST", "/api/query", {"question": "x", "filter": {"batches": ["nowhere"]}}, 400, "nowhere"),
        ("POST", "/api/retrieve", {"question": "x", "k": 1_000_000}, 400, "k"),
        ("POST", "/api/retrieve", {"question": "x", "method": "vectors"}, 400, "no vectors"),
        ("POST", "/api/query", "{", 400, "JSON"),
        ("GET", "/api/entities/Nobody Nowhere", None, 404, "nearest"),
        ("GET", "/api/source/nothing", None, 404, "nothing"),
        ("GET", "/api/reports/99999", None, 404, "99999"),
        ("GET", "/api/entities?q=x&limit=-1", None, 400, "limit"),
        ("POST", "/api/query", {"question": "x" * 100_000}, 400, "32,000"),
    ],
)
def test_bad_requests_are_explained(sample_server, method, path, body, status, said):
    with sample_server.http() as http:
        given = {"content": body, "headers": {"Content-Type": "application/json"}}
        response = http.request(method, path, **(given if isinstance(body, str) else {"json": body}))
    assert response.status_code == status
    assert said in response.json()["error"]["message"]


def test_wrong_host_origin_size_and_type_are_refused(sample_server):
    asked = {"question": QUESTION}
    with sample_server.http() as http:
        assert http.post("/api/query", json=asked, headers={"Origin": "https://evil.example"}).status_code == 403
        assert http.get("/api/status", headers={"Host": "evil.example"}).status_code == 421
        assert http.post("/mcp", json={}, headers={"Origin": "https://evil.example"}).status_code == 403
        assert http.get("/api/status", headers={"Origin": sample_server.url}).status_code == 200
        assert http.post("/api/query", content=b"{" + b" " * MAX_BODY, headers={"Content-Type": "application/json"})
        large = http.post("/api/query", content=b"{" + b" " * MAX_BODY, headers={"Content-Type": "application/json"})
        assert large.status_code == 413
        assert http.post("/api/query", content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 400


def test_every_address_is_described_counted_and_has_safe_headers(sample_server):
    described = set(openapi("http://x")["paths"])
    with sample_server.http() as http:
        served = http.get("/openapi.json").json()["paths"]
        assert described == set(served)
        for path, operations in served.items():
            if "get" in operations:
                response = http.get(path.replace("{", "").replace("}", ""), params={"from": "Niagara", "to": "Europe"})
                assert response.status_code in (200, 400, 404), path
                assert response.headers["x-content-type-options"] == "nosniff"
        counted = http.get("/metrics").text
    assert 'graphrag_requests_total{path="/api/status",status="200"}' in counted
    assert "graphrag_search_seconds_bucket" in counted


def test_another_address_needs_a_token_and_a_public_url(sample_server, tokens):
    with pytest.raises(SettingsError, match="GRAPHRAG_SERVER_TOKENS"):
        make_app(sample_server.searches, "0.0.0.0", 80, ["http://graph.example"])
    protected = type(sample_server.searches)(
        **{
            **{
                name: getattr(sample_server.searches, name)
                for name in ("rag", "links", "metrics", "seconds", "at_once")
            },
            "clients": type(sample_server.searches.clients)(
                tokens("a-long-enough-token"), sample_server.searches.clients.file
            ),
        }
    )
    with pytest.raises(SettingsError, match="--public-url"):
        make_app(protected, "0.0.0.0", 80, [])
    assert make_app(protected, "0.0.0.0", 80, ["http://graph.example"])
