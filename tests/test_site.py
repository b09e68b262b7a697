"""The documentation builds as a site: `--strict` fails for a page out of the navigation and for a broken link."""

import os
import re
import subprocess
import sys

import pytest

from tests.test_docs import ROOT


@pytest.mark.extended
def test_the_site_builds_and_requests_nothing_from_other_servers(tmp_path):
    pytest.importorskip("material", reason="mkdocs-material is not installed: pip install -e '.[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {guide.stem for guide in (ROOT / "docs").glob("*.md")} <= {page.stem for page in tmp_path.glob("*.html")}
    for page in tmp_path.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        elements = re.findall(r"<(?:script|img|iframe|link)[^>]*(?:src|href)=\"https?:[^>]+>", text)
        loading = re.compile(r"<(?:script|img|iframe)|rel=\"(?:stylesheet|preload|preconnect|icon)\"")
        assert [one for one in elements if loading.search(one)] == [], page.name
