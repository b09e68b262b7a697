"""reStructuredText with docutils: its text as Markdown, title and docinfo. Sphinx's roles become their words.

kreuzberg, which reads other markup, leaves out list tables and what stands in directives of Sphinx.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, languages, roles
from docutils.utils import new_document

from graphrag_assets.reading.source_records import Problem, Record, metadata_json

_NO_TEXT = Problem("no text was found in the file", "Delete it, or check what it holds.")
# No file is inserted, nothing is printed, and no configuration of a user is read.
_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "line_length_limit": 1_000_000,
    "_disable_config": True,
}
_ROLE = re.compile(r":([A-Za-z][\w.:+-]*):`")
_OWN_ROLES = frozenset(["code", "math"])
"""Roles of docutils whose words are no title with a target."""
_DIRECTIVE = re.compile(r"^[ \t]*\.\. (?:\|[^|\n]+\| )?([A-Za-z][\w:+.-]*)::", re.MULTILINE)
_CODE = ("code", "code-block", "sourcecode")
_WITHOUT_TEXT = (
    "toctree",
    "highlight",
    "index",
    "currentmodule",
    "module",
    "tabularcolumns",
    "literalinclude",
)
_CONDITIONS = ("only", "ifconfig", "rst-class")
_SKIPPED = (
    nodes.comment,
    nodes.docinfo,
    nodes.image,
    nodes.meta,
    nodes.pending,
    nodes.raw,
    nodes.substitution_definition,
    nodes.target,
)
_ANY_OPTION: dict[str, Any] = defaultdict(lambda: directives.unchanged, {"class": directives.unchanged})


class _AnyDirective(Directive):
    """A directive that docutils lacks: the words after its name, and what stands in it."""

    has_content, optional_arguments, final_argument_whitespace = True, 1, True
    option_spec = _ANY_OPTION

    def run(self) -> list[nodes.Node]:
        if self.name in _WITHOUT_TEXT:
            return []
        parts = nodes.Element()
        if self.arguments and self.name not in _CONDITIONS and not self.name.startswith("auto"):
            parts += nodes.paragraph("", " ".join(self.arguments[0].split()))
        self.state.nested_parse(self.content, self.content_offset, parts, match_titles=True)
        return parts.children


class _Code(_AnyDirective):
    """A block of code, with whatever options."""

    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.content)
        return [nodes.literal_block(text, text, classes=self.arguments)]


def read_rst(text: str) -> list[Record | Problem]:
    """Return the one document of a text, or the problem that it has none."""
    _register(text)
    document = publish_doctree(text, settings_overrides=_SETTINGS)
    body = re.sub(r"\n{3,}", "\n\n", "\n\n".join(_blocks(document, 1))).strip()
    if not body:
        return [_NO_TEXT]
    info = {node.tagname: node.astext() for docinfo in document.findall(nodes.docinfo) for node in docinfo.children}
    for field in document.findall(nodes.field):
        if isinstance(field.parent, nodes.docinfo):
            info[field[0].astext().lower()] = field[1].astext()
    info.pop("field", None)
    title = document.get("title")
    return [Record(body, title, date=info.pop("date", None), raw_data=metadata_json(info))]


def _register(text: str) -> None:
    """Register what the text uses and docutils does not know."""
    for role in {*_ROLE.findall(text)} - _OWN_ROLES:
        roles.register_local_role(role, _words_of_role)
    document, english = new_document("", get_default_settings(Parser)), languages.get_language("en")
    for name in {*_DIRECTIVE.findall(text)}:
        if directives.directive(name.lower(), english, document)[0] is None:
            directives.register_directive(name.lower(), _AnyDirective)
    for name in _CODE:
        directives.register_directive(name, _Code)


def _words_of_role(name: str, raw: str, text: str, *_: Any, **__: Any) -> tuple[list[nodes.Node], list[Any]]:
    """The words of a reference: `words <target>`, or the last part of `~module.name`."""
    words = re.sub(r"\s*<[^<>]*>$", "", nodes.unescape(text))
    words = words.rpartition(".")[2] if words.startswith("~") else words.removeprefix("!")
    return [nodes.Text(words)], []


def _blocks(parent: nodes.Element, level: int) -> Iterator[str]:
    """Yield the blocks below a node; `level`: of a heading there."""
    for node in parent.children:
        if isinstance(node, nodes.system_message):
            yield from (block.astext() for block in node.findall(nodes.literal_block))  # what could not be parsed
        elif isinstance(node, _SKIPPED) or "contents" in node.get("classes", ()):
            continue
        elif isinstance(node, nodes.section):
            yield from _blocks(node, level + (not isinstance(parent, nodes.document) or "title" in parent))
        elif isinstance(node, nodes.title) and isinstance(parent, (nodes.document, nodes.section)):
            yield f"{'#' * min(6, level)} {_words(node)}"
        elif isinstance(node, (nodes.literal_block, nodes.doctest_block, nodes.math_block)):
            language = next((name for name in reversed(node["classes"]) if name != "code"), "")
            yield f"```{language}\n{node.astext()}\n```"
        elif isinstance(node, nodes.table):
            yield _table(node)
        elif isinstance(node, (nodes.bullet_list, nodes.enumerated_list)):
            numbered = isinstance(node, nodes.enumerated_list)
            marks = (f"{number}. " if numbered else "- " for number in range(node.get("start", 1), 10**9))
            items = ("\n\n".join(_blocks(item, level)) for item in node.children)
            yield "\n".join(
                mark + item.replace("\n", "\n" + " " * len(mark)) for mark, item in zip(marks, items, strict=False)
            )
        elif isinstance(node, nodes.line_block):
            yield "\n".join(_words(line) for line in node.findall(nodes.line))
        elif isinstance(node, (nodes.footnote, nodes.citation)):
            yield f"[{node[0].astext()}] " + "\n\n".join(_blocks(nodes.Element("", *node[1:]), level))
        elif isinstance(node, nodes.field):
            yield f"{node[0].astext()}: " + "\n\n".join(_blocks(node[1], level))
        elif isinstance(node, nodes.TextElement):
            yield _words(node)
        elif isinstance(node, nodes.Element):
            yield from _blocks(node, level)


def _table(table: nodes.table) -> str:
    """A table in Markdown, its title above it."""
    rows = [
        [" ".join(" ".join(_blocks(entry, 1)).split()).replace("|", "\\|") for entry in row.children]
        for row in table.findall(nodes.row)
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines[1:1] = ["|" + " --- |" * max(map(len, rows), default=0)]
    return "".join(f"{_words(title)}\n\n" for title in table.findall(nodes.title)) + "\n".join(lines)


def _words(node: nodes.Node) -> str:
    """The words of a paragraph on one line; code in backticks, pictures left out."""
    return " ".join("".join(_inline(node)).split())


def _inline(node: nodes.Node) -> Iterator[str]:
    if isinstance(node, nodes.Text):
        yield node.astext()
    elif isinstance(node, nodes.literal):
        yield f"`{node.astext()}`"
    elif isinstance(node, (nodes.footnote_reference, nodes.citation_reference)):
        yield f"[{node.astext()}]"
    elif not isinstance(node, (nodes.image, nodes.system_message)):
        for child in node.children:
            yield from _inline(child)
