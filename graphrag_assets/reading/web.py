"""Web pages with trafilatura: the text without navigation, advertisements and hidden parts, its title and date."""

import re
from collections.abc import Iterable

from lxml import etree
from lxml import html as lxml_html
from lxml.html import HtmlElement
from trafilatura import extract, extract_metadata

from graphrag_assets.reading.markdown import markdown, plain_words
from graphrag_assets.reading.source_records import NO_TEXT, Problem, Record, filled

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
_RAISED = re.compile(r"</?su[bp]>")
_PERMALINK = re.compile(r"^(#{1,6} [^\n]*?)\s*[¶#]$", re.MULTILINE)
_SHORT = 200  # characters of an extraction that may have missed the text
_PLAIN_SHARE = 0.3


def read_page(text: str) -> list[Record | Problem]:
    """Return the one document of a page as Markdown, with its own title, date, language and author.

    A page without text is a problem.
    """
    page = _parsed(text)
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
    metadata = filled({"author": whole.author if whole else None, "url": whole.url if whole else None})
    record = Record(body, title, date=about.date if about else None, language=language, metadata=metadata)
    return [record if body else NO_TEXT]


def mail_text(text: str) -> str:
    """Return the text of a mail in HTML as Markdown, without hidden parts and quoted mails."""
    page = _parsed(text)
    _drop_hidden(page)
    whole = markdown(page)
    _drop(page.xpath(_QUOTED_MAIL))
    return markdown(page) or whole


def _parsed(text: str) -> HtmlElement:
    parser = lxml_html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False)
    return lxml_html.document_fromstring(text.encode(), parser=parser)


def _drop_hidden(page: HtmlElement) -> None:
    """Drop what a page does not show, by attributes or by rules of its style sheet for a class or an id."""
    _drop(page.xpath(f"{_HIDDEN} | {_SIGNS}"))
    by_rule = {*_hidden_by_rules(page)}
    outermost = [element for element in by_rule if by_rule.isdisjoint(element.iterancestors())]
    if sum(map(_count_shown, outermost)) <= _MAX_HIDDEN_SHARE * _count_shown(page):
        _drop(outermost)


def _drop(elements: Iterable[HtmlElement]) -> None:
    for element in elements:
        if element.getparent() is not None and element.tag not in ("html", "body"):
            element.drop_tree()


def _count_shown(element: HtmlElement) -> int:
    """Count the characters of an element without scripts, style sheets and the head of the page."""
    texts = element.xpath(".//text()[not(ancestor::script or ancestor::style or ancestor::head)]")
    return sum(len("".join(text.split())) for text in texts)


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
    _drop(part.xpath(".//nav | .//aside | .//footer | .//*[@role='navigation' or @role='contentinfo']"))
    return markdown(part)
