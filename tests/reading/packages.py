"""Packages of office programs, written by hand."""

import io
import zipfile

PRESENTATION = "http://schemas.openxmlformats.org/presentationml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def zipped(**parts: str) -> bytes:
    """A zip file of texts by name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()


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

    def relations(*targets: tuple[str, str, str]) -> str:
        lines = (f'<Relationship Id="{key}" Type="{RELATIONS}/{kind}" Target="{to}"/>' for key, kind, to in targets)
        space = "http://schemas.openxmlformats.org/package/2006/relationships"
        return f'<Relationships xmlns="{space}">{"".join(lines)}</Relationships>'

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
