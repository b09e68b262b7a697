"""Which dates are read, and where from."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from graphrag_assets.reading.document_dates import date_of, in_head, in_name
from graphrag_assets.reading.text_files import split_front_matter
from tests.pipeline.test_loading import load

DAY = date(2021, 4, 3)


STATED = {
    "2021-04-03T23:30:00-08:00": DAY,  # the day as it is written
    "20210403": DAY,
    "Apr. 3rd, 2021": DAY,
    "Sat, 03 Apr 2021 10:00:00 GMT": DAY,
    "3.4.2021": DAY,
    "13/04/2021": date(2021, 4, 13),
    "04/04/2021": date(2021, 4, 4),
    "1866-07": date(1866, 7, 1),
    **dict.fromkeys(("03/04/2021", "1866-13", "2021-02-30", "3 Apr 21", "1617408000", "yesterday", "50 BC", ""), None),
}
HEADS = {
    "Kestrel Ltd, 12 Foundry Lane, Stennis\n3 April 2021\n\nTo Marlow Ltd\n\nYour reviewer errs.": DAY,
    "Harwick, den 3. April 2021\n\nSehr geehrte Frau Marsh": DAY,
    "Paris, le 3 avril 2021\n\nMadame": DAY,
    "# Report on the fan\n\n**Date: April 3, 2021**\n\nThe fan stopped.": DAY,
    "Due: 3 April 2021\n\nThe fan.": None,
    "Diary\n\n3 April 2021\n\nRain.\n\n4 April 2021\n\nSun.": None,  # of several days
    "line\n" * 20 + "3 April 2021\n": None,
}
NAMES = {
    "2021-04-03-notes.md": DAY,
    "minutes_20210403.txt": DAY,
    "20211345 then 2021.04.03.txt": DAY,
    "120210403.txt": None,
    "2021-04-03/notes.txt": None,
}


@pytest.mark.parametrize(("read", "expected"), [(date_of, STATED), (in_head, HEADS), (in_name, NAMES)])
def test_a_date_is_read_where_it_is_certain(read: Callable, expected: dict[str, date | None]) -> None:
    assert {text: read(text) for text in expected} == expected


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("---\ndate: 2021-02-30\ntags: [a]\n---\nText", {"date": "2021-02-30", "tags": ["a"]}),
        ("---\nonly words\n---\n", {}),
        ("---\na: [\n---\n", {}),
        ("Text\n---\ndate: 1\n---\n", {}),
    ],
)
def test_front_matter_is_the_yaml_that_a_text_begins_with(text: str, fields: dict) -> None:
    assert split_front_matter(text)[0] == fields


def dates(root: Path, files: dict[str, str | bytes], **options: str) -> list[date | None]:
    return load(root, files, **options).documents["document_date"].to_list()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.md": "---\ndate: 2021-04-03\n---\n# A\n"}, DAY),
        ({"a.txt": "---\nDate: x\ndocument_date: 3 April 2021\n---\nText"}, DAY),
        ({"2020-01-01.md": "---\ndate: 2021-04-03\n---\n# A\n"}, DAY),
        ({"2021-04-03.md": "---\ndate: soon\n---\n# A\n"}, DAY),
        ({"a.csv": "text,date,document_date\nIt held.,2020-01-01,2021-04-03\n"}, DAY),
        ({"2021-04-03.csv": "text,date\nIt held.,\n"}, DAY),
        ({"a.jsonl": json.dumps({"text": "It held.", "metadata": {"date": "2021-04-03"}})}, DAY),
    ],
)
def test_the_first_place_with_a_date_gives_it(tmp_path: Path, files: dict, expected: date | None) -> None:
    assert dates(tmp_path, files) == [expected]


def test_a_meta_tag_of_a_web_page_has_its_date(tmp_path: Path) -> None:
    metas = '<meta name="date" content="soon"><meta NAME="DC.Date" content="3 April 2021">'
    assert dates(tmp_path, {"a.html": f"<html><head>{metas}</head><body><p>It held.</p></body></html>"}) == [DAY]


def test_a_named_column_without_a_date_is_an_error_and_the_document_is_indexed(tmp_path: Path) -> None:
    rows = "text,sent,date\nOne.,2021-04-03,2020-01-01\nTwo.,03/04/2021,2020-01-01\nThree.,,2020-01-01\n"
    loaded = load(tmp_path, {"a.csv": rows}, date_column="sent")
    assert loaded.documents["document_date"].to_list() == [DAY, None, None]
    assert loaded.errors.select("row_number", "stage", "error").rows() == [
        (2, "date", "sent is '03/04/2021', which is ambiguous or not a date")
    ]


def test_times_of_parquet_files_do_not_depend_on_the_zone_of_the_machine(tmp_path: Path) -> None:
    time = datetime(2020, 1, 1, tzinfo=UTC)
    pl.DataFrame({"text": ["It held."], "noted": [time]}).write_parquet(tmp_path / "a.parquet")
    code = f"""if True:
        from graphrag_assets.reading.source_records import LoadOptions
        from graphrag_assets.reading.binary_tables import read_parquet
        with open({str(tmp_path / "a.parquet")!r}, "rb") as file:
            print(*(record.metadata for record in read_parquet(file.read(), LoadOptions())))
    """
    environment = {**os.environ, "TZ": "America/New_York"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'noted': '2020-01-01T00:00:00+00:00'}"
