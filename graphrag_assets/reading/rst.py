"""reStructuredText with docutils, by way of HTML: its text as Markdown, title and docinfo. Roles become their words."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree, publish_from_doctree
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, languages, roles
from docutils.utils import new_document
from lxml import html as lxml_html

from graphrag_assets.reading.markdown import html_kind, markdown
from graphrag_assets.reading.source_records import NO_TEXT, Problem, Record, filled

# No file is inserted, nothing is printed, and no configuration of a user is read.
_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "line_length_limit": 1_000_000,
    "_disable_config": True,
    "initial_header_level": 2,
    "syntax_highlight": "none",
    "embed_stylesheet": False,
    "stylesheet_path": "",
    "math_output": "LaTeX",
}
_ROLE = re.compile(r":([A-Za-z][\w.:+-]*):`")
_OWN_ROLES = frozenset(["code", "math"])
"""Roles of docutils whose words are no title with a target."""
_DIRECTIVE = re.compile(r"^[ \t]*\.\. (?:\|[^|\n]+\| )?([A-Za-z][\w:+.-]*)::", re.MULTILINE)
_CODE = ("code", "code-block", "sourcecode")
_WITHOUT_TEXT = ("toctree", "highlight", "index", "currentmodule", "module", "tabularcolumns", "literalinclude")
_CONDITIONS = ("only", "ifconfig", "rst-class")
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
        return [nodes.literal_block(text, text, classes=["code", *self.arguments])]


def read_rst(text: str) -> Iterator[Record | Problem]:
    """Yield the one document of a text."""
    _register(text)
    document = publish_doctree(text, settings_overrides=_SETTINGS)
    info: dict[str, str] = {}
    for docinfo in [*document.findall(nodes.docinfo)]:
        for node in docinfo.children:
            is_field = isinstance(node, nodes.field)
            info[node[0].astext().lower() if is_field else node.tagname] = (node[1] if is_field else node).astext()
        docinfo.parent.remove(docinfo)
    for message in [*document.findall(nodes.system_message)]:  # what could not be parsed stays as it is written
        message.replace_self([*message.findall(nodes.literal_block)])
    for note in document.findall(nodes.footnote):
        note.insert(1, nodes.Text(" "))
    page = publish_from_doctree(document, writer="html5", settings_overrides=_SETTINGS)
    body = markdown(lxml_html.document_fromstring(page), _kind)
    title = document.get("title")
    record = Record(body, title, date=info.pop("date", None), metadata=filled(info))
    yield record if body else NO_TEXT


def _kind(element: Any) -> str:
    """Return what an element of the page is: as in HTML, but for contents, marks and titles of docutils."""
    classes = {*element.get("class", "").split()}
    if classes & {"contents", "docinfo", "problematic"} or element.tag == "header":
        return "skip"
    return "block" if element.tag == "aside" or "line" in classes else html_kind(element)


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
    """Return the words of a reference: `words <target>`, or the last part of `~module.name`."""
    words = re.sub(r"\s*<[^<>]*>$", "", nodes.unescape(text))
    words = words.rpartition(".")[2] if words.startswith("~") else words.removeprefix("!")
    return [nodes.Text(words)], []
