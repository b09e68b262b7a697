"""Structured files that once took time with the square of their size, and others of the kind: all are read in linear time.

Parquet files that expand are read in a process with limits.
"""

import csv
import functools
import io
import itertools
import time
from collections.abc import Callable

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.reading.formats import read_records
from graphrag_assets.reading.limits import ConversionLimits
from graphrag_assets.reading.process import ConversionProcess
from graphrag_assets.reading.source_records import LoadOptions, Problem, Record
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


@pytest.mark.extended
def test_a_parquet_file_above_the_limit_is_a_row(project, monkeypatch) -> None:
    monkeypatch.setattr(
        "graphrag_assets.assets.index_batch.ConversionLimits", functools.partial(ConversionLimits, memory_mb=100)
    )
    project.write("one/a.parquet", parquet(text=repeated("It broke. " * 100, 200_000)))
    project.write("one/b.txt", "It held.")
    project.index_all()
    ((source, error),) = project.sql("SELECT source, error FROM index_errors")
    assert (source, error) == ("one/a.parquet", "converting the parquet file took more than 100 MB of memory")
    assert project.sql("SELECT source FROM documents") == [("one/b.txt",)]


def by_reading_again(text: str) -> list[list[str] | str]:
    """Fields of records and messages of mismatches: after a mismatch, all that follows its first line is read again."""
    lines, begin, found = [line + "\n" for line in text.removesuffix("\n").split("\n")], 0, []
    while begin < len(lines):
        reader, read = csv.reader(itertools.islice(lines, begin, None), strict=True), 0
        try:
            for fields in reader:
                found += [fields] if fields else []
                read = reader.line_num
            break
        except csv.Error as error:
            first, last = begin + read + 1, begin + reader.line_num
            where = f"line {first}" if first >= last else f"lines {first} to {last}"
            found.append(f"the quotes in {where} do not match ({error})")
            begin = first
    return found


@given(st.text(alphabet='"",a\n', max_size=40))
def test_mismatched_quotes_are_reported_as_by_reading_again(text: str) -> None:
    found = [item.error if isinstance(item, Problem) else item[1] for item in csv_records(text, ",")]
    assert found == (by_reading_again(text) if text else [])
