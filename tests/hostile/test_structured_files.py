"""Structured files that once took time with the square of their size, and others of the kind: all are read in linear time.

Parquet files that expand are read in a process with limits.
"""

import io
import time
from collections.abc import Callable

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.reading.kinds import read_records
from graphrag_assets.reading.process import ConversionProcess
from graphrag_assets.reading.source_records import ConversionLimits, LoadOptions, Problem, Record
from graphrag_assets.reading.tables import csv_records

SIZE = 250_000  # bytes
REPEATED = [
    ("csv", b'x","y\n'),  # each line, read on its own, opens a quote that never ends
    ("csv", b'"a\n'),
    ("csv", b'a,"\n'),
    ("csv", b'x,""y"\n'),
    ("csv", b","),
    ("tsv", b'x"\t"y\n'),
    ("json", b"["),
    ("json", b'{"a":'),
    ("json", b'"\\'),
    ("jsonl", b'{"text": "\n'),
    ("jsonl", b"[[[[[[[[\n"),
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


def repeated(value: object, n: int) -> pl.Series:
    return pl.repeat(value, n, eager=True)


PARQUET_BOMBS: dict[str, Callable[[], bytes]] = {
    "a gigabyte of one text, by its dictionary": lambda: parquet(text=repeated("a" * 1_000, 1_000_000)),
    "a text of 250 MB": lambda: parquet(text=pl.Series(["a" * 250_000_000])),
    "a list of 32 million numbers": lambda: parquet(text=pl.Series(["a"]), x=pl.Series([[0] * 32_000_000])),
    "16 million short rows": lambda: parquet(text=repeated("It broke.", 16_000_000)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", PARQUET_BOMBS)
def test_a_parquet_file_that_expands_is_a_problem_and_the_next_is_read(name: str) -> None:
    bomb = PARQUET_BOMBS[name]()
    assert len(bomb) < 200_000
    with ConversionProcess(ConversionLimits(memory_mb=200)) as convert:
        (problem,) = read_records("a.parquet", bomb, LoadOptions(), convert)
        small = parquet(text=pl.Series(["It held."]))
        (record,) = read_records("b.parquet", small, LoadOptions(), convert)
    assert isinstance(problem, Problem)
    assert problem.error == "converting the parquet file took more than 200 MB of memory"
    assert "Split a very large document" in problem.hint
    assert isinstance(record, Record)
    assert record.text == "It held."


@given(st.integers(1, 30), st.integers(0, 29))
def test_a_quote_that_is_never_closed_costs_one_row(n_rows: int, open_row: int) -> None:
    rows = [f"{chr(34) if number == open_row else ''}a{number},b" for number in range(n_rows)]
    fields = [item[1] for item in csv_records("\n".join(rows), ",") if not isinstance(item, Problem)]
    assert fields == [[f"a{number}", "b"] for number in range(n_rows) if number != open_row]
