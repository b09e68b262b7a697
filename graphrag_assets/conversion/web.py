"""Web pages with trafilatura: the text without navigation, advertisements and hidden parts, its title and date."""

import re

from lxml import etree
from lxml import html as lxml_html
from lxml.html import HtmlElement
from trafilatura import extract, extract_metadata

from graphrag_assets.pipeline.source_records import Problem, Record, metadata_json

_NO_TEXT = Problem(
    "no text was found in the page", "If a script writes its text, save the page from a browser as text."
)
_STYLE = "translate(@style, ' ', '')"
_HIDDEN = (
    "//*[@hidden or @aria-hidden='true'"
    f" or contains({_STYLE}, 'display:none') or contains({_STYLE}, 'visibility:hidden')]"
)
_DATED = "//head | //time | //script[@type='application/ld+json']"
_QUOTED_MAIL = (
    "//blockquote[@type='cite' or contains(@class, 'quote')]"
    " | //*[contains(@class, 'gmail_quote') or contains(@class, 'yahoo_quoted') or contains(@class, 'moz-cite-prefix')]"
    " | //*[@id='divRplyFwdMsg' or @id='appendonsend'] | //*[@id='divRplyFwdMsg' or @id='appendonsend']/following::*"
    f" | //div[contains({_STYLE}, 'border-top:solid') and contains(., ':')]"
    f" | //div[div[contains({_STYLE}, 'border-top:solid') and contains(., ':')]]/following-sibling::*"
)
_BLOCKS = frozenset("p div br li tr table ul ol h1 h2 h3 h4 h5 h6 blockquote pre hr".split())
_FENCE = re.compile(r"(^```.*?^```[ \t]*$)", re.MULTILINE | re.DOTALL)
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3})(?=\S)([^*\n]+?)(?<=\S)\1(?![\w*])")
_PERMALINK = re.compile(r"^(#{1,6} [^\n]*?)\s*[¶#]$", re.MULTILINE)
_SHORT = 200  # characters of an extraction that may have missed the text
_PLAIN_SHARE = 0.3


def read_page(text: str) -> list[Record | Problem]:
    """Return the one document of a page, or the problem that it has no text."""
    record = page_record(text)
    return [record if record.text else _NO_TEXT]


def mail_text(text: str) -> str:
    """Return the text of a mail in HTML, a line for each of its blocks, without hidden parts and quoted mails."""
    page = _parsed(text)
    _drop_hidden(page)
    whole = _lines(page)
    for element in page.xpath(_QUOTED_MAIL):
        if element.getparent() is not None and element.tag not in ("html", "body"):
            element.drop_tree()
    return _lines(page) or whole


def _lines(page: HtmlElement) -> str:
    """Return the text of a page, a line for each block."""
    for element in page.xpath("//script | //style | //noscript | //template | //head"):
        element.drop_tree()
    parts: list[str] = []
    for event, element in etree.iterwalk(page, events=("start", "end")):
        is_block = element.tag in _BLOCKS
        if event == "start":
            parts += ["\n"] * is_block
            parts.append(re.sub(r"\s+", " ", element.text or "") if isinstance(element.tag, str) else "")
        else:
            parts += ["\n"] * is_block
            parts.append(re.sub(r"\s+", " ", element.tail or ""))
    lines = (line.strip() for line in "".join(parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def page_record(text: str) -> Record:
    """Return the text of a page as Markdown, its own title, date, language and author."""
    page = _parsed(text)
    language = (page.get("lang") or page.get("xml:lang") or "").split("-")[0].lower() or None
    about = extract_metadata(_dated(page), date_config={"extensive_search": False, "original_date": True})
    whole = extract_metadata(page)
    _drop_hidden(page)
    body = extract(
        page,
        output_format="markdown",
        include_formatting=True,  # headings
        include_links=False,
        include_comments=False,
        include_tables=True,
        favor_recall=True,
    )
    body = _plain_words(body or "").strip()
    if len(body) < _SHORT:  # trafilatura leaves out very short pages
        plain = _plain_text(page)
        body = plain if len(body) < _PLAIN_SHARE * len(plain) else body
    return Record(
        body,
        _title(page, whole.title if whole else None),
        date=about.date if about else None,
        language=language,
        raw_data=metadata_json({"author": about.author if about else None, "url": whole.url if whole else None}),
    )


def _parsed(text: str) -> HtmlElement:
    parser = lxml_html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False)
    return lxml_html.document_fromstring(text.encode(), parser=parser)


def _drop_hidden(page: HtmlElement) -> None:
    for element in page.xpath(_HIDDEN):
        if element.getparent() is not None and element.tag not in ("html", "body"):
            element.drop_tree()


def _dated(page: HtmlElement) -> HtmlElement:
    """Return a page of what states a date: elsewhere a date may be of anything that the text tells."""
    parts = "".join(lxml_html.tostring(part, encoding="unicode", with_tail=False) for part in page.xpath(_DATED))
    return _parsed(f"<html><body>{parts}</body></html>")


def _title(page: HtmlElement, shown: str | None) -> str | None:
    """Return the title without the name of the site; the heading that the page shows, where its title has it."""
    title = " ".join(str(page.findtext(".//title") or "").split())
    return shown if shown and (shown in title or not title) else title or None


def _plain_words(markdown: str) -> str:
    """Return Markdown without emphasis and without the signs of links to headings, but for code."""
    parts = _FENCE.split(markdown)
    parts[::2] = [_EMPHASIS.sub(r"\2", _PERMALINK.sub(r"\1", part)) for part in parts[::2]]
    return "".join(parts)


def _plain_text(page: HtmlElement) -> str:
    for element in page.xpath("//script | //style | //noscript | //template | //head"):
        element.drop_tree()
    blocks = re.split(r"\n\s*\n|\s*\n\s*", page.text_content())
    return "\n\n".join(" ".join(block.split()) for block in blocks if block.strip())
