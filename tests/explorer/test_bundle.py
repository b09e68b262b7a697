"""The committed bundle is what its sources build."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

EXPLORER = Path(__file__).resolve().parents[2] / "graphrag_assets" / "extras" / "explorer"
WEB, STATIC = EXPLORER / "web", EXPLORER / "static"
AGAIN = "Run `npm ci && npm run build` in graphrag_assets/extras/explorer/web and commit what it makes."


def test_the_bundle_was_made_from_the_present_sources():
    sources = hashlib.sha256()
    for file in [WEB / "package-lock.json", WEB / "build.mjs", *sorted((WEB / "src").iterdir())]:
        sources.update(file.read_bytes())
    noted = re.match(r"/\*! sources ([0-9a-f]+)\n", (STATIC / "explorer.js").read_text())
    assert noted[1] == sources.hexdigest(), AGAIN


@pytest.mark.extended
def test_building_the_sources_gives_the_bundle(tmp_path):
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed; the other test compares the sources' hash.")
    web = tmp_path / "web"
    shutil.copytree(WEB, web, ignore=shutil.ignore_patterns("node_modules"))
    install = ["npm", "ci", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0", "--fetch-timeout=20000"]
    installed = subprocess.run(install, cwd=web, capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"npm could not fetch the packages: {installed.stderr[-300:]}")
    subprocess.run(["node", "build.mjs", str(tmp_path)], cwd=web, check=True)
    for name in ("explorer.js", "explorer.css"):
        assert (tmp_path / name).read_text() == (STATIC / name).read_text(), AGAIN
