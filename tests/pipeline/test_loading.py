"""Documents from real files of every format, and an error row for every file or row that is not a document."""

import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.errors import RefusedFileError
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.loading import DOCUMENTS, INDEX_ERRORS, Loaded, LoadOptions, load_documents
from graphrag_assets.reading.binary_tables import read_parquet
from graphrag_assets.reading.process import ConversionProcess, conversion_process
from graphrag_assets.reading.source_records import ConversionLimits, Problem, Record
from graphrag_assets.store.input_files import InputFolder
from graphrag_assets.text.words import count_tokens

WHEN = datetime(1866, 7, 27, 8, 0, tzinfo=UTC)


@dataclass(frozen=True)
class InMemoryFile:
    """A file as the loader sees it."""

    path: str
    content: bytes
    modified: datetime = WHEN
    refused: RefusedFileError | None = None

    @property
    def size(self) -> int:
        return len(self.content)

    def read(self) -> bytes:
        return self.content


class WithoutProcess(ConversionProcess):
    """Reads Parquet in this process, which is faster for many small files."""

    def __call__(self, data: bytes, file_format: str, options: LoadOptions) -> list[Record | Problem]:
        if file_format == "parquet":
            return list(read_parquet(data, options))
        return super().__call__(data, file_format, options)


WITHOUT_PROCESS = WithoutProcess(ConversionLimits())


def load(root: Path, files: Mapping[str, str | bytes], **options: Any) -> Loaded:
    """Write `files` into the batch "b" of an input folder and load it."""
    for name, content in files.items():
        file = root / "b" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    convert = conversion_process(ConversionLimits())
    return load_documents("b", InputFolder(str(root)).files("b"), LoadOptions(**options), convert)


def texts(loaded: Loaded) -> list[str]:
    return loaded.documents["text"].to_list()


def only_error(loaded: Loaded) -> dict[str, Any]:
    assert loaded.errors.schema == INDEX_ERRORS
    (row,) = loaded.errors.iter_rows(named=True)
    assert row["batch"] == "b"
    assert row["stage"] == "load"
    assert row["hint"]
    return row


# --- documents ------------------------------------------------------------------------------------------


def test_a_text_file_is_one_document(tmp_path: Path) -> None:
    load(tmp_path, {"Great Eastern.txt": "She sailed.\n  She came back.\n"})
    os.utime(tmp_path / "b/Great Eastern.txt", (1_000_000_000, 1_000_000_000))
    loaded = load(tmp_path, {})
    (row,) = loaded.documents.iter_rows(named=True)
    assert loaded.documents.schema == DOCUMENTS
    assert row == {
        "id": stable_id("document", "b/Great Eastern.txt", ""),
        "batch": "b",
        "source": "b/Great Eastern.txt",
        "row_number": None,
        "title": "Great Eastern",
        "text": "She sailed.\n  She came back.\n",
        "creation_date": "2001-09-09T01:46:40+00:00",
        "document_date": None,
        "raw_data": None,
        "content_hash": stable_id("content", "Great Eastern", "She sailed.\n  She came back.\n", None),
        "format": "txt",
        "encoding": "utf-8",
        "text_column": None,
        "title_column": None,
        "language": "en",
        "n_tokens": count_tokens(["She sailed.\n  She came back.\n"])[0],
        "places": [],
    }
    assert loaded.errors.height == 0


ROWS = [
    {"id": "f", "title": "Field", "text": "Cyrus Field.", "year": 1819},
    {"id": "t", "title": "Thomson", "text": "William Thomson.", "year": 1824},
]


def structured(file_format: str) -> bytes:
    buffer = io.BytesIO()
    getattr(pl.DataFrame(ROWS), {"jsonl": "write_ndjson"}.get(file_format, f"write_{file_format}"))(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("file_format", ["csv", "jsonl", "parquet"])
def test_a_row_of_a_structured_file_is_one_document(tmp_path: Path, file_format: str) -> None:
    source = f"people.{file_format}"
    loaded = load(tmp_path, {source: structured(file_format)})
    year = '"1819"' if file_format == "csv" else "1819"
    assert loaded.errors.height == 0
    assert texts(loaded) == ["Cyrus Field.", "William Thomson."]
    assert loaded.documents["title"].to_list() == ["Field", "Thomson"]
    assert loaded.documents["row_number"].to_list() == [1, 2]
    assert loaded.documents["raw_data"][0] == f'{{"year": {year}}}'
    assert loaded.documents["id"][0] == stable_id("document", f"b/{source}", "f")


def test_columns_are_options_and_the_others_are_raw_data(tmp_path: Path) -> None:
    csv = "body,headline,key,text\nIt broke.,News,7,not this\n"
    loaded = load(tmp_path, {"a.csv": csv}, text_column="body", title_column="headline", id_column="key").documents
    assert loaded.select("text", "title", "raw_data").row(0) == ("It broke.", "News", '{"text": "not this"}')
    assert loaded["id"][0] == stable_id("document", "b/a.csv", "7")


def test_raw_data_is_valid_json_of_any_type(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "text": ["It broke."],
            "when": [datetime(1858, 9, 3, 12, 30)],
            "day": [date(1858, 9, 3)],
            "cost": [Decimal("350000.50")],
            "ratio": [float("nan")],
            "raw": [b"\xff\x00a"],
            "ships": [["Niagara", "Agamemnon"]],
            "place": [{"lat": 51.9, "name": None}],
        }
    )
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    (raw,) = load(tmp_path, {"a.parquet": buffer.getvalue()}).documents["raw_data"]
    assert json.loads(raw) == {
        "when": "1858-09-03T12:30:00",
        "day": "1858-09-03",
        "cost": "350000.50",
        "ratio": None,
        "raw": "\ufffd\ufffda",
        "ships": ["Niagara", "Agamemnon"],
        "place": {"lat": 51.9, "name": None},
    }
    assert list(json.loads(raw)) == sorted(json.loads(raw))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["a.txt", "a.csv"])
def test_byte_order_marks_are_understood(tmp_path: Path, encoding: str, name: str) -> None:
    content = "text\nCâble 电缆\n" if name.endswith("csv") else "Câble 电缆"
    assert texts(load(tmp_path, {name: content.encode(encoding)})) == ["Câble 电缆"]


def test_nul_and_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    line = r'{"text": "a\u0000b\ud800c\ud83d\ude00", "title": "\udfff", "x\u0000": ["\ud800"]}'
    row = load(tmp_path, {"a.jsonl": line}).documents.row(0, named=True)
    assert row["text"] == "a\ufffdb\ufffdc😀"
    assert row["title"] == "\ufffd"
    assert json.loads(row["raw_data"]) == {"x\ufffd": ["\ufffd"]}


@given(data=st.binary(max_size=200), ending=st.sampled_from(["txt", "md", "csv", "tsv", "json", "jsonl", "parquet"]))
def test_arbitrary_bytes_never_raise(data: bytes, ending: str) -> None:
    loaded = load_documents("b", [InMemoryFile(f"b/x.{ending}", data)], LoadOptions(), WITHOUT_PROCESS)
    assert loaded.documents.height + loaded.errors.height > 0


# --- files that are no documents ------------------------------------------------------------------------


def test_a_setting_names_the_encoding_of_what_is_not_utf8(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"a.txt": "café", "b.txt": "café".encode("cp850"), "c.txt": "café".encode("utf-16")}
    loaded = load(tmp_path, files, text_encoding="cp850")
    assert texts(loaded) == ["café"] * 3
    assert loaded.documents["encoding"].to_list() == ["utf-8", "cp850", "utf-16-le"]
    wide = load(tmp_path / "wide", {"a.txt": "café".encode("utf-16-le")}, text_encoding="utf-16-le")
    assert texts(wide) == ["café"]


def test_each_file_without_text_is_a_row_and_does_not_stop_the_others(tmp_path: Path) -> None:
    files = {"x/a.mp3": b"ID3", "x/b.mp3": b"ID3", "x/c.png": b"\x89PNG", "y.csv": b"", "z.dat": b"\0\1\2"}
    loaded = load(tmp_path, {**files, "x/good.txt": "It held."})
    errors = loaded.errors
    assert texts(loaded) == ["It held."]
    assert errors.select("source", "error").rows() == [
        ("b/x/a.mp3", "audio files are not indexed"),
        ("b/x/b.mp3", "audio files are not indexed"),
        ("b/x/c.png", "picture files are not indexed"),
        ("b/y.csv", "the file is empty"),
        ("b/z.dat", "binary files are not indexed"),
    ]
    assert all(errors["hint"])


# --- rows that are no documents -------------------------------------------------------------------------


def test_a_malformed_json_line_has_its_line_number_and_the_others_load(tmp_path: Path) -> None:
    lines = '{"text": "One."}\n\n{"text": "Two."\n"three"\n{"text": "Four."}\n'
    loaded = load(tmp_path, {"a.jsonl": lines})
    assert texts(loaded) == ["One.", "Four."]
    assert loaded.documents["row_number"].to_list() == [1, 5]
    assert loaded.errors["row_number"].to_list() == [3, 4]
    assert loaded.errors["error"].to_list() == [
        "malformed JSON: Expecting ',' delimiter at column 16",
        "a document must be a JSON object, not a string",
    ]


@pytest.mark.parametrize("empty", ["null", '"  "', "NaN"])
def test_a_row_without_text_is_an_error_and_the_others_load(tmp_path: Path, empty: str) -> None:
    loaded = load(tmp_path, {"a.jsonl": f'{{"text": "One."}}\n{{"text": {empty}, "n": 2}}\n'})
    assert texts(loaded) == ["One."]
    assert (only_error(loaded)["row_number"], only_error(loaded)["error"]) == (2, "no text in column 'text'")


def test_the_second_row_with_an_id_is_an_error(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"a.csv": "id,text\nk,One.\nl,Two.\nk,Three.\n"})
    assert texts(loaded) == ["One.", "Two."]
    assert (only_error(loaded)["row_number"], only_error(loaded)["error"]) == (
        3,
        "the id 'k' is already used by row 1",
    )


def test_a_row_with_too_many_fields_is_an_error_and_one_with_too_few_is_filled_up(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"a.csv": "text,n\nOne.,1\nTwo, too.,2\n\nThree\nFour.,4\n"})
    assert texts(loaded) == ["One.", "Three", "Four."]
    assert loaded.documents["row_number"].to_list() == [1, 3, 4]
    assert only_error(loaded)["error"] == "line 3 has 3 fields, the header has 2"


def test_quoted_line_breaks_quotes_and_delimiters_are_text(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"a.csv": '\ufefftext,n\r\n"One, ""two""\r\n\r\nthree",1\r\nFour,2'})
    assert texts(loaded) == ['One, "two"\n\nthree', "Four"]
    assert loaded.errors.height == 0
