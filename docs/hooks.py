"""The site's pages that live outside of `docs/`: the README as its home, the READMEs of folders, the changelog.

Links are written as they work in the repository; here they are led to the pages. A file that is linked to and is no
page, such as those in `deploy/`, is copied into the site.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
    "data/README.md": "sample-corpus.md",
    "prompts/README.md": "prompt-templates.md",
}
INSIDE = {page: source for source, page in OUTSIDE.items()}
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside, and the files that any page links to."""
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for page in list(files.documentation_pages()):
        for link in LINK.findall(page.content_string):
            path = _target(page.src_uri, link)
            there = ROOT / path
            if there.is_file() and there.suffix != ".md" and files.get_file_from_path(_in_site(path)) is None:
                files.append(File.generated(config, path, content=there.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links from where a page lies in the repository to where it lies in the site."""
    here = posixpath.dirname(page.file.src_uri)

    def led(link: re.Match[str]) -> str:
        return posixpath.relpath(_in_site(_target(page.file.src_uri, link[1])), here or ".")

    return LINK.sub(led, markdown)


def _target(page: str, link: str) -> str:
    """The path in the repository that a page's link means."""
    source = INSIDE.get(page, f"docs/{page}")
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def _in_site(path: str) -> str:
    return OUTSIDE.get(path, path.removeprefix("docs/"))
