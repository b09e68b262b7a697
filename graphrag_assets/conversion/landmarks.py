"""The content of a web page without its navigation, header, footer and sidebars."""

from bs4 import BeautifulSoup, Tag

_NEVER_TEXT = ("script", "style", "noscript", "template")
_ROLES = ("navigation", "banner", "contentinfo", "complementary", "search")
# Where a header or a footer belongs to a part of the page and not to the page, and an aside to its text: W3C, HTML
# Accessibility API Mappings 1.0, section 3.4.
_HEADER_PARENTS = ("article", "aside", "main", "nav", "section")
_ASIDE_PARENTS = ("article", "aside", "nav", "section")


def main_content(html: str) -> str:
    """The page without landmarks other than its main content; unchanged but for scripts and styles if nothing is left.

    A heading of the first level in the header of a page stays if there is no other: it is the title.
    """
    page = BeautifulSoup(html, "html.parser")
    for tag in page(_NEVER_TEXT):
        tag.decompose()
    whole = str(page)
    landmarks = _landmarks(page)
    headings = [(tag, heading) for tag in landmarks if tag.name == "header" for heading in tag("h1")]
    if len(headings) == len(page("h1")):
        for tag, heading in headings:
            tag.insert_before(heading.extract())
    for tag in landmarks:
        tag.extract()
    body = page.body or page
    return str(page) if body.get_text(strip=True) else whole


def _landmarks(page: BeautifulSoup) -> list[Tag]:
    """The outermost landmarks; one walk, because pages may be nested thousands deep."""
    found: list[Tag] = []
    todo: list[tuple[Tag, bool, bool]] = [(page, False, False)]
    while todo:
        parent, headers_of_part, asides_of_part = todo.pop()
        for tag in parent.children:
            if not isinstance(tag, Tag):
                continue
            headers, asides = tag.name in ("header", "footer"), tag.name == "aside"
            if (
                tag.name == "nav"
                or tag.get("role") in _ROLES
                or (headers and not headers_of_part)
                or (asides and not asides_of_part)
            ):
                found.append(tag)
            else:
                within = (headers_of_part or tag.name in _HEADER_PARENTS, asides_of_part or tag.name in _ASIDE_PARENTS)
                todo.append((tag, *within))
    return found
