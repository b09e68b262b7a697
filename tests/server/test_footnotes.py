"""Footnotes: numbers in the order of citation, the same text in pieces as at once, inert markup."""

import pytest

from graphrag_assets.extras.server.footnotes import Footnotes

ANSWER = (
    "She sailed. [Data: Sources (7.2, 9); Entities (3)] ![x](https://evil.example/?q=1) <img src=x> "
    "Then [a](javascript:alert(1)) she stopped. [Data: Sources (9)] See https://evil.example/now."
)


def test_rows_are_numbered_by_their_first_citation():
    marked = Footnotes(lambda _: None).text(ANSWER)
    assert marked.startswith("She sailed. [1] [2] [3] ")
    assert "she stopped. [2] See" in marked


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
    footnotes = Footnotes(lambda _: None)
    shown = "".join(footnotes.feed(part) for part in parts) + footnotes.end()
    assert shown == Footnotes(lambda _: None).text(ANSWER)
    assert "![x](" not in shown
    assert "<img" not in shown
    assert "](javascript" not in shown
