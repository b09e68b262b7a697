"""Footnotes: numbers of passages in the order of citation, the same text in pieces as at once, inert markup."""

import re

import pytest

from graphrag_assets.extras.server.footnotes import Footnotes
from graphrag_assets.query import Citation

ANSWER = (
    "She sailed. [Data: Sources (7.2, 9); Entities (3)] ![x](https://evil.example/?q=1) <img src=x> "
    "Then [a](javascript:alert(1)) she stopped. [Data: Sources (9)] See https://evil.example/now."
)


def footnotes() -> Footnotes:
    """Each cited row has a passage of its number; the entity 3 has that of the source 9."""

    def cited(text: str) -> list[Citation]:
        numbers = [9 if one == "3" else int(one) for one in re.findall(r"(\d+)(?:\.\d+)?[,)]", text.split("[Data:")[1])]
        return [Citation((), f"u{n}", None, "A document", None, n, n + 1, "q", span=(0, n)) for n in numbers]

    return Footnotes(cited, lambda _: None)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_pieces_give_the_same_text_and_no_markup(size):
    # pieces of an answer have whole references
    parts, end = [], 0
    while end < len(ANSWER):
        stop = end + size
        if ANSWER[end : end + 6] == "[Data:":
            stop = ANSWER.index("]", end) + 1
        elif "[Data:" in ANSWER[end:stop] or (0 <= ANSWER.find("[Data:", end) < stop):
            stop = ANSWER.index("[Data:", end)
        parts.append(ANSWER[end:stop])
        end = stop
    streamed = footnotes()
    shown = "".join(streamed.feed(part) for part in parts) + streamed.end()
    whole = footnotes()
    assert shown == whole.feed(ANSWER) + whole.end()
    assert "![x](" not in shown
    assert "<img" not in shown
    assert "](javascript" not in shown
