"""Dates as models write them, and what is certain in them."""

import calendar
import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.text.iso_dates import iso_date, period


@pytest.mark.parametrize(
    ("stated", "first", "last"),
    [
        ("1866", "1866", "1866"),
        ("1866-07-27T00:00:00Z", "1866-07-27", "1866-07-27"),
        ("Sept. 1866", "1866-09", "1866-09"),
        ("7/27/1866", "1866-07-27", "1866-07-27"),
        ("03/04/1866", "1866", "1866"),  # March or April
        ("27. Juli 1866", "1866-07-27", "1866-07-27"),
        ("1866-XX-XX", "1866", "1866"),
        ("1866-13", "1866", "1866"),
        ("1800-12", "1800-12", "1800-12"),  # no span of years
        ("1866-02-30", "1866-02", "1866-02"),
        ("1866-68", "1866", "1868"),
        ("1 May 1865 to 3 June 1866", "1865-05-01", "1866-06-03"),
        ("from May 1865 until 1866", "1865-05", "1866"),
        ("0800-12-25", "0800-12-25", "0800-12-25"),
        ("44 BC", None, None),
        (None, None, None),
    ],
)
def test_a_date_is_as_precise_as_it_is_certain(stated: str | None, first: str | None, last: str | None):
    assert iso_date(stated) == first
    assert iso_date(stated, last=True) == last


@given(st.dates())
def test_a_date_in_any_unambiguous_writing_is_the_same_date(date):
    year, month = f"{date.year:04d}", calendar.month_name[date.month]
    for stated in (
        date.isoformat(),
        f"{date.day} {month} {year}",
        f"{month} {date.day}, {year}",
        f"{date:%d.%m}.{year}",
    ):
        assert iso_date(stated) == date.isoformat()


@given(st.text(alphabet="0123456789-/. JulyBCsTo", max_size=25))
def test_result_is_an_iso_date_or_empty_for_any_text(stated: str):
    date = iso_date(stated)
    if date is not None:
        year, month, day = ([*map(int, date.split("-")), 1, 1])[:3]
        assert len(date) in (4, 7, 10)
        datetime.date(year, month, day)


def test_reversed_ends_are_swapped_and_nested_ones_are_not():
    assert period("1868", "1866-07-27") == ("1866-07-27", "1868")
    assert period("1866-07-27", "1866") == ("1866-07-27", "1866")
    assert period(None, "1866") == (None, "1866")
    assert period("the 1850s", "the 1850s") == ("1850", "1859")
