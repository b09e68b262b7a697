"""The picture of the chat page: the sample corpus is indexed, a question is asked, and a citation is opened.

    python -m docs.make_chat_picture

Needs what docs/make_pictures.py needs.
"""

from docs.make_pictures import PICTURES, save
from graphrag_assets.testing import index_of
from tests.browsers import chromium
from tests.conftest import SAMPLE_INPUT
from tests.server.conftest import serve


def main() -> None:
    files = [path for path in SAMPLE_INPUT.rglob("*") if path.suffix in (".md", ".txt")]
    documents = {path.relative_to(SAMPLE_INPUT).as_posix(): path.read_text(encoding="utf-8") for path in files}
    with index_of(documents) as rag, serve(rag) as served, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(served.url)
        page.fill("#question", "Who commanded the Great Eastern in 1865?")
        page.keyboard.press("Enter")
        page.get_by_text("The answer is complete.").wait_for()
        page.locator(".cite").first.click()
        page.frame_locator("#passage iframe").locator("mark").wait_for()
        page.locator("#panel").evaluate("panel => { panel.scrollTop = 0; }")
        save(page.screenshot(), PICTURES / "chat.png")


if __name__ == "__main__":
    main()
