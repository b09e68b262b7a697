"""Entities of HTML, which exports of web pages and databases have in their texts."""

import html
import re
from html.entities import html5

_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")


def unescape(text: str) -> str:
    """`text` with HTML entities as the characters that they stand for, once.

    An entity ends with a semicolon: "&copy=1" is part of an address. Unknown ones stay.

    >>> unescape("AT&amp;T, &#8220;Ma Bell&#8221;"), unescape("&amp;amp;"), unescape("?a=1&copy=2 &nothing;")
    ('AT&T, “Ma Bell”', '&amp;', '?a=1&copy=2 &nothing;')
    """
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(entity: re.Match[str]) -> str:
    # html.unescape also reads the beginning of an unknown name: "&nothing;" as "¬hing;".
    named = entity.group()
    return html.unescape(named) if named[1] == "#" or named[1:] in html5 else named
