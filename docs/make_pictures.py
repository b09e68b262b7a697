"""The pictures of the README, made by doing what the README says: from a fresh data folder to a full index by clicks.

    pip install playwright pillow && python -m docs.make_pictures

Needs a Chromium on the machine (PATH, or the variable CHROMIUM). Starts `dagster dev` on data of its own, clicks
through Dagster's UI, and fails when the index is not complete at the end.
"""

import contextlib
import io
import os
import shutil
import tempfile
from pathlib import Path

import duckdb
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from graphrag_assets.store.index_database import IndexDatabase
from tests.dagster_dev import dagster_dev

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "img"
MINUTE = 60_000


def main() -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright, contextlib.ExitStack() as stack:
        documents = Path(folder) / "documents"
        shutil.copytree(ROOT / "data" / "input", documents)
        url = stack.enter_context(dagster_dev(Path(folder), documents))
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        index_by_clicking(page, url)
        take_pictures(page, url)
        picture_of_plots(page, url, documents)
        picture_of_metadata(page, url)
        picture_of_checks(page, url, Path(folder) / "index" / "working.duckdb")
        launch(page, url, "update_index")  # which mends it
        browser.close()
        with duckdb.connect(str(Path(folder) / "index" / "graphrag.duckdb"), read_only=True) as index:
            print(index.sql("SELECT count(*) AS documents FROM documents"), index.sql("FROM publication"))


def index_by_clicking(page: Page, url: str) -> None:
    page.goto(f"{url}/locations/graphrag_assets/jobs/scan_input/playground")
    page.get_by_role("button", name="Launch Run").click()
    expect(page.get_by_text("RUN_SUCCESS").first).to_be_visible(timeout=MINUTE)
    page.goto(f"{url}/asset-groups")
    page.get_by_role("button", name="Materialize all").click()
    page.get_by_role("button", name="All", exact=True).click()
    page.get_by_role("button", name="Launch backfill").click()
    for _ in range(60):
        page.goto(f"{url}/runs?show_runs_within_backfills=false")
        page.wait_for_timeout(4000)
        if page.get_by_text("Success", exact=True).count() >= 2:
            return
    raise SystemExit("the backfill did not succeed")


def take_pictures(page: Page, url: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    page.goto(f"{url}/asset-groups")
    page.wait_for_timeout(4000)
    page.mouse.click(1000, 850, button="right")
    page.get_by_role("menuitem", name="Expand all groups").click()
    page.wait_for_timeout(5000)
    page.reload()  # the view fits the expanded graph when it is loaded
    page.wait_for_timeout(6000)
    screenshot(page, "asset-graph")
    page.goto(f"{url}/assets/entities")
    page.wait_for_timeout(5000)
    screenshot(page, "entities")
    page.goto(f"{url}/assets/documents?view=partitions&partition=4-great-eastern")
    page.wait_for_timeout(5000)
    screenshot(page, "partition")


def launch(page: Page, url: str, job: str, ends: str = "RUN_SUCCESS") -> None:
    """Launch a job as it is, and wait for its end."""
    page.goto(f"{url}/locations/graphrag_assets/jobs/{job}/playground")
    page.get_by_role("button", name="Launch Run").click(timeout=MINUTE)
    expect(page.get_by_text(ends).first).to_be_visible(timeout=3 * MINUTE)


def picture_of_plots(page: Page, url: str, documents: Path) -> None:
    """After a few changes of the documents, what changed over time."""
    ships = ["Niagara", "Agamemnon", "Albany"]
    for n, ship in enumerate(ships):
        text = "".join(f"Captain {name} sailed in the {ship}. " for name in ("Hudson", "Prescott", "Hunt")[: n + 1])
        (documents / "news").mkdir(exist_ok=True)
        (documents / "news" / f"{ship}.txt").write_text(text)
        launch(page, url, "update_index")
    page.goto(f"{url}/assets/relationships")
    page.get_by_text("Plots", exact=True).click(timeout=MINUTE)
    page.wait_for_timeout(3000)
    page.get_by_text("dagster/row_count").first.scroll_into_view_if_needed()
    page.mouse.move(700, 600)
    page.mouse.wheel(0, 330)
    page.wait_for_timeout(1500)
    screenshot(page, "plots")


def picture_of_metadata(page: Page, url: str) -> None:
    """The publication, with the graph's map opened."""
    page.goto(f"{url}/assets/publication")
    page.get_by_text("[Show Markdown]").first.click(timeout=MINUTE)
    page.wait_for_timeout(2500)
    widths = page.evaluate("[...document.querySelectorAll('img[alt]')].map(i => i.naturalWidth)")
    assert any(width > 500 for width in widths), f"the map is not drawn: {widths}"
    screenshot(page, "metadata")


def picture_of_checks(page: Page, url: str, working: Path) -> None:
    """A check that fails beside one that passes, on an index that was broken on purpose."""
    with IndexDatabase(working).transaction() as connection:
        connection.execute("UPDATE relationships SET target = 'Nobody' WHERE human_readable_id IN (3, 5, 8)")
    page.goto(f"{url}/assets/relationships?view=checks")
    page.get_by_role("button", name="Execute all").click(timeout=MINUTE)
    page.goto(f"{url}/assets/relationships?view=checks&checkDetail=relationship_ends_are_entities")
    page.wait_for_timeout(6000)
    screenshot(page, "checks")


def screenshot(page: Page, name: str) -> None:
    save(page.screenshot(), PICTURES / f"{name}.png")


def save(picture: bytes, path: Path) -> None:
    """Of 256 colors, which is a third of the bytes."""
    colors = Image.open(io.BytesIO(picture)).convert("RGB")
    colors.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main()
