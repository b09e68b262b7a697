"""The browser for tests and scripts: an installed Chromium, driven by Playwright."""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None
)
# Containers have no user namespaces for the sandbox, and no graphics card: WebGL on the processor.
DRAWING = ["--no-sandbox", "--disable-dev-shm-usage", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
WHY_NOT = (
    "No Chromium is installed: apt-get install chromium, or set CHROMIUM to one."
    if CHROMIUM is None
    else "Playwright is not installed: pip install -e '.[dev]'."
    if importlib.util.find_spec("playwright") is None
    else None
)


@contextmanager
def chromium(arguments: list[str] | None = None) -> "Iterator[Browser]":
    """Chromium, running. Meanwhile the thread has an event loop: asyncio.run, and so Dagster's runs, do not work."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=DRAWING if arguments is None else arguments, timeout=180_000
        )
        try:
            yield browser
        finally:
            browser.close()
