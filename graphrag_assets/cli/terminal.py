"""The terminal: everything that commands print goes through here, and none of it controls the terminal.

Titles, names and ids come from documents and models. An escape sequence in them could rewrite what the terminal shows.
"""

import re
import sys
from typing import Any

import rich.console
from rich.console import ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tab and line break, and those that change the direction of text."""


def printable(text: str) -> str:
    r"""The text with control characters as symbols.

    >>> printable("a\x1b[31mb")
    'a␛[31mb'
    """
    return _CONTROL.sub(lambda found: _symbol(ord(found[0])), text)


def _symbol(code: int) -> str:
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else "�"


def write(text: str) -> None:
    """Print data, such as CSV: on a terminal with control characters as symbols, elsewhere as it is."""
    print(printable(text) if sys.stdout.isatty() else text, end="")


class Console(rich.console.Console):
    """Rich's console, whose texts hold no control characters; the styles are Rich's own."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.push_render_hook(_Masking())


class _Masking(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Masked(renderable) for renderable in renderables]


class _Masked:
    """A renderable with control characters as symbols."""

    def __init__(self, renderable: ConsoleRenderable):
        self.renderable = renderable

    def __rich_console__(self, console: rich.console.Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.renderable, options):
            text = segment.text if segment.control else printable(segment.text)
            yield Segment(text, segment.style, segment.control)
