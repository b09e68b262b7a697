"""A browser and pages of the explorer in it, watched for errors and requests."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphrag_assets.extras.explorer.content import Limits
from graphrag_assets.extras.explorer.page import write_page
from tests.browsers import WHY_NOT, chromium

MINUTE = 60_000


@pytest.fixture(scope="module")
def browser(sample_index) -> Iterator:
    """Chromium. Needs the index first: while it runs, nothing can be indexed in this process."""
    if WHY_NOT:
        pytest.skip(WHY_NOT)
    with chromium() as running:
        yield running


@pytest.fixture
def open_page(browser) -> Iterator[Callable]:
    """Opens a file at a `hash` and waits until it is ready. Any request or error fails the test."""
    contexts, wrong = [], []

    def open_file(path: Path, hash: str = "", script: str = "", **options):
        context = browser.new_context(reduced_motion="reduce", **options)
        context.set_default_timeout(3 * MINUTE)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: wrong.append(request.url) if not own(request.url, path) else None)
        if script:
            page.add_init_script(script)
        page.goto(path.as_uri() + hash)
        page.wait_for_selector("[data-ready]")
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert wrong == []


def own(url: str, path: Path) -> bool:
    return url.startswith("data:") or url.partition("#")[0] == path.as_uri()


@pytest.fixture(scope="session")
def sample_page(sample_index) -> Path:
    return write_page(sample_index.root / "index").path


@pytest.fixture(scope="session")
def small_page(sample_index) -> Callable[..., Path]:
    """The sample's page under other limits."""

    def write(**limits: int) -> Path:
        name = "-".join(f"{key}-{value}" for key, value in limits.items())
        return write_page(
            sample_index.root / "index", sample_index.root / f"{name}-{os.getpid()}.html", Limits(**limits)
        ).path

    return write
