"""The pictures of the README, made by doing what the README says: from a fresh data folder to a full index by clicks.

    pip install playwright && python -m docs.make_pictures

Needs a Chromium on the machine (PATH, or the variable CHROMIUM). Starts `dagster dev` on data of its own, clicks
through Dagster's UI, and fails when the index is not complete at the end.
"""

import os
import shutil
import tempfile
from pathlib import Path

import duckdb
from playwright.sync_api import Page, expect, sync_playwright

from tests.dagster_dev import dagster_dev

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "img"
MINUTE = 60_000


def main() -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with (
        tempfile.TemporaryDirectory() as folder,
        dagster_dev(Path(folder), ROOT / "data" / "input") as url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        index_by_clicking(page, url)
        take_pictures(page, url)
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
    page.screenshot(path=PICTURES / "asset-graph.png")
    page.goto(f"{url}/assets/entities")
    page.wait_for_timeout(5000)
    page.screenshot(path=PICTURES / "entities.png")
    page.goto(f"{url}/assets/documents?view=partitions&partition=4-great-eastern")
    page.wait_for_timeout(5000)
    page.screenshot(path=PICTURES / "partition.png")


if __name__ == "__main__":
    main()
