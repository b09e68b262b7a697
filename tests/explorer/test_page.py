"""The page's file: self-contained, the same for the same index, written by command, publication and purge."""

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

from click.testing import CliRunner

from graphrag_assets.cli import main
from graphrag_assets.extras.explorer.page import write_page


def content_of(page: Path) -> dict:
    packed = re.search(r'<script id="content" type="text/plain">([A-Za-z0-9+/=]+)</script>', page.read_text())[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def count(index, table: str) -> int:
    return index.sql(f"SELECT count(*) FROM {table}")[0][0]


def run(*arguments: str, status: int = 0) -> str:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["publications", "explore", *arguments])
    assert result.exit_code == status, result.output
    return result.output


def test_its_policy_allows_its_own_script_and_style_by_their_hashes_and_nothing_else(sample_page):
    html = sample_page.read_text()
    policy = dict(part.split(" ", 1) for part in re.search(r'Policy" content="([^"]*)"', html)[1].split("; "))
    for directive, pattern in (("script-src", r"<script>(.*?)</script>"), ("style-src", r"<style>(.*?)</style>")):
        (source,) = re.findall(pattern, html, re.DOTALL)
        assert policy[directive] == f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "connect-src" not in policy  # default-src holds
    assert "unsafe" not in html.split("<style>")[0]


def test_the_same_index_gives_the_same_page(sample_index, sample_page, tmp_path):
    again = write_page(sample_index.root / "index", tmp_path / "again.html")
    assert again.path.read_bytes() == sample_page.read_bytes()
    assert again.bytes == sample_page.stat().st_size


def test_command_reports_written_and_omitted_rows(sample_index, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    output = tmp_path / "new" / "page.html"
    said = run("--index", str(sample_index.root / "index"), "--output", str(output))
    assert f"{output}: " in said
    tables = ("entities", "relationships", "communities", "documents")
    assert "publication 1, " + ", ".join(f"{count(sample_index, table)} {table}" for table in tables) in said
    assert "Left out" not in said
    assert opened == [output.as_uri()]
    run("--index", str(sample_index.root / "index"), "--output", str(output), "--no-open", "--max-nodes", "7")
    assert len(opened) == 1
    assert content_of(output)["max_nodes"] == 7


EXPLORER = Path(__file__).resolve().parents[2] / "graphrag_assets" / "extras" / "explorer"


def test_the_bundle_was_made_from_the_present_sources():
    sources, web = hashlib.sha256(), EXPLORER / "web"
    for file in [web / "package-lock.json", web / "build.mjs", *sorted((web / "src").iterdir())]:
        sources.update(file.read_bytes())
    noted = re.match(r"/\*! sources ([0-9a-f]+)\n", (EXPLORER / "static" / "explorer.js").read_text())
    assert noted[1] == sources.hexdigest(), f"Run `npm ci && npm run build` in {web} and commit what it makes."
