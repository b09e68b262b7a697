"""XML with lxml: articles, books and feeds as headings and paragraphs, records as names and values."""

import re
from collections.abc import Iterator

from lxml import etree
from lxml import html as lxml_html

from graphrag_assets.reading.source_records import Problem, Record

_TITLES = frozenset({"article-title", "title", "head", "heading", "invention-title"})
_PROSE = frozenset(
    {"p", "para", "simpara", "li", "line", "note", "abstract", "description", "summary", "content", "text"}
)
_ROWS = frozenset({"tr", "row"})
_DATES = frozenset({"date", "pubdate", "pubDate", "published", "updated", "created"})
_MARKUP = re.compile(r"<[a-zA-Z/][^>]*>")
_NO_TEXT = Problem("no text was found in the file", "Delete it, or check what it holds.")
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def read_xml(data: bytes) -> list[Record | Problem]:
    """Return the one document of an XML file, or the problem that it has no text.

    Raises:
        ValueError: it is no XML.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, recover=True, remove_comments=True, remove_pis=True
    )
    root = etree.fromstring(data, parser)
    if root is None:
        raise ValueError("no element was found")
    text = re.sub(r"\n{3,}", "\n\n", "".join(_blocks(root, 0))).strip()
    if not text:
        return [_NO_TEXT]
    titles = (_words(element) for element in root.iter() if _name(element) in _TITLES)
    language = (root.get(_LANGUAGE) or root.get("lang") or "").split("-")[0].lower() or None
    return [Record(text, next(filter(None, titles), None), date=_date(root), language=language)]


def _blocks(element: etree._Element, level: int) -> Iterator[str]:
    """Yield the text below an element: a heading or paragraph, or a line with name and value, for each of its parts."""
    name, children = _name(element), list(element)
    mixed = (element.text or "").strip() or any((child.tail or "").strip() for child in children)
    if mixed or not children:
        words = _words(element)
        if not words and element.attrib and not children:
            words = ", ".join(f"{etree.QName(key).localname}: {value}" for key, value in element.attrib.items())
        if words and name in _TITLES:
            yield f"\n\n{'#' * min(6, max(1, level))} {words}\n\n"
        elif words and (name in _PROSE or (mixed and children) or words.count(" ") > 8):
            yield f"\n\n{words}\n\n"
        elif words:
            yield f"\n{name}: {words}"
    elif name in _ROWS:
        yield f"\n| {' | '.join(map(_words, children))} |"
    else:
        yield "\n\n"
        titled = any(_name(child) in _TITLES for child in children)
        for child in children:
            yield from _blocks(child, level + titled)


def _words(element: etree._Element) -> str:
    text = "".join(element.itertext())
    if _MARKUP.search(text):  # pages within a feed
        text = lxml_html.fragment_fromstring(text, create_parent="div").text_content()
    return " ".join(text.split())


def _name(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _date(root: etree._Element) -> str | None:
    for element in root.iter():
        if _name(element) == "pub-date":
            parts = {_name(part): _words(part).zfill(2) for part in element}
            return "-".join(parts[name] for name in ("year", "month", "day") if name in parts)
        if _name(element) in _DATES and not len(element) and _words(element):
            return _words(element)
    return None
