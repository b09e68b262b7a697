"""Dates, amounts and claims of the embedded default."""

import pytest

from graphrag_assets.embedded.claim_sentences import status_of
from graphrag_assets.embedded.dates import periods
from graphrag_assets.embedded.extractor import extract_unit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 27 July 1866", [("1866-07-27", "1866-07-27")]),
        ("on the 27th of July, 1866", [("1866-07-27", "1866-07-27")]),
        ("from 13 to 27 July 1866", [("1866-07-13", "1866-07-27")]),
        ("July 13-27, 1866", [("1866-07-13", "1866-07-27")]),
        ("in July 1866", [("1866-07", "1866-07")]),
        ("in 1866", [("1866", "1866")]),
        ("in 1857–58", [("1857", "1858")]),
        ("between 1857 and 1866", [("1857", "1866")]),
        ("in 1857 and 1866", [("1857", "1857"), ("1866", "1866")]),
        ("in the 1850s", [("1850", "1859")]),
        ("on 1866-07-27", [("1866-07-27", "1866-07-27")]),
        ("until July 1866", [(None, "1866-07")]),
        ("in 1866-57", []),
        ("on 31 February 1866", []),
        ("on 27 July", []),
        ("1866 miles, £1866, 1,866 and 18.66", []),
    ],
)
def test_stated_times_are_read_as_precisely_as_stated(text: str, expected: list[tuple[str | None, str]]) -> None:
    assert [tuple(period) for period in periods(text)] == expected


def test_a_dated_sentence_is_a_claim_about_its_first_name() -> None:
    text = "The weather held.  Daniel Gooch sent the news to London on 27 July 1866. Nobody slept."
    [claim] = extract_unit(text).claims
    assert (claim.subject, claim.object, claim.type, claim.status) == (
        "Daniel Gooch", "London", "DATED EVENT", "TRUE",
    )  # fmt: skip
    assert (claim.start_date, claim.end_date) == ("1866-07-27", "1866-07-27")
    assert claim.source_text == "Daniel Gooch sent the news to London on 27 July 1866."


def test_an_end_before_a_later_start_is_about_the_first_name() -> None:
    (claim,) = extract_unit("Cyrus Field led it until 1866, and since 1868 Daniel Gooch led it.").claims
    assert (claim.subject, claim.start_date, claim.end_date) == ("Cyrus Field", None, "1866")


@pytest.mark.parametrize(
    ("text", "kind", "amount"),
    [
        ("Cyrus Field lost $1.5 million on it.", "AMOUNT", "$1.5 million"),
        ("Cyrus Field lost two thousand guineas on it.", "AMOUNT", "two thousand guineas"),
        ("Cyrus Field lost 2,500 nautical miles of it.", "MEASUREMENT", "2,500 nautical miles"),
    ],
)
def test_an_amount_is_the_object_of_a_claim(text: str, kind: str, amount: str) -> None:
    assert [(c.subject, c.type, c.object) for c in extract_unit(text).claims] == [("Cyrus Field", kind, amount)]


def test_a_sentence_without_a_name_or_a_figure_is_no_claim() -> None:
    assert extract_unit("It happened in 1866. Cyrus Field was pleased for two minutes.").claims == []


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Field sailed in 1866.", "TRUE"),
        ("Field is said to have sailed in 1866.", "SUSPECTED"),
        ("Field never sailed in 1866.", "FALSE"),
        ("Field sailed in 1866, but the others did not.", "TRUE"),
    ],
)
def test_hedges_and_negations_set_the_status(text: str, status: str) -> None:
    assert status_of(text) == status
