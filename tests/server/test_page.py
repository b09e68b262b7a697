"""The page over a real server and in Chromium: its stream, passages of citations, what is refused, no other requests."""

import asyncio
from urllib.parse import urlsplit

import pytest

from graphrag_assets.contracts.answering import PLAIN, Answerer, AnswerOptions, Evidence, Pieces, Reply
from graphrag_assets.errors import SettingsError
from graphrag_assets.extras.server.access import Access, clients_of
from graphrag_assets.extras.server.app import MAX_BODY, make_app
from graphrag_assets.extras.server.searches import Searches
from graphrag_assets.query import fetch
from graphrag_assets.testing import index_of
from tests.browsers import WHY_NOT, chromium
from tests.server.conftest import QUESTION, serve

JSON = {"Content-Type": "application/json"}
DOCUMENTS = {
    "ships/voyage.md": "# The <b id=planted>voyage</b>\n\nCaptain James Anderson commanded the Great Eastern in 1865. "
    "<script>document.title = 'planted'</script> The Great Eastern carried Cyrus Field.\n"
}
TOKEN = "chat-token-0123456789"


def test_wrong_host_origin_and_size_are_refused_and_headers_are_safe(sample_server):
    with sample_server.http() as http:
        assert http.get("/v1/models", headers={"Host": "evil.example"}).status_code == 421
        assert http.get("/v1/models", headers={"Origin": "https://evil.example"}).status_code == 403
        assert http.post("/mcp", json={}, headers={"Origin": "https://evil.example"}).status_code == 403
        assert http.get("/v1/models", headers={"Origin": sample_server.url}).status_code == 200
        large = http.post("/v1/chat/completions", content=b"{" + b" " * MAX_BODY, headers=JSON)
        assert large.status_code == 413
        assert http.get("/source/nothing").status_code == 404
        for path in ("/", "/healthz", "/source/nothing", "/v1/models"):
            assert http.get(path).headers["x-content-type-options"] == "nosniff"
        assert "Explorer" in http.get("/explorer").text


def test_an_unexpected_error_is_in_the_log_alone(sample_server, monkeypatch, caplog):
    monkeypatch.setattr("graphrag_assets.extras.server.lookups.passage", lambda *_: 1 / 0)
    with sample_server.http() as http:
        response = http.get("/source/x")
    assert response.status_code == 500
    assert "log says why" in response.json()["error"]["message"]
    assert "ZeroDivisionError" in caplog.text


def test_another_address_needs_a_token_and_a_public_url(sample_server):
    rag = sample_server.searches.rag
    with pytest.raises(SettingsError, match="GRAPHRAG_SERVER_TOKENS"):
        make_app(sample_server.searches, "0.0.0.0", 80, ["http://graph.example"])
    protected = Searches(rag, Access(clients_of(TOKEN), "http://graph.example"))
    with pytest.raises(SettingsError, match="--public-url"):
        make_app(protected, "0.0.0.0", 80, [])
    assert make_app(protected, "0.0.0.0", 80, ["http://graph.example"])


class Writing(Answerer):
    """Streams an answer in two pieces, the second one when it is told to go on."""

    model = "writing"

    def __init__(self) -> None:
        self.go_on = False

    async def arespond(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Reply:
        return Reply(self._text(evidence))

    async def stream_response(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Pieces:
        text = self._text(evidence)
        yield text[:40]
        while not self.go_on:
            await asyncio.sleep(0.05)
        yield text[40:]
        yield Reply(text)

    def _text(self, evidence: Evidence) -> str:
        number = next(passage.number for passage in evidence.passages if passage.table == "Sources")
        return (
            "## Answer\n\n**Captain James Anderson** <img src=x onerror=alert(1)> commanded the Great Eastern in 1865. "
            f"[Data: Sources ({number})]\n\n- ![x](https://evil.example/x.png) one\n- two"
        )


@pytest.mark.extended
@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
def test_a_question_is_asked_in_a_browser_and_its_citation_opens_the_passage(monkeypatch):
    monkeypatch.setattr(fetch, "all_text_units", lambda *_: [])  # as in a large collection, with entities to link to
    writing = Writing()
    clients = clients_of(f'{{"reader": {{"token": "{TOKEN}"}}}}')
    with index_of(DOCUMENTS, writing) as rag, serve(rag, clients) as served, chromium() as browser:
        page = browser.new_context().new_page()
        requested, errors = [], []
        page.on("request", lambda request: requested.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(served.url)
        page.fill("#token", "wrong-token-0123456789")
        page.keyboard.press("Enter")
        page.get_by_text("This token is not valid.").wait_for()
        page.keyboard.press("Escape")
        assert page.locator("#login").is_hidden()
        page.get_by_role("button", name="Log in").click()
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")
        page.get_by_text("Publication 1").wait_for()
        page.select_option("#method", "local")
        page.fill("#question", QUESTION)
        page.keyboard.press("Enter")
        page.get_by_text("Captain James").first.wait_for()
        assert page.locator("#panel li").count() == 0, "the answer was complete before its first piece was shown"
        writing.go_on = True
        page.get_by_text("The answer is complete.").wait_for()
        assert page.locator(".answer strong").inner_text() == "Captain James Anderson"
        assert page.locator(".answer li").count() == 2
        page.locator(".cite").first.focus()
        page.keyboard.press("Enter")
        marked = page.frame_locator("#passage iframe").locator("mark")
        marked.wait_for()
        assert "commanded the Great Eastern in 1865" in marked.inner_text()
        with page.expect_popup() as opened:
            page.get_by_text("Open the passage in a tab").click()
        assert "commanded the Great Eastern" in opened.value.locator("mark").inner_text()
        for link in (page.get_by_role("link", name="Map"), page.locator("#panel ul a").first):
            with page.expect_popup() as opened:
                link.click()
            assert "Explorer" in opened.value.title()
        assert page.locator("img, #planted, script[src]").count() == 0
        assert page.title() == "Ask the index"
        page.reload()
        assert page.locator(".asked").inner_text() == QUESTION
        page.evaluate(
            "for (const key of Object.keys(localStorage)) "
            "localStorage.setItem(key, localStorage[key].replaceAll('/source/', '/api/source/'))"
        )
        page.reload()  # a conversation of an earlier version, whose passages had another address
        page.locator(".cite").first.click()
        page.get_by_text("Ask again to read the passage.").wait_for()
        other = page.context.new_page()
        other.goto(served.url)
        other.locator("#login").wait_for()
        assert other.locator(".asked").count() == 0, "the conversation is shown before a token is given"
        other.close()
        page.get_by_role("button", name="New conversation").click()
        assert page.locator(".asked").count() == 0
        writing.go_on = False
        page.set_viewport_size({"width": 360, "height": 700})
        page.fill("#question", QUESTION)
        page.get_by_role("button", name="Ask", exact=True).click()
        page.get_by_text("Captain James").first.wait_for()
        page.keyboard.press("Escape")
        page.get_by_text("Stopped.").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, "a phone scrolls sideways"
        for field in page.get_by_role("textbox").all() + page.get_by_role("combobox").all():
            name = field.get_attribute("id")
            assert page.locator(f"label:has(#{name}), label[for={name}]").count()
        half = 'data: {"choices": [{"delta": {"content": "Half"}}]}\n\n'
        page.route("**/v1/chat/completions", lambda route: route.fulfill(body=half))
        page.fill("#question", QUESTION)
        page.get_by_role("button", name="Ask", exact=True).click()
        page.get_by_text("The connection ended before the answer was complete.").wait_for()
        assert page.get_by_text("The answer is complete.").count() == 0
        page.get_by_role("button", name="Log out").click()
        page.locator("#login").wait_for()
        assert page.locator(".asked, .answer, #panel li").count() == 0
        assert (
            page.evaluate("JSON.stringify([localStorage.length, sessionStorage.getItem('graphrag-token')])") == '[0,""]'
        )
        assert {urlsplit(url).netloc for url in requested} == {urlsplit(served.url).netloc}
        assert errors == []
