"""The picture of the README, made by doing what the README says: the job update_index on a fresh data folder.

pip install playwright pillow && python -m docs.make_pictures

Needs a Chromium on the machine (PATH, or the variable CHROMIUM). Starts `dagster dev` on data of its own.
"""

import io
import os
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from tests.dagster_dev import dagster_dev

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "img"
MINUTE = 60_000


def main() -> None:
    """Index the sample corpus in the UI, and take the picture."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        documents = Path(folder) / "documents"
        shutil.copytree(ROOT / "data" / "input", documents)
        with dagster_dev(Path(folder), documents) as url:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1600, "height": 1000})
            launch(page, url, "update_index")
            picture_of_the_asset_graph(page, url)
            browser.close()


def launch(page: Page, url: str, job: str) -> None:
    """Launch a job as it is, and wait for its end."""
    page.goto(f"{url}/locations/graphrag_assets/jobs/{job}/playground")
    page.get_by_role("button", name="Launch Run").click(timeout=MINUTE)
    expect(page.get_by_text("RUN_SUCCESS").first).to_be_visible(timeout=3 * MINUTE)


def picture_of_the_asset_graph(page: Page, url: str) -> None:
    """Take the lineage with all groups expanded."""
    page.goto(f"{url}/asset-groups")
    page.wait_for_timeout(4000)
    page.mouse.click(1000, 850, button="right")
    page.get_by_role("menuitem", name="Expand all groups").click()
    page.wait_for_timeout(5000)
    page.reload()  # the view fits the expanded graph when it is loaded
    page.wait_for_timeout(6000)
    save(page.screenshot(), PICTURES / "asset-graph.png")


def save(picture: bytes, path: Path) -> None:
    """Save the picture in 256 colors, which is a third of the bytes."""
    colors = Image.open(io.BytesIO(picture)).convert("RGB")
    colors.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main()
