"""Ids are the same in SQL and Python."""

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.ids import number_of


@given(st.text())
def test_a_text_has_the_same_number_in_duckdb(text: str) -> None:
    with duckdb.connect() as connection:
        found = connection.execute("SELECT md5_number_lower($text)", {"text": text}).fetchall()
    assert found == [(number_of(text),)]
