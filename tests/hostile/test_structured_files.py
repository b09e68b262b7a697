"""Structured files that once took time with the square of their size, and others of the kind: all are read in linear time.

Parquet files that expand are read in a process with limits.
"""

import io
import time

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.reading.process import ConversionProcess
from graphrag_assets.reading.read_records import read_records
from graphrag_assets.reading.source_records import ConversionLimits, LoadOptions, Problem, Record
from graphrag_assets.reading.tables import csv_records

SIZE = 250_000  # bytes
REPEATED = [
    ("csv", b'x","y\n'),  # each line, read on its own, opens a quote that never ends
    ("csv", b'x,""y"\n'),
    ("csv", b","),
    ("json", b"["),
    ("json", b'{"a":'),
    ("jsonl", b'{"text": "\n'),
    ("jsonl", b"9" * 4000 + b"\n"),
    ("parquet", b"PAR1"),
]


@pytest.mark.parametrize(("file_format", "unit"), REPEATED)
def test_a_long_repeated_pattern_is_read_in_linear_time(file_format: str, unit: bytes) -> None:
    data = (b"text\n" if file_format in ("csv", "tsv") else b"") + unit * (SIZE // len(unit))
    started = time.process_time()
    with ConversionProcess(ConversionLimits()) as convert:
        found = list(read_records(f"a.{file_format}", data, LoadOptions(), convert))
    assert time.process_time() - started < 2.5  # some took minutes
    assert isinstance(found[0], Problem)


def parquet(**columns: pl.Series) -> bytes:
    file = io.BytesIO()
    pl.DataFrame(columns).write_parquet(file)
    return file.getvalue()


@pytest.mark.extended
@pytest.mark.parametrize(
    "column", [pl.repeat("a" * 1_000, 1_000_000, eager=True), pl.Series(["a" * 250_000_000])], ids=["rows", "one text"]
)
def test_a_parquet_file_that_expands_is_a_problem_and_the_next_is_read(column: pl.Series) -> None:
    bomb = parquet(text=column)
    assert len(bomb) < 200_000
    with ConversionProcess(ConversionLimits(memory_mb=200)) as convert:
        (problem,) = read_records("a.parquet", bomb, LoadOptions(), convert)
        (record,) = read_records("b.parquet", parquet(text=pl.Series(["It held."])), LoadOptions(), convert)
    assert isinstance(problem, Problem)
    assert problem.error == "converting the parquet file took more than 200 MB of memory"
    assert isinstance(record, Record)
    assert record.text == "It held."


@given(st.integers(1, 30), st.integers(0, 29))
def test_a_quote_that_is_never_closed_costs_one_row(n_rows: int, open_row: int) -> None:
    rows = [f"{chr(34) if number == open_row else ''}a{number},b" for number in range(n_rows)]
    fields = [item[1] for item in csv_records("\n".join(rows), ",") if not isinstance(item, Problem)]
    assert fields == [[f"a{number}", "b"] for number in range(n_rows) if number != open_row]
