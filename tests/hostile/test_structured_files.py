"""Structured files that once took time with the square of their size, and others of the kind: all are read in linear time."""

import csv
import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.conversion.limits import ConversionLimits
from graphrag_assets.conversion.process import ConversionProcess
from graphrag_assets.pipeline.formats import LoadOptions, Problem, _csv_records, read_records

MEGABYTE = 1_000_000
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
def test_a_megabyte_of_a_pattern_is_read_in_seconds(file_format: str, unit: bytes) -> None:
    data = (b"text\n" if file_format in ("csv", "tsv") else b"") + unit * (MEGABYTE // len(unit))
    started = time.process_time()
    found = list(read_records(f"a.{file_format}", data, LoadOptions(), ConversionProcess(ConversionLimits())))
    assert time.process_time() - started < 10  # some took an hour
    assert isinstance(found[0], Problem)


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
    found = [item.error if isinstance(item, Problem) else item[1] for item in _csv_records(text, ",")]
    assert found == (by_reading_again(text) if text else [])
