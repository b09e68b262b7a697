"""The documentation builds as a site: every page is in the navigation, every link resolves, nothing is fetched."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_docs import ROOT

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    pytest.importorskip("material", reason="mkdocs-material is not installed: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_guide_is_a_page_and_the_readme_is_the_home(site):
    for guide in (ROOT / "docs").glob("*.md"):
        assert (site / f"{guide.stem}.html").is_file(), guide
    home = (site / "index.html").read_text(encoding="utf-8")
    assert "GraphRAG as a" in home
    assert 'href="dagster.html"' in home
    assert 'src="img/asset-graph.png"' in home
    assert (site / "img/asset-graph.png").read_bytes() == (ROOT / "docs/img/asset-graph.png").read_bytes()


def test_links_resolve_to_files_of_the_site(site):
    broken = []
    for page in site.glob("*.html"):
        if page.name == "404.html":  # it is shown at any address
            continue
        for link in re.findall(r'(?:href|src)="([^"#?]+)', page.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:|//", link) and not (page.parent / link).exists():
                broken.append((page.name, link))
    assert broken == []


def test_pages_request_nothing_from_other_servers(site):
    for page in site.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe)[^>]*\ssrc=\"(https?:[^\"]+)", text)
        loaded += re.findall(
            r"<link[^>]*rel=\"(?:stylesheet|preload|preconnect|icon)\"[^>]*href=\"(https?:[^\"]+)", text
        )
        assert loaded == [], page.name
