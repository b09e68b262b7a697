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


def read(batch: str, root: str = "real-files") -> tuple[dict[str, dict[str, Any]], pl.DataFrame, dict[str, str]]:
    """The documents by name of their file (of tables, the last row), text units, and errors by name."""
    with ConversionProcess(ConversionLimits()) as convert:
        files = InputFolder(str(DATA / root)).files(batch)
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
    rows = units.join(pl.DataFrame({"n": [1]}), how="cross").filter(pl.col("text").str.contains("first: 6"))
    assert rows.select("sheet", "text").rows() == [("Sheet1", "first: 6. second: 0. third: -6.")]
    assert documents["test_outlook_msg.msg"]["title"] == "Test Email Message"
    assert errors == {"password_protected.xlsx": "the file is protected by a password"}


def test_mails() -> None:
    documents, _, errors = read("mail")
    mail = documents["fake-email-attachment.eml"]
    assert mail["title"] == "Fake email with attachment"
    assert str(mail["document_date"]) == "2022-12-23"
    assert all(word in mail["raw_data"] for word in ("ada@example.org", "fake-attachment.txt"))
    assert documents["mime-word-encoded-subject.eml"]["title"] == "Simple email with ☸☿ Unicode subject"
    said = documents["message_without_ending"]["text"]
    assert said == "The pump runs again since Monday. Carla Muster changed the seal."
    assert errors == {"fake-encrypted.eml": "the mail has no text that can be read"}


def test_web_pages() -> None:
    documents, _, _ = read("web")
    assert "Jump to navigation" not in documents["wiki_duck.html"]["text"]
    assert "found on every continent except Antarctica" in documents["wiki_duck.html"]["text"]
    assert documents["wiki_duck.html"]["title"].startswith("Duck")
    assert str(documents["v8-blog.html"]["document_date"]) == "2019-11-21"
    assert documents["v8-blog.html"]["title"].startswith("Outside the web")
    assert re.search(r"\| *Standards:", documents["example-steelJIS-datasheet.html"]["text"])


def test_subtitles_and_markup() -> None:
    documents, units, _ = read("markup")
    lines = documents["webvtt_example_01.vtt"]["text"].split("\n")
    assert all(line.startswith(("Roger Bingham: ", "Neil deGrasse Tyson: ")) for line in lines)
    assert "-->" not in documents["webvtt_example_01.vtt"]["text"]
    assert units.filter(pl.col("document_id") == documents["webvtt_example_01.vtt"]["id"])["time"][0] == "00:00:11"
    assert documents["README.rst"]["title"] == documents["README.org"]["title"] == "Example Docs"


def test_columns_of_a_page_are_read_one_after_the_other() -> None:
    documents, _, _ = read("pdf-columns", "failing")
    text = documents["harbour.pdf"]["text"]
    assert "built a new harbour in the year 1998 because the old\nquay" in text
    assert text.index("In summer the work began with piles.") < text.index("After two years the quay was ready")
    assert "1998 4 120 900" in text


def test_quoted_mails_of_outlook_are_left_out() -> None:
    data = (DATA / "real-files/office/test_outlook_msg.msg").read_bytes()
    body = "This is the body of the test email message"
    quoting = "New.\r\n\r\nFrom: Ben\r\nSent: Mo\r\nTo: A\r\n\r\nOld?".ljust(len(body))
    with ConversionProcess(ConversionLimits()) as convert:
        (record,) = convert(
            data.replace(body.encode("utf-16-le"), quoting.encode("utf-16-le")), "msg", "text", LoadOptions()
        )
    assert isinstance(record, Record)
    assert (record.text, record.title) == ("New.", "Test Email Message")
