"""A small file of each format, with links to a server in whatever form the format has for them."""

import io
import json
from pathlib import Path

import polars as pl

from tests.reading.packages import (
    HOST,
    docx,
    old_file,
    open_document,
    paragraph,
    pdf,
    presentation,
    sheet_row,
    workbook,
    zipped,
)

TEXT = "Ida Holm mended the pump of Ulm in 1866."
_REAL = Path(__file__).resolve().parents[3] / "shared/data/real-files/office"

PDF = pdf([(9, 9, 9, TEXT)]).decode()


def _parquet() -> bytes:
    file = io.BytesIO()
    pl.DataFrame({"text": [TEXT]}).write_parquet(file)
    return file.getvalue()


_MAIL = f"From: Ida <ida@example.org>\nSubject: Pump\nMIME-Version: 1.0\nContent-Type: text/html\n\n<p>{TEXT}</p><img src='{HOST}/a.png'>\n"
_CAPTION = f"00:00:01.000 --> 00:00:02.000\n{TEXT}\n"
SMALL: dict[str, bytes] = {
    "txt": TEXT.encode(),
    "md": f"---\ntitle: Pump\n---\n{TEXT} ![a]({HOST}/a.png)\n".encode(),
    "adoc": f"= Pump\n\n{TEXT} image::{HOST}/a.png[a]\n\ninclude::{HOST}/b.adoc[]\n".encode(),
    "csv": f"text,link\n{TEXT},{HOST}\n".encode(),
    "tsv": f"text\tlink\n{TEXT}\t{HOST}\n".encode(),
    "json": json.dumps([{"text": TEXT, "link": HOST}]).encode(),
    "jsonl": json.dumps({"text": TEXT, "link": HOST}).encode(),
    "parquet": _parquet(),
    "vtt": f"WEBVTT\n\n{_CAPTION}".encode(),
    "srt": f"1\n{_CAPTION.replace('.', ',')}".encode(),
    "html": f"<html><head><base href='{HOST}'><link rel=stylesheet href='{HOST}/a.css'></head><body><p>{TEXT}</p>"
    f"<img src='{HOST}/a.png'><iframe src='{HOST}'></iframe></body></html>".encode(),
    "eml": _MAIL.encode(),
    "mht": _MAIL.encode(),
    "ics": f"BEGIN:VEVENT\nSUMMARY:{TEXT}\nATTACH:{HOST}/a.png\nEND:VEVENT\n".encode(),
    "vcf": f"BEGIN:VCARD\nFN:Ida Holm\nNOTE:{TEXT}\nPHOTO;VALUE=uri:{HOST}/a.png\nEND:VCARD\n".encode(),
    "mbox": f"From ida@example.org Tue Mar  5 09:12:00 2024\n{_MAIL}".encode(),
    "pdf": PDF.encode(),
    "docx": docx(paragraph(TEXT)),
    "pptx": presentation((TEXT, "Ida paid.")),
    "xlsx": workbook(sheet_row(1, "text") + sheet_row(2, TEXT)),
    "odt": open_document("text", f"<text:p>{TEXT}</text:p>"),
    "ods": open_document(
        "spreadsheet",
        '<table:table table:name="Pumps">'
        + "".join(
            f"<table:table-row><table:table-cell office:value-type='string'><text:p>{cell}</text:p></table:table-cell></table:table-row>"
            for cell in ("text", TEXT)
        )
        + "</table:table>",
    ),
    "odp": open_document("presentation", f"<draw:page><text:p>{TEXT}</text:p></draw:page>"),
    "rtf": f'{{\\rtf1\\ansi {TEXT} {{\\field{{\\*\\fldinst INCLUDEPICTURE "{HOST}/a.png"}}}}}}'.encode(),
    "epub": zipped(
        mimetype="application/epub+zip",
        **{
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="a.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
            "a.opf": '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata/><manifest>'
            '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>',
            "a.xhtml": f'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>{TEXT}</p><img src="{HOST}/a.png"/></body></html>',
        },
    ),
    "ipynb": json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"kernelspec": {"language": "python"}},
            "cells": [{"cell_type": "markdown", "metadata": {}, "source": f"{TEXT} ![a]({HOST}/a.png)"}],
        }
    ).encode(),
    "tex": f"\\documentclass{{article}}\n\\begin{{document}}\n{TEXT}\n\\input{{{HOST}/a}}\n\\end{{document}}\n".encode(),
    "rst": f"Pump\n====\n\n{TEXT}\n\n.. image:: {HOST}/a.png\n\n.. csv-table::\n   :url: {HOST}/a.csv\n".encode(),
    "org": f"#+TITLE: Pump\n{TEXT} [[{HOST}/a.png]]\n#+INCLUDE: {HOST}\n".encode(),
    "xml": f'<!DOCTYPE a SYSTEM "{HOST}/a.dtd" [<!ENTITY b SYSTEM "{HOST}/b">]><a><p>{TEXT} &b;</p></a>'.encode(),
    "bib": f"@book{{a, title={{Pump}}, note={{{TEXT}}}, url={{{HOST}}}}}".encode(),
}  # fmt: skip
"""By format; those that nobody can write by hand are `BINARY`."""
BINARY: dict[str, bytes] = {
    "doc": old_file("letter.doc"),
    "ppt": old_file("talk.ppt"),
    **{name: files[0].read_bytes() for name in ("xls", "msg") if (files := sorted(_REAL.glob(f"*.{name}")))},
}
"""Of the formats before 2007; those of `_REAL` where it is beside the project."""
