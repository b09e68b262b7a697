"""XML with lxml: articles, books, feeds, notes and dumps by one table of their elements, other files as records.

The elements of vocabularies of prose (JATS, TEI, DocBook, FB2, OPML, TTML, flat Word) seldom mean different things, so
one table has all of them. A feed, an export of notes or a dump of a wiki has a document for each of its entries.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lxml import etree
from lxml import html as lxml_html

from graphrag_assets.reading.markdown import local_name, markdown
from graphrag_assets.reading.office import opendocument_record
from graphrag_assets.reading.source_records import Problem, Record, document
from graphrag_assets.text.entities import unescape

_KINDS = {
    "title": "title article-title head heading invention-title",
    "section": "article sec section sect1 sect2 sect3 sect4 sect5 simplesect chapter appendix app part div div1 div2"
    " div3",
    "block": "p para simpara formalpara l lg sp speaker stage ab abstract ref fn note tip warning caution important"
    " line v stanza subtitle epigraph poem text-author blockquote description summary byline kwd-group body",
    "pre": "programlisting screen literallayout preformat",
    "list": "list itemizedlist simplelist variablelist ul",
    "numbered": "orderedlist ol procedure",
    "item": "list-item listitem item li varlistentry member step",
    "table": "table informaltable tbl",
    "row": "tr row",
    "cell": "td th entry cell tc",
    "caption": "caption",
    "note": "footnote",
    "break": "br lb",
    "space": "tab",
    "word": "surname element-citation/* date/* kwd",
    "skip": "teiHeader journal-meta article-id article-categories contrib-group contrib aff history permissions"
    " self-uri pub-date graphic inline-graphic tex-math binary binData binaryData style script author"
    " authorgroup copyright legalnotice pubdate revhistory releaseinfo indexterm remark title-info"
    " document-info publish-info stylesheet instrText delText pPr rPr counts custom-meta-group"
    " related-article related-object",
}  # fmt: skip
"""What the elements of prose are; `parent/*`: any element in that one."""
_KIND_BY_NAME = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_KIND_BY_NAME |= {f"{parent}/article-title": "word" for parent in ("mixed-citation", "citation", "element-citation")}
_PROSE = frozenset((
    "article", "pmc-articleset", "book", "set", "chapter", "section", "sect1", "part", "TEI", "TEI.2",
    "FictionBook", "wordDocument", "package", "nitf", "topic", "concept", "task",
))  # fmt: skip
_ENTRIES = {"rss": "item", "RDF": "item", "feed": "entry", "en-export": "note", "mediawiki": "page", "kml": "Placemark"}
"""The element that is a document, by the root of its file."""
_TITLES = ("title", "name")
_TEXTS = ("encoded", "content", "description", "summary", "text")
_DATES = ("pubDate", "published", "updated", "created", "timestamp", "date", "when")
_AUTHORS = ("author", "creator")
_PROPERTIES = ("article-title", "book-title", "title", "invention-title")
_MARKUP = re.compile(r"<[a-zA-Z/][^>]*>")
_PEOPLE = (".//{*}contrib", ".//{*}titleStmt/{*}author", ".//{*}title-info/{*}author", ".//{*}info/{*}author")
_NAMES = ("given-names", "firstname", "first-name", "surname", "last-name")
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_ENTITY = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z]\w*;")
_WIKI = (
    (re.compile(r"\{\{[^{}]*\}\}|<ref[^>]*/>|<ref[^>]*>.*?</ref>|<!--.*?-->|^\{\|.*?^\|\}", re.S | re.M), ""),
    (re.compile(r"\[\[(?:[A-Za-z]+:)[^\[\]]*\]\]\n?|</?\w[^<>]*>|'{2,5}|__[A-Z]+__"), ""),
    (
        re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]|\[https?://\S+ ([^\]]+)\]"),
        lambda link: link[1] or link[2] or "",
    ),
    (re.compile(r"^(={2,6}) *(.*?) *\1[ \t]*$", re.M), lambda title: f"{'#' * len(title[1])} {title[2]}"),
    (re.compile(r"^[*]+ *", re.M), "- "),
    (re.compile(r"\n{3,}"), "\n\n"),
)


def read_xml(data: bytes) -> Iterator[Record | Problem]:
    """Yield the documents of an XML file, and a problem if it is damaged.

    Raises:
        ValueError: it is no XML.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, recover=True, remove_comments=True, remove_pis=True
    )
    root = etree.fromstring(_ENTITY.sub(_character, data), parser)
    if root is None:
        raise ValueError("no element was found")
    if damage := next((entry for entry in parser.error_log if entry.level_name == "FATAL"), None):
        error = f"the XML is damaged at line {damage.line} ({damage.message}): what cannot be parsed is left out"
        yield Problem(error, "Correct the file, or export it again.")
    name = local_name(root)
    if name in _ENTRIES:
        entries = (node for node in root.iter() if local_name(node) == _ENTRIES[name])
        for number, entry in enumerate(entries, start=1):
            yield from _entry(entry, number)
    elif name in ("document", "document-content") and "opendocument" in str(root.tag):
        yield opendocument_record(root, {})
    else:
        yield _prose(root, name)


def _character(entity: re.Match[bytes]) -> bytes:
    return unescape(entity[0].decode()).encode("ascii", "xmlcharrefreplace")


def _kind(element: etree._Element) -> str:
    name, parent = local_name(element), local_name(element.getparent()) if element.getparent() is not None else ""
    return _KIND_BY_NAME.get(f"{parent}/{name}") or _KIND_BY_NAME.get(f"{parent}/*") or _KIND_BY_NAME.get(name, "")


def _prose(root: etree._Element, name: str) -> Record | Problem:
    """Return the one document of an article, a book, an outline or subtitles, else of records as names and values."""
    about: dict[str, Any] = {"language": (root.get(_LANGUAGE) or root.get("lang") or "").split("-")[0].lower() or None}
    about["title"] = next(
        (_words(node) for key in _PROPERTIES for node in root.iter(f"{{*}}{key}") if _words(node)), None
    )
    if name in _PROSE:
        people = [node for path in _PEOPLE for node in root.iterfind(path)]
        about["author"] = "; ".join(dict.fromkeys(map(_person, people))) or None
        body = next(root.iter("{*}body"), root) if name in ("wordDocument", "package") else root
        text = markdown(body, _kind)
    elif name == "opml":
        text = "\n".join(_outline(root.find("{*}body"), 0))
    elif name == "tt":
        text = "\n".join(filter(None, (" ".join(markdown(line, _kind).split()) for line in root.iter("{*}p"))))
    else:
        text = re.sub(r"\n{3,}", "\n\n", "".join(_fields(root))).strip()
    return document(text, about, date=_date(root, name))


def _person(node: etree._Element) -> str:
    parts = (_words(part) for key in _NAMES for part in node.iter(f"{{*}}{key}"))
    return " ".join(filter(None, parts)) or _words(node)


def _outline(node: etree._Element | None, depth: int) -> Iterator[str]:
    for child in node if node is not None else ():
        words = " ".join(filter(None, (child.get("text"), child.get("_note"))))
        yield f"{'  ' * depth}- {_plain(words)}" if words else ""
        yield from _outline(child, depth + 1)


def _entry(entry: etree._Element, number: int) -> Iterator[Record | Problem]:
    """Yield the document of an entry of a feed, an export of notes or a dump of a wiki."""
    values = {name: node for node in entry.iter() if node is not entry and (name := local_name(node))}
    for node in reversed([*entry]):  # its own before those of its parts
        values[local_name(node)] = node
    if "redirect" in values or (values.get("ns") is not None and values["ns"].text not in ("0", None)):
        return  # of a wiki: no article
    title = next((_words(values[name]) for name in _TITLES if name in values), None)
    sources = [values[name] for name in _TEXTS if name in values]
    texts = (_page(node) for node in sources)
    text = max(texts, key=len, default="")
    if local_name(entry) == "page":
        text = _wiki_text("".join(map(str, values["text"].itertext())) if "text" in values else "")
    date = next((_words(values[name]) for name in _DATES if name in values), None)
    author = next((_words(values[name]) for name in _AUTHORS if name in values), None)
    item = document(text or title or "", {"title": title, "author": author}, date=date)
    yield replace(item, row_number=number)


def _page(node: etree._Element) -> str:
    """Return the text of an element that holds a page of HTML, as elements or as text."""
    source = etree.tostring(node, encoding="unicode", with_tail=False) if len(node) else node.text or ""
    if not _MARKUP.search(source):
        return " ".join(source.split())
    source = re.sub(r"<\?xml[^>]*\?>|<!DOCTYPE[^>]*>", "", source)
    return markdown(lxml_html.fragment_fromstring(source, create_parent="div"))


def _wiki_text(text: str) -> str:
    while (plain := _WIKI[0][0].sub("", text)) != text:  # templates within templates
        text = plain
    for pattern, by in _WIKI[1:]:
        text = pattern.sub(by, text)
    return unescape(text).strip()


def _fields(element: etree._Element) -> Iterator[str]:
    """Yield the records below an element: a line with name and value for each part; titles are headings."""
    name, children = local_name(element), list(element)
    mixed = (element.text or "").strip() or any((child.tail or "").strip() for child in children)
    if mixed or not children:
        words = _words(element)
        if not words and element.attrib and not children:
            words = ", ".join(f"{etree.QName(key).localname}: {value}" for key, value in element.attrib.items())
        if words and _KIND_BY_NAME.get(name) == "title":
            yield f"\n\n# {words}\n\n"
        elif words:
            is_prose = (mixed and children) or words.count(" ") > 8
            yield f"\n\n{words}\n\n" if is_prose else f"\n{name}: {words}"
    elif all(_KIND_BY_NAME.get(local_name(child)) == "cell" for child in children):
        yield f"\n| {' | '.join(map(_words, children))} |"
    else:
        yield "\n\n"
        for child in children:
            yield from _fields(child)


def _words(element: etree._Element) -> str:
    return _plain("".join(map(str, element.itertext())))


def _plain(text: str) -> str:
    if _MARKUP.search(text):  # pages within a feed
        text = lxml_html.fragment_fromstring(text, create_parent="div").text_content()
    return " ".join(text.split())


def _date(root: etree._Element, name: str) -> str | None:
    """Return the date of a file; of a text in TEI only that of its creation, not of its edition."""
    for node in root.iter("{*}pub-date"):
        parts = {local_name(part): _words(part).zfill(2) for part in node}
        return "-".join(parts[key] for key in ("year", "month", "day") if key in parts)
    if name.startswith("TEI"):
        created = root.find(".//{*}creation/{*}date")
        return (created.get("when") or _words(created)) if created is not None else None
    nodes = (node for node in root.iter() if local_name(node) in (*_DATES, "pubdate") and not len(node))
    return next((words for node in nodes if (words := _words(node))), None)
