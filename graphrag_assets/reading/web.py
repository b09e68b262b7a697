"""Web pages with trafilatura: the text without navigation, advertisements and hidden parts, its title and date."""

import re

from lxml import etree
from lxml import html as lxml_html
from lxml.html import HtmlElement
from trafilatura import extract, extract_metadata

from graphrag_assets.reading.markdown import plain_words
from graphrag_assets.reading.source_records import Problem, Record, metadata_json

_NO_TEXT = Problem(
    "no text was found in the page", "If a script writes its text, save the page from a browser as text."
)
_STYLE = "translate(@style, ' ', '')"
_UNSEEN = ("display:none", "visibility:hidden", "font-size:0")
_HIDDEN = (
    "//*[@hidden or @aria-hidden='true' or self::noscript or "
    + " or ".join(f"contains({_STYLE}, '{rule}')" for rule in _UNSEEN)
    + "]"
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_CONDITIONAL = re.compile(r"@(?!media (?:screen|all)\b|supports|layer)[^{};]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
"""Rules of a style sheet that hold in print or on small screens, and steps of animations."""
_RULE = re.compile(r"([^{};]+)\{([^{}]*)\}")
_ONE_NAME = re.compile(r"(\w*)([.#])([\w-]+)")
"""A selector of one class or id: others depend on where an element is, or on what a script has done."""
_MAX_HIDDEN_SHARE = 0.5
"""A page whose style sheet hides more of its text is shown by a script."""
_DATED = "//head | //time | //script[@type='application/ld+json']"
_QUOTED_MAIL = (
    "//blockquote[@type='cite' or contains(@class, 'quote')]"
    " | //*[contains(@class, 'gmail_quote') or contains(@class, 'yahoo_quoted') or contains(@class, 'moz-cite-prefix')]"
    " | //*[@id='divRplyFwdMsg' or @id='appendonsend'] | //*[@id='divRplyFwdMsg' or @id='appendonsend']/following::*"
    f" | //div[contains({_STYLE}, 'border-top:solid') and contains(., ':')]"
    f" | //div[div[contains({_STYLE}, 'border-top:solid') and contains(., ':')]]/following-sibling::*"
)
_SIGNS = (
    "//a[contains(@class, 'headerlink') or contains(@class, 'anchor-link')]"
    " | //*[contains(@class, 'mw-editsection') or @id='toc' or contains(@class, 'noprint')]"
    " | //sup[contains(@class, 'reference')]"
)
"""Links to headings, notes and editors, which stand within the words of a page."""
_BLOCKS = frozenset((
    "p", "div", "br", "li", "tr", "table", "ul", "ol", "dl", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6",
    "blockquote", "pre", "hr", "section", "summary",
))  # fmt: skip
_RAISED = re.compile(r"</?su[bp]>")
_PERMALINK = re.compile(r"^(#{1,6} [^\n]*?)\s*[¶#]$", re.MULTILINE)
_SHORT = 200  # characters of an extraction that may have missed the text
_PLAIN_SHARE = 0.3


def read_page(data: bytes) -> list[Record | Problem]:
    """Return the one document of a page as Markdown, with its own title, date, language and author.

    A page without text is a problem.
    """
    page = _parsed(data.decode())
    language = (page.get("lang") or page.get("xml:lang") or "").split("-")[0].lower() or None
    about = extract_metadata(_dated(page), date_config={"extensive_search": False, "original_date": True})
    _drop_hidden(page)
    whole = extract_metadata(page)
    for summary in page.iter("summary"):  # trafilatura leaves it out
        summary.tag = "p"
    body = extract(
        page,
        output_format="markdown",
        include_formatting=True,  # headings
        include_links=False,
        include_comments=False,
        include_tables=True,
        favor_recall=True,
    )
    body = plain_words(body or "", (_RAISED, ""), (_PERMALINK, r"\1")).strip()
    if len(body) < _SHORT:  # trafilatura leaves out very short pages
        plain = _plain_text(page)
        bare = "\n\n" not in body  # trafilatura has found no article, and cuts lines within sentences
        body = plain if bare or len(body) < _PLAIN_SHARE * len(plain) else body
    title = _title(page, whole.title if whole else None)
    raw_data = metadata_json({"author": whole.author if whole else None, "url": whole.url if whole else None})
    record = Record(body, title, date=about.date if about else None, language=language, raw_data=raw_data)
    return [record if body else _NO_TEXT]


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
    for element in page.xpath(".//script | .//style | .//noscript | .//template | .//head"):
        element.drop_tree()
    parts: list[str] = []
    for event, element in etree.iterwalk(page, events=("start", "end")):
        is_block = element.tag in _BLOCKS
        if event == "start":
            parts += ["\n"] * is_block
            parts.append(re.sub(r"\s+", " ", element.text or "") if isinstance(element.tag, str) else "")
        else:
            parts += ["\n"] * is_block
            parts += [" | "] * (element.tag in ("td", "th"))
            parts.append(re.sub(r"\s+", " ", element.tail or ""))
    lines = (re.sub(r"(?: *\|)+ *", " | ", line).strip("| ") for line in "".join(parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _parsed(text: str) -> HtmlElement:
    parser = lxml_html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False)
    return lxml_html.document_fromstring(text.encode(), parser=parser)


def _drop_hidden(page: HtmlElement) -> None:
    """Drop what a page does not show, by attributes or by rules of its style sheet for a class or an id."""
    by_rule = _hidden_by_rules(page)
    n_hidden = sum(len(element.text_content()) for element in by_rule)
    if n_hidden > _MAX_HIDDEN_SHARE * len(page.text_content()):
        by_rule = []
    for element in (*page.xpath(f"{_HIDDEN} | {_SIGNS}"), *by_rule):
        if element.getparent() is not None and element.tag not in ("html", "body"):
            element.drop_tree()


def _hidden_by_rules(page: HtmlElement) -> list[HtmlElement]:
    sheet = _CONDITIONAL.sub("", _COMMENT.sub("", "\n".join(style.text or "" for style in page.iter("style"))))
    selectors = [
        selector.strip()
        for names, rule in _RULE.findall(sheet)
        if any(value in re.sub(r"\s", "", rule) for value in _UNSEEN)
        for selector in names.split(",")
    ]
    unseen = {match.groups() for match in map(_ONE_NAME.fullmatch, selectors) if match}
    if not unseen:
        return []
    return [
        element
        for element in page.iter(etree.Element)
        if any(
            (tag, sign, name) in unseen
            for tag in ("", element.tag)
            for sign, names in ((".", element.get("class")), ("#", element.get("id")))
            for name in (names or "").split()
        )
    ]


def _dated(page: HtmlElement) -> HtmlElement:
    """Return a page of what states a date: elsewhere a date may be of anything that the text tells."""
    parts = "".join(lxml_html.tostring(part, encoding="unicode", with_tail=False) for part in page.xpath(_DATED))
    return _parsed(f"<html><body>{parts}</body></html>")


def _title(page: HtmlElement, visible_title: str | None) -> str | None:
    """Return the title without the name of the site; the heading that the page shows, where its title has it."""
    title = " ".join(str(page.findtext(".//title") or "").split())
    headings = [" ".join(heading.text_content().split()) for heading in page.iter("h1")]
    return (
        visible_title
        if visible_title and (visible_title in title or not title or headings == [visible_title])
        else title or None
    )


def _plain_text(page: HtmlElement) -> str:
    """Return all of the main part of a page, else of the page, without navigation."""
    main = page.xpath("//main | //*[@role='main'] | //article")
    part = main[0] if len(main) == 1 else page
    for element in part.xpath(".//nav | .//aside | .//footer | .//*[@role='navigation' or @role='contentinfo']"):
        element.drop_tree()
    return re.sub(r"\n+", "\n\n", _lines(part))
