"""From documents to their text in the explorer by clicks: in Dagster's UI, then in the page."""

import re
import shutil
from pathlib import Path

import duckdb
import pytest

pytest.importorskip("playwright", reason="Playwright is not installed: pip install -e '.[dev]'.")

from playwright.sync_api import Page, expect

from graphrag_assets.extras.explorer.page import write_page
from tests.browsers import WHY_NOT, chromium
from tests.conftest import SAMPLE_INPUT
from tests.dagster_dev import dagster_dev

pytestmark = [pytest.mark.extended, pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")]

MINUTES = 60_000  # milliseconds
BATCH = "4-great-eastern"


def test_a_batch_is_materialized_in_the_ui_and_read_in_the_explorer(tmp_path):
    (tmp_path / "input").mkdir()
    shutil.copytree(SAMPLE_INPUT / BATCH, tmp_path / "input" / BATCH)
    with chromium() as browser, dagster_dev(tmp_path, tmp_path / "input") as url:
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(3 * MINUTES)
        launch_update_index(page, url)
        written = write_page(tmp_path / "index")
        number, text = read_about(page, written.path, "Great Eastern")
    with duckdb.connect(str(tmp_path / "index" / "graphrag.duckdb"), read_only=True) as index:
        ((expected,),) = index.execute(f"SELECT text FROM text_units WHERE human_readable_id = {number}").fetchall()
    assert text == expected


def read_about(page: Page, path: Path, entity: str) -> tuple[int, str]:
    """Number and text of the text unit that the page shows first for an entity, in its document."""
    page.goto(path.as_uri())
    page.wait_for_selector("[data-ready]")
    page.keyboard.press("/")
    page.keyboard.type(entity.lower())
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=2)).to_have_text(entity, timeout=MINUTES)
    page.locator("#panel .passage .source a").first.click()
    unit = page.locator(".unit.here")
    expect(unit.locator("mark").first).to_have_text(entity, timeout=MINUTES)
    return int(re.search(r"#unit=(\d+)", page.url)[1]), unit.locator(".text").text_content()


def launch_update_index(page: Page, url: str) -> None:
    page.goto(f"{url}/locations/graphrag_assets/jobs/update_index/playground")
    page.get_by_role("button", name="Launch run").click()
    wait_for_green(page)


def wait_for_green(page: Page) -> None:
    page.wait_for_url("**/runs/*-*")
    expect(page.get_by_text("Success", exact=True).first).to_be_visible(timeout=5 * MINUTES)
