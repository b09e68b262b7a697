"""Packages of office programs, written by hand, with a picture on a server that never answers; PDFs."""

import io
import lzma
import zipfile
from pathlib import Path

HOST = "http://192.0.2.1"  # reserved for documentation
FORMATS = "http://schemas.openxmlformats.org"
PRESENTATION = f"{FORMATS}/presentationml/2006/main"
DRAWING = f"{FORMATS}/drawingml/2006/main"
WORD = f"{FORMATS}/wordprocessingml/2006/main"
SHEET = f"{FORMATS}/spreadsheetml/2006/main"
RELATIONS = f"{FORMATS}/officeDocument/2006/relationships"
PACKAGE = f"{FORMATS}/package/2006"


def old_file(name: str) -> bytes:
    """A file of an older office program."""
    folder = Path(__file__).resolve().parents[1] / "data" / "old-office"
    return lzma.decompress((folder / f"{name}.xz").read_bytes())


def zipped(**parts: str) -> bytes:
    """A zip file of texts by name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()


def relations(*targets: tuple[str, str, str]) -> str:
    """The file of the relations of a part, each with its id, kind and target."""
    outside = ' TargetMode="External"'
    lines = (
        f'<Relationship Id="{key}" Type="{RELATIONS}/{kind}" Target="{to}"{outside * to.startswith(HOST)}/>'
        for key, kind, to in targets
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{"".join(lines)}</Relationships>'


def _package(target: str, targets: tuple[tuple[str, str, str], ...], **parts: str) -> bytes:
    folder, _, name = target.rpartition("/")
    return zipped(
        **{
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
            '<Default Extension="xml" ContentType="application/xml"/></Types>',
            "_rels/.rels": relations(("r1", "officeDocument", target)),
            f"{folder}/_rels/{name}.rels": relations(("x", "image", f"{HOST}/a.png"), *targets),
            **parts,
        }
    )


def docx(paragraphs: str, created: str = "") -> bytes:
    """A Word file with these paragraphs, and a day of creation in its properties."""
    properties = (
        f'<cp:coreProperties xmlns:cp="{PACKAGE}/metadata/core-properties" xmlns:dcterms="http://purl.org/dc/terms/">'
        f"<dcterms:created>{created}</dcterms:created></cp:coreProperties>"
    )
    return _package(
        "word/document.xml",
        (("t", "attachedTemplate", f"{HOST}/a.dotm"),),
        **{
            "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{paragraphs}</w:body></w:document>',
            "docProps/core.xml": properties,
        },
    )


def paragraph(text: str) -> str:
    """A paragraph of a Word file."""
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def workbook(rows: str, *, hidden: bool = False, more: str = "") -> bytes:
    """A workbook of one sheet with these rows, and the same sheet hidden."""
    sheets = '<sheet name="A" sheetId="1" r:id="s"/>' + hidden * '<sheet name="B" sheetId="2" state="hidden" r:id="s"/>'
    return _package(
        "xl/workbook.xml",
        (("s", "worksheet", "worksheets/sheet1.xml"),),
        **{
            "xl/workbook.xml": f'<workbook xmlns="{SHEET}" xmlns:r="{RELATIONS}"><sheets>{sheets}</sheets></workbook>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEET}"><sheetData>{rows}</sheetData>{more}</worksheet>',
        },
    )


def sheet_row(number: int, *cells: str) -> str:
    """A row of a sheet."""
    filled = ((n, text) for n, text in enumerate(cells) if text)
    parts = (f'<c r="{"AB"[n]}{number}" t="inlineStr"><is><t>{text}</t></is></c>' for n, text in filled)
    return f'<row r="{number}">{"".join(parts)}</row>'


def open_document(kind: str, body: str) -> bytes:
    """A file of OpenDocument: a text, a spreadsheet or a presentation."""
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{path}:1.0"'
        for name, path in (("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"))
    )
    content = f'<office:document-content {spaces} xmlns:x="http://www.w3.org/1999/xlink"><office:body><office:{kind}>'
    return zipped(
        mimetype=f"application/vnd.oasis.opendocument.{kind}",
        **{
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"{content}{body}</office:{kind}></office:body></office:document-content>",
        },
    )


def presentation(*slides: tuple[str, str]) -> bytes:
    """A PowerPoint file of slides, each with its text and its speaker's notes; the names of the parts run backward."""

    def shape(kind: str, text: str) -> str:
        return (
            f'<p:sp><p:nvSpPr><p:cNvPr id="2" name="n"/><p:cNvSpPr/><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr><p:spPr/>'
            f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
        )

    def part(name: str, body: str) -> str:
        spaces = f'xmlns:p="{PRESENTATION}" xmlns:a="{DRAWING}" xmlns:r="{RELATIONS}"'
        return f"<p:{name} {spaces}>{body}</p:{name}>"

    def tree(name: str, *shapes: str) -> str:
        group = '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'
        return part(name, f"<p:cSld><p:spTree>{group}{''.join(shapes)}</p:spTree></p:cSld>")

    n = len(slides)
    ids = "".join(f'<p:sldId id="{256 + k}" r:id="r{k}"/>' for k in range(n))
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": relations(("r1", "officeDocument", "ppt/presentation.xml")),
        "ppt/_rels/presentation.xml.rels": relations(
            *((f"r{k}", "slide", f"slides/slide{2 * (n - k)}.xml") for k in range(n))
        ),
        "ppt/presentation.xml": part("presentation", f"<p:sldIdLst>{ids}</p:sldIdLst>"),
    }
    for k, (text, notes) in enumerate(slides):
        parts[f"ppt/slides/slide{2 * (n - k)}.xml"] = tree("sld", shape("title", text))
        parts[f"ppt/slides/_rels/slide{2 * (n - k)}.xml.rels"] = relations(
            ("r1", "notesSlide", f"../notesSlides/notesSlide{k + 1}.xml")
        )
        parts[f"ppt/notesSlides/notesSlide{k + 1}.xml"] = tree("notes", shape("sldNum", "9"), shape("body", notes))
    return zipped(**parts)


def pdf(*pages: list[tuple[int, int, int, str]]) -> bytes:
    """A PDF of pages, each of lines with their place, size and text."""
    font = 3 + 2 * len(pages)
    kids = " ".join(f"{number} 0 R" for number in range(3, font, 2))
    objects = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>"]
    for number, lines in enumerate(pages):
        content = "".join(f"BT /F {size} Tf {x} {y} Td ({text}) Tj ET\n" for x, y, size, text in lines)
        page = f"/Contents {4 + 2 * number} 0 R/Resources<</Font<</F {font} 0 R>>>>"
        objects.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]{page}>>")
        objects.append(f"<</Length {len(content)}>> stream\n{content}endstream")
    objects.append("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    body = "".join(f"{number} 0 obj {content} endobj\n" for number, content in enumerate(objects, start=1))
    return f"%PDF-1.4\n{body}trailer <</Root 1 0 R>>\n%%EOF".encode()
