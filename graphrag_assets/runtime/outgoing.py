"""What leaves the process as text for people: without secrets, control characters and foreign markup.

Titles, names, ids and messages come from documents, models and servers. In a terminal an escape sequence could rewrite
what is shown; in Markdown a link could lead anywhere, and an image could send what stands beside it to its server.
"""

import re
from collections.abc import Sequence

from graphrag_assets.runtime.masking import mask

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tab and line break, and those that change the direction of text."""
_BARE = r"(?<=\w):(?=//)|(?<=\bwww)\."  # links that need no markup
_MARKUP = re.compile(rf"[\\`*\[\]|~]|(?<!\w)_|_(?!\w)|!(?=\[)|{_BARE}", re.IGNORECASE)
"""What begins or ends markup within a line."""
_ACTIVE = re.compile(rf"!(?=\[)|(?<=\])[(\[:]|{_BARE}", re.IGNORECASE)
"""What makes images and links."""
_CHARACTER = re.compile(r"&(?=#?\w+;)")


def printable(text: str) -> str:
    r"""The text with control characters as symbols.

    >>> printable("a\x1b[31mb")
    'a␛[31mb'
    """
    return _CONTROL.sub(lambda found: _symbol(ord(found[0])), text)


def shown(text: str) -> str:
    """The text without secrets and control characters: what a message may have."""
    return printable(mask(text))


def listed(names: Sequence[str], most: int = 20, separator: str = ", ") -> str:
    """The names in one line; of more than `most` the first ones, and how many there are besides.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def _symbol(code: int) -> str:
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else "�"


def as_markdown(text: str) -> str:
    r"""The text as one line of Markdown that shows it literally; secrets are masked.

    >>> print(as_markdown("![x](https://e.example) | <b>\x1b[1m"))
    \!\[x\](https\://e.example) \| &lt;b>␛\[1m
    """
    line = " ".join(printable(mask(text).replace("\r", " ")).split())
    return _without_html(_MARKUP.sub(r"\\\g<0>", line))


def safe_markdown(text: str) -> str:
    r"""Markdown with its lists and emphasis, whose images, links and HTML are shown literally; secrets are masked.

    >>> print(safe_markdown("**Yes** [1](https://e.example) <img src=x>"))
    **Yes** [1]\(https\://e.example) &lt;img src=x>
    """
    return _without_html(_ACTIVE.sub(r"\\\g<0>", shown(text)))


def _without_html(text: str) -> str:
    return _CHARACTER.sub("&amp;", text).replace("<", "&lt;")


def literal_markdown(text: str) -> str:
    """The text as Markdown that shows it line by line as it is; secrets are masked."""
    literal = shown(text)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", literal)), 3)
    return f"{fence}\n{literal}\n{fence}"
