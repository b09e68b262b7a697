"""Office documents, books and markup with kreuzberg: Markdown text, title, date, slides, and the rows of sheets."""

import io
import json
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, cast

import kreuzberg
from kreuzberg import ExtractionConfig, ExtractionResult, PageConfig
from lxml import etree

from graphrag_assets.reading import latex
from graphrag_assets.reading.decoding import decode
from graphrag_assets.reading.headings import plain_words
from graphrag_assets.reading.properties import stated
from graphrag_assets.reading.source_records import WHOLE_ROW, LoadOptions, Place, Problem, Record, metadata_json
from graphrag_assets.reading.tables import Table, sheet_records, table_records
from graphrag_assets.reading.xml_files import read_xml

_TYPES = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xls": "application/vnd.ms-excel",
    "doc": "application/msword",
    "ppt": "application/vnd.ms-powerpoint",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "rtf": "application/rtf",
    "epub": "application/epub+zip",
    "ipynb": "application/x-ipynb+json",
    "tex": "application/x-latex",
    "org": "text/x-org",
    "xml": "application/xml",
    "msg": "application/vnd.ms-outlook",
    "bib": "application/x-bibtex",
}
_SHEETS = ("xlsx", "xls", "ods")
_SLIDE = re.compile(r"\s*⟪slide (\d+)⟫\s*")
# Nothing is cached, recognized or downloaded: the text that the file itself holds is what we index.
_CONFIG = ExtractionConfig(
    use_cache=False,
    enable_quality_processing=False,
    disable_ocr=True,  # type: ignore[call-arg]  # missing in the stubs
    output_format="markdown",
    pages=PageConfig(insert_page_markers=True, marker_format="\n\n⟪slide {page_num}⟫\n\n"),
)
# The lines of a mail tell what it quotes; as Markdown they are joined.
_PLAIN = ExtractionConfig(
    use_cache=False,
    enable_quality_processing=False,
    disable_ocr=True,  # type: ignore[call-arg]
    output_format="plain",
)
_MAIL_FIELDS = re.compile(r"\A(?:(?:Subject|From|To|CC|BCC|Date|Attachments): [^\n]*\n)+", re.IGNORECASE)
_PICTURE = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)")
_LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\((?:[^()\n]|\([^()\n]*\))*\)")
_OFFICE = re.compile("officedocument|opendocument|ms-(?:excel|powerpoint|word)|msword|epub|rtf|iwork|hwp")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_FIELD = re.compile(r"\*\*[^*\n]{1,30}\*\*: [^\n]*")
_BIB_FIELDS = ("entry_type", "key", "title", "author", "year")
_PASSWORD = Problem("the file is protected by a password", "Save a copy without the password, and index that.")
_NO_TEXT = Problem("no text was found in the file", "If it holds pictures of text, recognize their text (OCR) first.")
_PARAGRAPHS = ("p", "h")
_PAGE = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}page"
_NOTES_BODY = "//*[local-name()='sp'][.//*[local-name()='ph'][@type='body']]//*[local-name()='p']"
_TEXT_NODES = ("t", "span", "a")


def read_office(data: bytes, file_format: str, column: str, options: LoadOptions) -> list[Record | Problem]:
    """Return the documents of a file: one, or one for each row of a workbook's sheets.

    Where kreuzberg cannot read a part, such as a picture, the paragraphs of the package are read without it.

    Raises:
        kreuzberg.KreuzbergError: the file is damaged.
    """
    if file_format == "xml":
        return read_xml(data)
    if file_format == "rst":
        from graphrag_assets.reading.rst import read_rst  # loads docutils, which no other format needs

        return read_rst(decode(data).text)
    if file_format == "tex":
        data = latex.prepared(decode(data).text).encode()
    if file_format == "ipynb":
        data = _notebook(data)
    try:
        config = _PLAIN if file_format == "msg" else _CONFIG
        result = kreuzberg.extract_bytes_sync(data, _TYPES[file_format], config)
    except kreuzberg.KreuzbergError as error:
        if "password" in str(error).lower():
            return [_PASSWORD]
        paragraphs = "\n\n".join(_paragraphs(data))
        text, places = _with_slides(paragraphs, *(_slides(data) if paragraphs and file_format == "pptx" else ()))
        if not text:
            raise
        return [Record(text, places=places)]
    if file_format in _SHEETS:
        names = result.metadata.get("sheet_names", [])
        tables = ((names[table.page_number - 1], table.cells) for table in result.tables)
        return list(sheet_records(tables, column, options))
    if file_format == "bib":
        entries: list[dict[str, str]] = cast(Any, result.metadata).get("entries", [])
        names = sorted({name for entry in entries for name in entry}, key=_place_in_entry)
        rows = [{name: entry[name] for name in names if name in entry} for entry in entries]
        table = Table(names, list(enumerate(rows, start=1)))
        return list(table_records(table, WHOLE_ROW, options))
    text, places = _text(result.content), ()
    if file_format == "pptx":
        text, places = _with_slides(text, *_slides(data))
    if file_format == "odp":
        text, places = _with_slides("\n\n".join(_paragraphs(data)))
    if file_format == "msg":
        from graphrag_assets.reading.mail import latest_message  # loads trafilatura, which no other format needs

        text = latest_message(_MAIL_FIELDS.sub("", result.content))
    if not text.strip():
        return [_NO_TEXT]
    return [_record(text, result, places)]


def _place_in_entry(name: str) -> tuple[int, str]:
    """Order the fields of BibTeX, which kreuzberg returns in another order each time."""
    return (_BIB_FIELDS.index(name) if name in _BIB_FIELDS else len(_BIB_FIELDS)), name


def _notebook(data: bytes) -> bytes:
    """Return a notebook of nbformat 3, which has sheets of cells, as one of nbformat 4."""
    notebook = json.loads(data)
    if "worksheets" not in notebook:
        return data
    cells = [cell for sheet in notebook.pop("worksheets") for cell in sheet.get("cells", ())]
    for cell in cells:
        if cell.get("cell_type") == "heading":
            cell |= {"cell_type": "markdown", "source": f"{'#' * cell.get('level', 1)} {''.join(cell['source'])}"}
        elif cell.get("cell_type") == "code":
            outputs = [{"output_type": "stream", "text": one.get("text", "")} for one in cell.get("outputs", ())]
            cell |= {"source": cell.get("input", ""), "outputs": outputs}
    return json.dumps({**notebook, "nbformat": 4, "nbformat_minor": 0, "cells": cells}).encode()


def _record(text: str, result: ExtractionResult, places: tuple[Place, ...]) -> Record:
    about: Mapping[str, Any] = result.metadata
    authors = about.get("authors") or about.get("created_by")
    # In office documents and books, the day of creation is often that of a template or an export.
    created = None if _OFFICE.search(result.mime_type) else about.get("created_at")
    date = str(created or about.get("date") or "")
    iso = _ISO_DATE.search(date)
    return Record(
        text,
        stated(about.get("title") or (about.get("subject") if about.get("format_type") == "email" else None)),
        date=iso[0] if iso else date or None,
        language=about.get("language"),
        raw_data=metadata_json(
            {
                "author": authors,
                "subject": about.get("subject"),
                "keywords": about.get("keywords"),
                "from": about.get("from_email"),
                "to": about.get("to_emails"),
                "cc": about.get("cc_emails"),
                "attachments": about.get("attachments"),
            }
        ),
        places=places,
    )


def _text(markdown: str) -> str:
    """Return the Markdown without pictures, targets of links, escapes, and the fields that are metadata."""
    text = _SLIDE.sub(r"\n\n⟪slide \1⟫\n\n", _without_fields(markdown))
    return re.sub(r"\n{3,}", "\n\n", plain_words(text, (_PICTURE, ""), (_LINK, r"\1"))).strip()


def _without_fields(markdown: str) -> str:
    """Drop the paragraphs like **Author**: Ada that stand before the text, but for headings between them."""
    paragraphs = markdown.split("\n\n")
    kept: list[str] = []
    for number, paragraph in enumerate(paragraphs):
        if _FIELD.fullmatch(paragraph.strip()):
            continue
        kept.append(paragraph)
        if not paragraph.startswith("#"):
            return "\n\n".join([*kept, *paragraphs[number + 1 :]])
    return "\n\n".join(kept)


def _with_slides(
    text: str, shown: Mapping[str, int] = {}, notes: Mapping[str, str] = {}
) -> tuple[str, tuple[Place, ...]]:
    """Return the text without the markers of slides, and where each slide begins.

    `shown`: the place of a slide in the presentation, by its marker; `notes`: of its speaker.
    """
    first, *rest = _SLIDE.split(text)
    slides = zip(rest[::2], rest[1::2], strict=True)
    whole, places = first.strip(), []
    for place, marker, slide in sorted((shown.get(marker, int(marker)), marker, slide) for marker, slide in slides):
        words = "\n\n".join(filter(None, (slide.strip(), notes.get(marker))))
        if words:
            whole += "\n\n" if whole else ""
            places.append(Place(len(whole), "slide", str(place)))
            whole += words
    return whole, tuple(places)


def _slides(data: bytes) -> tuple[dict[str, int], dict[str, str]]:
    """Return places and speaker's notes of the slides of a presentation, by the numbers of kreuzberg.

    It counts the parts in the order of their names, which is not that of the presentation.
    """
    shown, notes = {}, {}
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        slides = _related(package, "ppt/presentation.xml", "slide")
        by_name = sorted(slides, key=lambda slide: (len(slide), slide))
        for place, slide in enumerate(slides, start=1):
            number = str(by_name.index(slide) + 1)
            shown[number] = place
            for part in _related(package, slide, "notesSlide"):
                body = etree.fromstring(package.read(part), _parser()).xpath(_NOTES_BODY)
                paragraphs = [" ".join("".join(_runs(node)).split()) for node in body]
                if text := "\n".join(filter(None, paragraphs)):
                    notes[number] = f"Notes: {text}"
    return shown, notes


def _related(package: zipfile.ZipFile, part: str, kind: str) -> list[str]:
    """Return the parts of a kind that a part of an Office Open XML package refers to, in the order of its own text."""
    folder, _, name = part.rpartition("/")
    relations = f"{folder}/_rels/{name}.rels"
    if not {part, relations} <= {*package.namelist()}:
        return []
    targets = {
        relation.get("Id"): posixpath.normpath(posixpath.join("/", folder, str(relation.get("Target")))).lstrip("/")
        for relation in etree.fromstring(package.read(relations), _parser())
        if str(relation.get("Type")).endswith(f"/{kind}")
    }
    named = (value for node in etree.fromstring(package.read(part), _parser()).iter() for value in node.attrib.values())
    order = [targets.pop(value) for value in map(str, named) if value in targets]
    return [target for target in (*order, *targets.values()) if target in package.namelist()]


def _parser() -> etree.XMLParser:
    return etree.XMLParser(resolve_entities=False, no_network=True, recover=True)


def _paragraphs(data: bytes) -> Iterator[str]:
    """Yield the paragraphs of an Office Open XML or OpenDocument package, in the order of its parts."""
    try:
        package = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile:
        return
    with package:
        names = [name for name in package.namelist() if _PART.fullmatch(name)]
        for name in sorted(names, key=lambda name: (len(name), name)):
            if slide := _SLIDE_PART.fullmatch(name):
                yield f"⟪slide {slide[1]}⟫"
            n_slides = 0
            root = etree.fromstring(package.read(name), _parser())
            for node in root.iter() if root is not None else ():
                if node.tag == _PAGE:
                    n_slides += 1
                    yield f"⟪slide {n_slides}⟫"
                if isinstance(node.tag, str) and etree.QName(node).localname in _PARAGRAPHS:
                    text = " ".join("".join(_runs(node)).split())
                    if text:
                        yield text


def _runs(paragraph: etree._Element) -> Iterator[str]:
    for node in paragraph.iter():
        if isinstance(node.tag, str) and etree.QName(node).localname in (*_TEXT_NODES, *_PARAGRAPHS):
            yield node.text or ""
            yield node.tail or "" if node is not paragraph and etree.QName(node).localname != "t" else ""


_SLIDE_PART = re.compile(r"ppt/slides/slide(\d+)\.xml")
_PART = re.compile(rf"word/document\.xml|{_SLIDE_PART.pattern}|content\.xml")
