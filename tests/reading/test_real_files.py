"""Files that nobody made for these tests, beside the project: what a person reads in them."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_assets.pipeline.batch import read_corpus
from graphrag_assets.pipeline.chunking import ChunkOptions
from graphrag_assets.reading.process import ConversionProcess
from graphrag_assets.reading.source_records import ConversionLimits, LoadOptions, Record
from graphrag_assets.store.input_files import InputFolder

DATA = Path(__file__).resolve().parents[3] / "shared/data"
pytestmark = [
    pytest.mark.skipif(not DATA.is_dir(), reason="the real files are not beside the project"),
    pytest.mark.extended,
]


def read(batch: str) -> tuple[dict[str, dict[str, Any]], pl.DataFrame, dict[str, str]]:
    """The documents by name of their file (of tables, the last row), text units, and errors by name."""
    with ConversionProcess(ConversionLimits()) as convert:
        files = InputFolder(str(DATA / "real-files")).files(batch)
        documents, units, errors = read_corpus(batch, files, LoadOptions(), ChunkOptions(size=300), convert)
    by_name = {Path(row["source"]).name: row for row in documents.iter_rows(named=True)}
    return by_name, units, {Path(row["source"]).name: row["error"] for row in errors.iter_rows(named=True)}


def test_pdf_files() -> None:
    documents, units, errors = read("pdf")
    paper = documents["multi-column-2p.pdf"]["text"]
    assert paper.index("First, ICT pretraining") > paper.index("Open-domain question answering relies")
    assert max(len(word) for word in re.findall(r"[^\W\d_]+", paper)) <= 22
    assert "efficient passage retrieval" in paper
    pages = units.filter(pl.col("document_id") == documents["multi_page.pdf"]["id"])["page"]
    assert set(pages) >= {1, 2, 3, 4}
    assert "لغة R وPython" in documents["right_to_left_01.pdf"]["text"]
    assert errors == {
        "password.pdf": "the file is protected by a password",
        "table-multi-row-column-cells.pdf": "the PDF has no text: its pages are pictures",
    }


def test_office_files() -> None:
    documents, units, errors = read("office")
    assert "after the external image" in documents["docx_external_image.docx"]["text"]
    assert "Monthly active users: 4.2M" in documents["powerpoint_unrecognized_shape.pptx"]["text"]
    assert [place["value"] for place in documents["powerpoint_malformed_pictures.pptx"]["places"]] == ["1", "2", "3"]
    rows = units.filter(pl.col("text").str.contains("first: 6"))
    assert rows.select("sheet", "text").rows() == [("Sheet1", "first: 6. second: 0. third: -6.")]
    assert documents["test_outlook_msg.msg"]["title"] == "Test Email Message"
    assert errors == {"password_protected.xlsx": "the file is protected by a password"}


def test_mails_web_pages_and_markup() -> None:
    mails, _, errors = read("mail")
    assert all(word in mails["fake-email-attachment.eml"]["raw_data"] for word in ("ada@", "fake-attachment.txt"))
    said = mails["message_without_ending"]["text"]
    assert said == "The pump runs again since Monday. Carla Muster changed the seal."
    assert errors == {"fake-encrypted.eml": "the mail has no text that can be read"}
    pages, _, _ = read("web")
    assert "Jump to navigation" not in pages["wiki_duck.html"]["text"]
    assert "found on every continent except Antarctica" in pages["wiki_duck.html"]["text"]
    assert pages["wiki_duck.html"]["title"].startswith("Duck")
    assert str(pages["v8-blog.html"]["document_date"]) == "2019-11-21"
    assert re.search(r"\| *Standards:", pages["example-steelJIS-datasheet.html"]["text"])
    markup, units, _ = read("markup")
    lines = markup["webvtt_example_01.vtt"]["text"].split("\n")
    assert all(line.startswith(("Roger Bingham: ", "Neil deGrasse Tyson: ")) for line in lines)
    assert units.filter(pl.col("document_id") == markup["webvtt_example_01.vtt"]["id"])["time"][0] == "00:00:11"
    assert markup["README.rst"]["title"] == markup["README.org"]["title"] == "Example Docs"


def test_quoted_mails_of_outlook_are_left_out() -> None:
    data = (DATA / "real-files/office/test_outlook_msg.msg").read_bytes()
    body = "This is the body of the test email message"
    quoting = "New.\r\n\r\nFrom: Ben\r\nSent: Mo\r\nTo: A\r\n\r\nOld?".ljust(len(body))
    with ConversionProcess(ConversionLimits()) as convert:
        (record,) = convert(data.replace(body.encode("utf-16-le"), quoting.encode("utf-16-le")), "msg", LoadOptions())
    assert isinstance(record, Record)
    assert (record.text, record.title) == ("New.", "Test Email Message")
