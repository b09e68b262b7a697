"""Lines of Arabic and Hebrew in PDFs: characters with their places to text in reading order."""

import pytest

from graphrag_assets.reading.pdf import _in_reading_order, _Line


def drawn(visual: str, order: list[int] | None = None) -> list[_Line]:
    """Characters of a line as it is seen from left to right, each 10 wide; in the order in which the file has them."""
    boxes = [_Line(10 * n, 0, 10 * n + 10 if text.strip() else 10 * n, 20, text) for n, text in enumerate(visual)]
    return [boxes[n] for n in order] if order else boxes


@pytest.mark.parametrize("reverse", [False, True])
def test_a_line_is_read_from_right_to_left_in_whatever_order_it_is_stored(reverse: bool) -> None:
    visual = "הפי (דואמ) Cyrus Field 1933 למנ"
    order = list(range(len(visual)))[:: -1 if reverse else 1]
    assert _in_reading_order(drawn(visual, order)) == "נמל Cyrus Field 1933 (מאוד) יפה"


def test_other_lines_stay_as_they_are() -> None:
    assert _in_reading_order(drawn("Cyrus Field")) == "Cyrus Field"
