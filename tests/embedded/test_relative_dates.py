"""Times relative to the day a text was written on. The expected days are read off a calendar of 1866."""

from datetime import date

import pytest

from graphrag_assets.embedded.dates import relative_periods
from graphrag_assets.embedded.extractor import extract_unit

FRIDAY = date(1866, 7, 27)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("Field arrived yesterday.", "1866-07-26", "1866-07-26"),
        ("Field arrived the day before yesterday.", "1866-07-25", "1866-07-25"),
        ("Field leaves tomorrow.", "1866-07-28", "1866-07-28"),
        ("Field arrived three days ago.", "1866-07-24", "1866-07-24"),
        ("Field left 2 weeks ago.", "1866-07-09", "1866-07-15"),
        ("Field left last week.", "1866-07-16", "1866-07-22"),
        ("Field came a month ago.", "1866-06", "1866-06"),
        ("Field came eight months ago.", "1865-11", "1865-11"),
        ("Field comes next year.", "1867", "1867"),
        ("Field came ten years ago.", "1856", "1856"),
        ("Field came last March.", "1866-03", "1866-03"),
        ("Field came last July.", "1865-07", "1865-07"),
        ("Field came last September.", "1865-09", "1865-09"),
        ("Field comes next March.", "1867-03", "1867-03"),
        ("Field came last Monday.", "1866-07-23", "1866-07-23"),
        ("Field came last Friday.", "1866-07-20", "1866-07-20"),
        ("Field comes next Saturday.", "1866-07-28", "1866-07-28"),
        ("Field comes next Friday.", "1866-08-03", "1866-08-03"),
    ],
)
def test_a_relative_time_is_as_precise_as_stated(text: str, start: str, end: str) -> None:
    assert [tuple(period) for period in relative_periods(text, FRIDAY)] == [(start, end)]


@pytest.mark.parametrize(
    "text", ["“Field came yesterday,” he said.", "Three days later Field came.", "Field came in March, the last of us."]
)
def test_times_relative_to_something_else_are_unknown(text: str) -> None:
    assert relative_periods(text, FRIDAY) == []


def test_a_date_that_may_stand_for_a_month_or_year_makes_nothing_more_precise() -> None:
    text = "Field came yesterday, last month and last year."
    found = {
        day: [period.start for period in relative_periods(text, day)] for day in (date(1866, 7, 1), date(1866, 1, 1))
    }
    assert found == {date(1866, 7, 1): ["1866-06", "1865"], date(1866, 1, 1): ["1865"]}


def test_claims_have_dates_relative_to_that_of_the_document_unless_their_sentence_has_its_own() -> None:
    text = "Cyrus Field arrived yesterday. Daniel Gooch came in 1865, as he said last year."
    dated = {claim.subject: claim.start_date for claim in extract_unit(text, document_date=FRIDAY).claims}
    assert dated == {"Cyrus Field": "1866-07-26", "Daniel Gooch": "1865"}
    assert [claim.subject for claim in extract_unit(text).claims] == ["Daniel Gooch"]
