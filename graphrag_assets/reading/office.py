"""Office files and books: docx with mammoth, OpenDocument, slides and epub from their XML."""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import mammoth
from lxml import etree
from lxml import html as lxml_html

from graphrag_assets.reading.markdown import local_name, markdown, parse_xml, table_of
from graphrag_assets.reading.source_records import PASSWORD, Problem, Record, document, slides_record

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_ALTERNATE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}AlternateContent"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_HEADINGS = "\n".join(f"p.Heading{level} => h{level}:fresh" for level in range(1, 7))
_STYLES = f"{_HEADINGS}\np[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"
_FURNITURE = ("dt", "ftr", "hdr", "sldNum")


def _properties(package: zipfile.ZipFile, part: str) -> dict[str, Any]:
    """Return title, author, subject and keywords of a package, by the elements of Dublin Core."""
    if part not in package.namelist():
        return {}
    names = {"creator": "author", "initial-creator": "author", "keyword": "keywords"}
    values: dict[str, list[str]] = {}
    for node in parse_xml(package.read(part)).iter():
        if words := " ".join((node.text or "").split()):
            values.setdefault(names.get(local_name(node), local_name(node)), []).append(words)
    about: dict[str, Any] = {name: values[name][0] for name in ("title", "author", "subject") if name in values}
    return about | {"keywords": ", ".join(values["keywords"])} if "keywords" in values else about


# --- Word -----------------------------------------------------------------------------------------------


def read_docx(data: bytes) -> Iterator[Record | Problem]:
    """Yield the one document of a Word file; its comments and hidden runs are left out."""
    n_hidden, prepared = 0, io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as package, zipfile.ZipFile(prepared, "w") as copy:
        names = {*package.namelist()}
        levels = _outline_levels(package.read("word/styles.xml")) if "word/styles.xml" in names else {}
        for name in names:
            if name.endswith((".xml", ".rels")):
                part = package.read(name)
                if re.fullmatch(r"word/(?:document\d*|footnotes|endnotes)\.xml", name):
                    part, n = _prepared(part, levels)
                    n_hidden += n
                copy.writestr(name, part)
        n_comments = package.read("word/comments.xml").count(b"<w:comment ") if "word/comments.xml" in names else 0
        about = _properties(package, "docProps/core.xml")
    html = mammoth.convert_to_html(prepared, style_map=_STYLES, convert_image=lambda image: []).value
    page = lxml_html.document_fromstring(f"<body>{html}</body>")
    for number, note in enumerate(page.xpath("//li[starts-with(@id, 'footnote-') or starts-with(@id, 'endnote-')]"), 1):
        for back in note.xpath(".//a[contains(@href, 'note-ref-')]"):
            back.drop_tree()
        for reference in page.xpath("//a[@href=$target]", target=f"#{note.get('id')}"):
            reference.text = f"[^{number}]"
        note.text = f"[^{number}]: {note.text or ''}"
        for paragraph in note.findall("p"):
            paragraph.drop_tag()
        note.getparent().tag, note.tag = "div", "p"
    yield document(markdown(page), about, comments=n_comments, hidden_runs=n_hidden)


def _outline_levels(styles: bytes) -> dict[str, int]:
    """Return the outline level, 1 to 6, of the styles that have one, or are based on one that has."""
    by_id = {str(style.get(f"{_W}styleId")): style for style in parse_xml(styles).iter(f"{_W}style")}

    def level(name: str | None, depth: int = 0) -> int | None:
        style = by_id.get(name or "")
        if style is None or depth > 20:
            return None
        outline = style.find(f"{_W}pPr/{_W}outlineLvl")
        base = style.find(f"{_W}basedOn")
        if outline is not None:
            return int(outline.get(f"{_W}val", "9")) + 1
        return level(base.get(f"{_W}val"), depth + 1) if base is not None else None

    return {name: min(6, outline_level) for name in by_id if (outline_level := level(name)) and outline_level < 10}


def _prepared(part: bytes, levels: dict[str, int]) -> tuple[bytes, int]:
    """Return a part as mammoth needs it, and the number of hidden runs dropped.

    Formulas become their characters, the paragraphs of an outline level have the style of its headings, and text boxes
    without a form for older programs get one.
    """
    root, n_hidden = parse_xml(part), 0
    for run in [*root.iter(f"{_W}r")]:
        hidden = run.find(f"{_W}rPr/{_W}vanish")
        if hidden is not None and hidden.get(f"{_W}val") not in ("0", "false") and run.getparent() is not None:
            run.getparent().remove(run)
            n_hidden += 1
    for formula in [*root.iter(f"{_MATH}oMath")]:
        words, run = "".join(map(str, formula.itertext())), etree.Element(f"{_W}r")
        etree.SubElement(run, f"{_W}t").text = words
        formula.getparent().replace(formula, run)
    for formula in [*root.iter(f"{_MATH}oMathPara")]:
        formula.tag = f"{_W}ins"
    for box in root.iter(_ALTERNATE):
        if not any(local_name(child) == "Fallback" for child in box):
            fallback = etree.SubElement(box, _ALTERNATE.replace("AlternateContent", "Fallback"))
            fallback.extend([*box.iter(f"{_W}txbxContent")])
    for paragraph in root.iter(f"{_W}p"):
        style, outline = paragraph.find(f"{_W}pPr/{_W}pStyle"), paragraph.find(f"{_W}pPr/{_W}outlineLvl")
        level = levels.get(style.get(f"{_W}val", "")) if style is not None else None
        if outline is not None:
            level = int(outline.get(f"{_W}val", "9")) + 1
        if level and level <= 6:
            if style is None:
                style = etree.SubElement(paragraph[0], f"{_W}pStyle")
            style.set(f"{_W}val", f"Heading{level}")
    return etree.tostring(root), n_hidden


# --- OpenDocument ---------------------------------------------------------------------------------------

_OPEN = {
    **{"p": "block", "list": "list", "list-item": "item", "list-header": "item", "line-break": "break"},
    **{"table": "table", "table-row": "row", "table-cell": "cell", "note": "note", "s": "space", "tab": "space"},
    **dict.fromkeys(
        ("note-citation", "annotation", "tracked-changes", "forms", "covered-table-cell", "title", "desc",
         "hidden-text", "hidden-paragraph", "notes", "table-of-content-source", "sequence-decls"),
        "skip",
    ),
}  # fmt: skip


def _open_kind(element: etree._Element) -> str:
    name = local_name(element)
    if name == "h":
        level = next((str(value) for key, value in element.attrib.items() if str(key).endswith("outline-level")), "1")
        return f"h{level if level in '123456' else 6}"
    return _OPEN.get(name, "")


def read_opendocument(data: bytes) -> Iterator[Record | Problem]:
    """Yield the one document of an OpenDocument text or presentation, as a package or a flat file."""
    if not data.startswith(b"PK"):
        root = parse_xml(data)
        words = {
            local_name(node): " ".join((node.text or "").split()) for node in root.xpath("//*[local-name()='meta']//*")
        }
        yield opendocument_record(root, {"title": words.get("title"), "author": words.get("creator")})
        return
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        manifest = "META-INF/manifest.xml"
        if manifest in package.namelist() and b"encryption-data" in package.read(manifest):
            yield PASSWORD
            return
        root = parse_xml(package.read("content.xml"))
        for node in root.iter("{*}object"):
            part = posixpath.join(str(node.get(_XLINK)).removeprefix("./"), "content.xml")
            if part in package.namelist():
                formula = parse_xml(package.read(part))
                source = formula.findtext(".//{*}annotation") or "".join(map(str, formula.itertext()))
                node.text = f" {source} " if local_name(formula) == "math" else None
        yield opendocument_record(root, _properties(package, "meta.xml"))


def opendocument_record(root: etree._Element, about: dict[str, Any]) -> Record | Problem:
    """Return the document of the content of an OpenDocument file."""
    body = next(root.iter("{*}body"), root)
    n_comments = sum(1 for _ in body.iter("{*}annotation"))
    slides = [*body.iter("{*}page")] if body.find("{*}presentation") is not None else []
    if not slides:
        return document(markdown(body, _open_kind), about, comments=n_comments)
    return slides_record([markdown(slide, _open_kind) for slide in slides], about)


# --- slides ---------------------------------------------------------------------------------------------


def _slide_kind(element: etree._Element) -> str:
    name = local_name(element)
    if name == "sp":
        kinds = {str(node.get("type")) for node in element.iter("{*}ph")}
        return "skip" if kinds & {*_FURNITURE} else "h2" if kinds & {"title", "ctrTitle"} else ""
    kinds_by_name = {"p": "block", "tbl": "table", "tr": "row", "tc": "cell", "br": "break", "Fallback": "skip"}
    return "skip" if element.get("hMerge") or element.get("vMerge") else kinds_by_name.get(name, "")


def read_slides(data: bytes) -> Iterator[Record | Problem]:
    """Yield the one document of a PowerPoint file: its slides in their order, with charts and the speaker's notes."""
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        texts = []
        for slide in _related(package, "ppt/presentation.xml", "slide"):
            parts = [markdown(parse_xml(package.read(slide)), _slide_kind)]
            parts += [_chart(parse_xml(package.read(part))) for part in _related(package, slide, "chart")]
            parts += [
                markdown(parse_xml(package.read(part)), _slide_kind) for part in _related(package, slide, "diagramData")
            ]
            for part in _related(package, slide, "notesSlide"):
                shapes = parse_xml(package.read(part)).iter("{*}sp")
                bodies = [shape for shape in shapes if shape.find(".//{*}ph[@type='body']") is not None]
                notes = [markdown(body, _slide_kind).replace("\n\n", "\n") for body in bodies]
                parts += [f"Notes: {note}" for note in notes if note]
            texts.append("\n\n".join(filter(None, parts)))
        yield slides_record(texts, _properties(package, "docProps/core.xml"))


def _chart(root: etree._Element) -> str:
    """Return a chart as its title and a table: a row for each category, a column for each series."""
    title = " ".join("".join(map(str, node.itertext())) for node in root.iter("{*}t")).strip()
    columns: list[list[str]] = []
    for series in root.iter("{*}ser"):
        for name in ("cat", "xVal", "val", "yVal"):
            values = [str(value.text or "") for value in series.iterfind(f"{{*}}{name}//{{*}}v")]
            has_numbers = name in ("val", "yVal")
            if values and (has_numbers or not columns):
                title_of_series = " ".join(value.text or "" for value in series.iterfind("{*}tx//{*}v"))
                columns.append([title_of_series if has_numbers else "", *values])
    n_rows = max(map(len, columns), default=0)
    rows = [[column[n] if n < len(column) else "" for column in columns] for n in range(n_rows)]
    return "\n\n".join(filter(None, (title, table_of(rows))))


def _related(package: zipfile.ZipFile, part: str, kind: str) -> list[str]:
    """Return the parts of a kind that a part of an Office Open XML package refers to, in the order of its own text."""
    folder, _, name = part.rpartition("/")
    relations = f"{folder}/_rels/{name}.rels"
    if not {part, relations} <= {*package.namelist()}:
        return []
    targets = {
        relation.get("Id"): posixpath.normpath(posixpath.join("/", folder, str(relation.get("Target")))).lstrip("/")
        for relation in parse_xml(package.read(relations))
        if str(relation.get("Type")).endswith(f"/{kind}")
    }
    named = (value for node in parse_xml(package.read(part)).iter() for value in node.attrib.values())
    order = [targets.pop(value) for value in map(str, named) if value in targets]
    return [target for target in (*order, *targets.values()) if target in package.namelist()]


# --- books ----------------------------------------------------------------------------------------------


def read_book(data: bytes) -> Iterator[Record | Problem]:
    """Yield the one document of an epub: the pages of its spine, without the list of contents."""
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        names = {*package.namelist()}
        container = parse_xml(package.read("META-INF/container.xml"))
        part = str(next(container.iter("{*}rootfile")).get("full-path"))
        book = parse_xml(package.read(part))
        pages = {
            item.get("id"): posixpath.normpath(posixpath.join(posixpath.dirname(part), str(item.get("href"))))
            for item in book.iter("{*}item")
            if "nav" not in str(item.get("properties"))
        }
        spine = [pages.get(item.get("idref")) for item in book.iter("{*}itemref")]
        texts = [
            markdown(lxml_html.document_fromstring(package.read(page), parser=lxml_html.HTMLParser(encoding="utf-8")))
            for page in spine
            if page in names
        ]
        about = _properties(package, part)
        about["language"] = (book.findtext(".//{*}language") or "").split("-")[0].lower() or None
    yield document("\n\n".join(filter(None, texts)), about)
