"""The chat page in Chromium: pieces before the end, passages of citations, keyboard, phone, markup, no other requests."""

import asyncio
import re
from importlib.resources import files
from urllib.parse import urlsplit

import pytest

from graphrag_assets.contracts.answering import PLAIN, AnswerOptions, BaseAnswerer, Evidence, Pieces, Reply
from graphrag_assets.extras.server.access import clients_of
from graphrag_assets.testing import index_of
from tests.browsers import WHY_NOT, chromium
from tests.server.conftest import serve

pytestmark = [pytest.mark.extended, pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]

DOCUMENTS = {
    "ships/voyage.md": "# The <b id=planted>voyage</b>\n\nCaptain James Anderson commanded the Great Eastern in 1865. "
    "<script>document.title = 'planted'</script> The Great Eastern carried Cyrus Field.\n"
}
TOKEN = "chat-token-0123456789"


class Writing(BaseAnswerer):
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


def test_a_question_is_asked_and_its_citation_opens_the_passage():
    writing = Writing()
    clients = clients_of(f'{{"reader": {{"token": "{TOKEN}"}}}}')
    with index_of(DOCUMENTS, writing) as rag, serve(rag, clients) as served, chromium() as browser:
        page = browser.new_page()
        requested, errors = [], []
        page.on("request", lambda request: requested.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(served.url)
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")
        page.get_by_text("Publication 1").wait_for()
        page.select_option("#method", "local")
        page.fill("#question", "Who commanded the Great Eastern in 1865?")
        page.keyboard.press("Enter")
        page.get_by_text("Captain James").first.wait_for()
        assert page.locator("#panel li").count() == 0, "the answer was complete before its first piece was shown"
        writing.go_on = True
        page.get_by_text("The answer is complete.").wait_for()
        assert page.locator(".answer strong").inner_text() == "Captain James Anderson"
        assert page.locator(".answer li").count() == 2
        page.locator(".cite").first.focus()
        page.keyboard.press("Enter")
        marked = page.locator("#passage mark")
        marked.wait_for()
        assert "commanded the Great Eastern in 1865" in marked.inner_text()
        with page.expect_popup() as opened:
            page.get_by_text("Open the passage in a tab").click()
        assert "commanded the Great Eastern" in opened.value.locator("mark").inner_text()
        assert page.locator("#panel svg a").count() > 0
        assert page.locator("img, #planted, script[src]").count() == 0
        assert page.title() == "Ask the index"
        page.reload()
        assert page.locator(".asked").inner_text() == "Who commanded the Great Eastern in 1865?"
        page.get_by_role("button", name="New conversation").click()
        assert page.locator(".asked").count() == 0
        assert {urlsplit(url).netloc for url in requested} == {urlsplit(served.url).netloc}
        assert errors == []


def test_stop_ends_the_search_and_a_phone_has_no_sideways_scroll():
    writing = Writing()
    with index_of(DOCUMENTS, writing) as rag, serve(rag) as served, chromium() as browser:
        page = browser.new_page(viewport={"width": 360, "height": 700})
        page.goto(served.url)
        page.fill("#question", "Who commanded the Great Eastern in 1865?")
        page.select_option("#method", "local")
        page.keyboard.press("Tab")
        page.get_by_role("button", name="Ask", exact=True).click()
        page.get_by_text("Captain James").first.wait_for()
        page.keyboard.press("Escape")
        page.get_by_text("Stopped.").wait_for()
        box = page.locator("body").bounding_box()
        assert box is not None
        assert box["width"] <= 360
        for element in page.get_by_role("textbox").all() + page.get_by_role("combobox").all():
            assert (
                element.get_attribute("aria-label")
                or page.locator(
                    f"label:has(#{element.get_attribute('id')}), label[for={element.get_attribute('id')}]"
                ).count()
            )


def test_the_mcp_app_shows_the_answer_that_its_host_sends():
    html = (files("graphrag_assets.extras.server") / "static" / "answer.html").read_text(encoding="utf-8")
    result = {
        "structuredContent": {
            "text": "She sailed. [1] &lt;b>",
            "citations": [{"footnote": 1, "title": "voyage <i>", "quote": "sailed", "url": "http://x/1"}],
            "graph": {"nodes": [{"title": "A"}, {"title": "B"}], "edges": [{"source": "A", "target": "B"}]},
        }
    }
    with chromium() as browser:
        page = browser.new_page()
        page.set_content("<iframe id=app></iframe>")
        page.evaluate(
            """([html, result]) => {
                window.messages = [];
                const app = document.getElementById("app");
                addEventListener("message", (event) => {
                    window.messages.push(event.data);
                    const reply = (data) => app.contentWindow.postMessage({ jsonrpc: "2.0", ...data }, "*");
                    if (event.data.method === "ui/initialize") reply({ id: event.data.id, result: {} });
                    if (event.data.method === "ui/notifications/initialized")
                        reply({ method: "ui/notifications/tool-result", params: result });
                });
                app.srcdoc = html;
            }""",
            [html, result],
        )
        frame = page.frame_locator("#app")
        frame.get_by_text(re.compile("She sailed")).wait_for()
        assert frame.locator("#text").inner_text() == "She sailed. [1] <b>"
        assert frame.locator("svg circle").count() == 2
        frame.get_by_role("button").click()
        page.wait_for_function("window.messages.some((m) => m.method === 'ui/open-link')")
