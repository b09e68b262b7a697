"""A small file of each kind, also under a wrong name: its text, title, date and metadata."""

import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.pipeline.test_loading import load, texts
from tests.reading.packages import docx, open_document, sheet_row, workbook

CODE = "QUJDZGVmMTIz" * 30
RTF = r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fcharset238 A;}{\f1\fcharset0 B;}}"


class Kind(NamedTuple):
    """What is read from a file: all of the text, and the other values that are given."""

    name: str
    content: str | bytes
    text: str
    others: Mapping[str, Any] = MappingProxyType({})


def cells(*cells: dict[str, Any]) -> str:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


MAIL = "From: Ida <ida@x.org>\nTo: otto@x.org\nSubject: Crane\nDate: Mon, 29 May 2017 16:56:08 +0000\n\nIt is mended.\n"
MERGED = '<mergeCells><mergeCell ref="A2:A3"/></mergeCells>'
PAGE = "<html><head><title>Fees</title></head><body><p>The fee is ninety.</p></body></html>"
EVENT = (
    "BEGIN:VEVENT\nUID:7\nDTSTART:20240305T101500\nSUMMARY:Board meet\n ing\nLOCATION:Town hall\n"
    f'ATTENDEE;CN="Holm, Ida":mailto:ida@x.org\nATTACH;ENCODING=BASE64:{CODE}\nEND:VEVENT\n'
)
KINDS = [
    Kind("a.org", "# licence\n#+TITLE: Guide\n#+DATE: 2021-04-03\n* TODO Berths :tag:\n:PROPERTIES:\n:ID: 7\n:END:\nSee "
         "[[https://x.org][the *site*]].\n# no\n", "# Berths\n\nSee the site.", {"title": "Guide", "document_date": "2021-04-03"}),
    Kind("a.tex", "% no\n\\newcommand{\\quay}[1]{the #1 \\textbf{quay}}\\title{Tides of M\\\"uller}\\author{Ida \\and Otto}\n"
         "\\begin{document}\nIt stood\nat \\quay{old}.\\footnote{A note.} % no\nIt cost 5\\,\\%.\n\n\\section{Load}\n\\begin{tabular}"
         "{ll}\nCrane & Load \\\\ North & $1.4$ \\\\\n\\end{tabular}\n\\begin{itemize}\\item One\n\\item Two\\end{itemize}\\end{document}",
         "It stood at the old quay.[^1] It cost 5 %.\n\n# Load\n\n| Crane | Load |\n| --- | --- |\n| North | $1.4$ |\n\n- One\n- Two"
         "\n\n[^1]: A note.", {"title": "Tides of Müller", "raw_data": {"author": "Ida, Otto"}}),
    Kind("part.tex", "\\chapter{The pump}\nIt runs.\n", "# The pump\n\nIt runs.", {"title": "The pump"}),
    Kind("a.ipynb", cells({"cell_type": "markdown", "source": ["# A\n", "- x\n", "- y"]},
                          {"cell_type": "code", "source": "df", "outputs": [{"text": ["1\n"]}, {"ename": "E", "evalue": "bad"}]}),
         "# A\n- x\n- y\n\n```\ndf\n```\n\n```\n1\n```\n\n```\nError (E): bad\n```", {"title": "A"}),
    Kind("a.adoc", "////\n= No\n////\n= Pumps\nv1, 2021-04-03\n:toc:\n\n// no\nOne.footnote:[See 7.]\n\n----\n// kept\n----\n",
         "# Pumps\n\nOne. (See 7.)\n\n----\n// kept\n----\n", {"title": "Pumps", "document_date": "2021-04-03"}),
    Kind("note.md", "Text.\n\n## Second\n", "Text.\n\n## Second\n", {"title": "note"}),
    Kind("html.md", "<h1 align='center'>The pump</h1>\n\nIt [runs][1].\n\n[1]: https://x.org\n", "\n# The pump\n\n\nIt runs.\n\n\n",
         {"title": "The pump"}),
    Kind("pandoc.md", "% The pump\n% Ada\n\nIt runs.\n", "It runs.\n", {"title": "The pump"}),
    Kind("jats.nxml", "<article><front><article-title>Tides</article-title><contrib><name><surname>Holm</surname><given-names>Ida"
         "</given-names></name></contrib><pub-date><day>3</day><month>4</month><year>2021</year></pub-date></front><body><sec><title>"
         "Methods</title><p>By <b>gauge</b>.</p><table><tr><th colspan='2'>Goats</th></tr><tr><td>n</td><td>7</td></tr></table></sec>"
         "</body><ref><element-citation><surname>Rao</surname><year>2003</year></element-citation></ref></article>",
         "# Tides\n\n## Methods\n\nBy gauge.\n\n| Goats | Goats |\n| --- | --- |\n| n | 7 |\n\nRao 2003",
         {"title": "Tides", "document_date": "2021-04-03", "raw_data": {"author": "Ida Holm"}}),
    Kind("tei.xml", "<TEI><teiHeader><titleStmt><title>Seneka</title><author>Kleist</author></titleStmt><date>1971</date></teiHeader>"
         "<text><div><head>Akt 1</head><speaker>IDA.</speaker><l>Wer da?</l><pb n='26'/></div></text></TEI>",
         "## Akt 1\n\nIDA.\n\nWer da?", {"title": "Seneka", "document_date": None, "raw_data": {"author": "Kleist"}}),
    Kind("a.dbk", "<book><info><title>Guide</title></info><chapter><title>One</title><para>Text<footnote><para>A note.</para>"
         "</footnote>.</para><itemizedlist><listitem>a</listitem></itemizedlist></chapter></book>",
         "# Guide\n\n## One\n\nText[^1].\n\n- a\n\n[^1]: A note.", {"title": "Guide"}),
    Kind("set.dbk", "<set><title>Harbour</title><article><title>Tides</title><para>By gauge.</para></article><related-article>no"
         "</related-article></set>", "# Harbour\n\n## Tides\n\nBy gauge.", {"title": "Harbour"}),
    Kind("a collection.nxml", "<pmc-articleset><article><front><article-title>Tides</article-title></front><body><p>By gauge.</p></body>"
         "</article><article><body><p>By hand.</p></body></article></pmc-articleset>", "## Tides\n\nBy gauge.\n\nBy hand."),
    Kind("a.fb2", f"<FictionBook><title-info><book-title>Quay</book-title></title-info><body><section><title>One</title><p>It rained.</p>"
         f"</section></body><binary>{CODE}</binary></FictionBook>", "## One\n\nIt rained.", {"title": "Quay"}),
    Kind("a.opml", "<opml><head><title>Plan</title></head><body><outline text='Harbour'><outline text='Crane'/></outline></body></opml>",
         "- Harbour\n  - Crane", {"title": "Plan"}),
    Kind("a.ttml", "<tt><body><p begin='1s'>Hello<br/>there</p><p>Bye</p></body></tt>", "Hello there\nBye"),
    Kind("flat.xml", f"<w:wordDocument xmlns:w='w'><w:body><w:p><w:r><w:t>Ida</w:t></w:r><w:r><w:t> Holm</w:t></w:r></w:p></w:body>"
         f"<w:binData>{CODE}</w:binData></w:wordDocument>", "Ida Holm"),
    Kind("a feed", "<?xml version='1.0'?><rss><channel><item><title>Quay</title><pubDate>Tue, 05 Mar 2024 10:00:00 GMT</pubDate>"
         "<description>&lt;p&gt;It &lt;b&gt;opens&lt;/b&gt;.&lt;/p&gt;</description></item></channel></rss>", "It opens.",
         {"title": "Quay", "document_date": "2024-03-05", "row_number": 1}),
    Kind("a.enex", "<en-export><note><title>Boat</title><created>20210403T101500Z</created><content><![CDATA[<en-note><div>Buy rope</div>"
         "<ul><li>tar</li></ul></en-note>]]></content></note></en-export>", "Buy rope\n\n- tar", {"document_date": "2021-04-03"}),
    Kind("a.kml", "<kml><Placemark><name>Quay</name><description>Old.</description></Placemark></kml>", "Old.", {"title": "Quay"}),
    Kind("wiki.xml", "<mediawiki><page><title>Quay</title><ns>0</ns><revision><text>{{Box|{{b}}}}'''Quay''' is a [[harbour|place]].\n\n"
         "== History ==\n* old\n</text></revision></page><page><title>R</title><redirect/><text>#REDIRECT [[Quay]]</text></page>"
         "</mediawiki>", "Quay is a place.\n\n## History\n- old", {"title": "Quay"}),
    Kind("fonts.rtf", RTF + r"{\info{\title \'c8esk\'fd}}{\header no}{\pict\bin4 }}}}}{\pard\outlinelevel1 Fees\par}\f0 \'c8l\'e1nek \f1 caf\'e9 \u26085?\par{\intbl A\cell B\cell\row}"
         r"See{\footnote note} {\field{\*\fldinst X}{\fldrslt link}}{\v no}.\par}",
         "## Fees\n\nČlánek café 日\n\n| A | B |\n| --- | --- |\n\nSee[^1] link.\n\n[^1]: note", {"title": "Český"}),
    Kind("rich.doc", r"{\rtf1\ansi Ida Holm.\par}", "Ida Holm.", {"format": "rtf"}),
    Kind("page.xls", PAGE, "The fee is ninety.", {"title": "Fees", "format": "html"}),
    Kind("sheet.xls", "name\tcity\nIda\tLund\n", "name: Ida. city: Lund.", {"format": "csv"}),
    Kind("plain.docx", "No package.", "No package.", {"format": "txt"}),
    Kind("subtitles.txt", "1\n00:00:01,000 --> 00:00:02,000\nHello.\n", "Hello.", {"format": "srt"}),
    Kind("book.txt", workbook(sheet_row(1, "name", "city") + sheet_row(2, "Ida", "Lund")), "name: Ida. city: Lund.", {"format": "xlsx"}),
    Kind("a mail", "Received: from x\n\tby y\n" * 60 + MAIL, "It is mended.", {"title": "Crane", "document_date": "2017-05-29"}),
    Kind("a.emlx", f"{len(MAIL)}\n{MAIL}<?xml version='1.0'?><plist/>", "It is mended.", {"title": "Crane"}),
    Kind("a.mht", f"Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/related; boundary=z\n\n--z\nContent-Type: text/html\n\n{PAGE}\n"
         f"--z\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\n{CODE}\n--z--\n", "The fee is ninety.", {"title": "Fees"}),
    Kind("an event", EVENT, "Board meeting\nStart: 2024-03-05 10:15\nPlace: Town hall\nAttendee: Holm, Ida <ida@x.org>",
         {"title": "Board meeting", "document_date": "2024-03-05", "format": "ics"}),
    Kind("a.vcf", f"BEGIN:VCARD\nN;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;Eva\nORG:Harbour;Office\nPHOTO;ENCODING=b:{CODE}\nEND:VCARD\n",
         "Müller, Eva\nOrganization: Harbour, Office", {"title": "Müller, Eva"}),
    Kind("sep.csv", "sep=;\nName;City\nAda;Ulm\n", "Name: Ada. City: Ulm."),
    Kind("preamble.csv", "Guests of 2024\n\nName,City\nAda,Ulm\nBen,Bonn\n", "Name: Ada. City: Ulm.\nName: Ben. City: Bonn."),
    Kind("comments.csv", "# by hand\nName;City\nAda;Ulm\n", "Name: Ada. City: Ulm."),
    Kind("tab.csv", "name\trole\nIda\tmaster, first\nOtto\tclerk\n", "name: Ida. role: master, first.\nname: Otto. role: clerk."),
    Kind("quotes.csv", "name,city\n'Holm, Ida',Lund\n", "name: Holm, Ida. city: Lund."),
    Kind("years.csv", "Country,2001,2002\nSweden,4,5\n", "Country: Sweden. 2001: 4. 2002: 5."),
    Kind("short.csv", "name,city,note\nIda,Lund\n", "name: Ida. city: Lund.", {"title": "Ida"}),
    Kind("dates.csv", "Name,Created_At,Time\nA,1617264000,x\n", "Name: A. Created_At: 1617264000. Time: x.", {"document_date": "2021-04-01"}),
    Kind("lines.json", '{"Name": "Ada", "City": "Ulm"}\n{"Name": "Ben"}\n', "Name: Ada. City: Ulm.\nName: Ben."),
    Kind("outer.json", json.dumps({"no": "A-9", "date": "2023-05-06", "lines": [{"item": "rope of hemp"}, {"item": "an iron anchor"}]}),
         "item: rope of hemp. no: A-9. date: 2023-05-06.\nitem: an iron anchor. no: A-9. date: 2023-05-06.", {"document_date": "2023-05-06"}),
    Kind("article.json", json.dumps({"title": "Opens", "body": "The harbour of Brenz opened on Monday.", "comments": [{"by": "otto"}]}),
         "title: Opens. body: The harbour of Brenz opened on Monday. comments: by: otto.", {"title": "Opens"}),
    Kind("name.json", '[{"name": {"common": "Sweden"}, "code": "SE"}]', "name: common: Sweden. code: SE.", {"title": "Sweden"}),
    Kind("a.bib", "@book{cable, year={1901}, author={Ada {Holm}}, note=\"A note\"}\n",
         "entry_type: book. key: cable. author: Ada Holm. year: 1901. note: A note."),
    Kind("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ada>Good <i>day</i>.\n\n00:02.000 --> 00:03.000\n<v Ben>Good day.\n",
         "Ada: Good day.\nBen: Good day.", {"places": ["00:00:01", "00:00:02"]}),
    Kind("a.srt", "\ufeff1\r\n00:00:01,000 --> 00:00:02,000\r\n{\\an8}Ada: Good\r\n<i>day</i>.\r\n", "Ada: Good day."),
    Kind("chat de.txt", "05.03.24, 08:10 - Verschlüsselt.\n05.03.24, 08:12 - Ada: Good\nday.\n05.03.24, 08:13 - Ben: Yes.\n",
         "Ada: Good day.\nBen: Yes.", {"places": ["2024-03-05 08:12:00", "2024-03-05 08:13:00"]}),
    Kind("chat es.txt", "20/1/2019, 11:26 p. m. - Ada: Sí.\n20/1/2019, 11:27 p. m. - Ben: No.\n", "Ada: Sí.\nBen: No.",
         {"places": ["2019-01-20 23:26:00", "2019-01-20 23:27:00"]}),
    Kind("chat zh.txt", "2024/3/15 下午9:12 - 李雷: 好\n2024/3/15 下午9:13 - Ben: 好\n", "李雷: 好\nBen: 好", {"document_date": "2024-03-15"}),
    Kind("claude.json", json.dumps([{"name": "Pumps", "chat_messages": [
        {"sender": who, "text": "Good.", "created_at": f"2024-03-05T09:1{n}:00Z"} for n, who in enumerate(["human", "assistant"])]}]),
         "human: Good.\nassistant: Good.", {"title": "Pumps", "document_date": "2024-03-05"}),
    Kind("teams.json", json.dumps({"value": [
        {"messageType": "systemEventMessage", "createdDateTime": "2024-03-05T09:11:00Z", "body": {"content": "x"}, "from": None},
        *({"messageType": "message", "createdDateTime": f"2024-03-05T09:1{n}:00Z", "from": {"user": {"displayName": who, "id": "7"}},
           "body": {"contentType": "html", "content": "<p>Good <b>day</b>.</p>"}} for n, who in enumerate(["Ada", "Ben"], 2))]}),
         "Ada: Good day .\nBen: Good day .", {"places": ["2024-03-05 09:12:00", "2024-03-05 09:13:00"]}),
    Kind("key.txt", f"Apologies: Ida.\n-----BEGIN KEY-----\n{CODE[:64]}\n{CODE[64:128]}\n{CODE[:64]}\n{CODE[:64]}\nQQ==\n-----END-----\n",
         "Apologies: Ida.\n-----BEGIN KEY-----\n[data, 1 kB]\n-----END-----\n", {"raw_data": {"left_out": {"base64": 1}}}),
    Kind("hidden.html", "<html><head><title>T</title><style>.gone {display : none}</style></head><body><p class='gone'>no</p><noscript>no"
         "</noscript><p style='font-size:0'>no</p><p>The fee is ninety crowns.</p></body></html>", "The fee is ninety crowns."),
    Kind("rules.html", "<html><head><title>T</title><style>.night .text{display:none}/* .text{display:none} */@media print{.text{display:none}}"
         "@import 'x.css'; p.old, #top {display: none} @media screen{.no{display:none}}</style></head><body class='night'><p class='text'>The fee is ninety crowns.</p>"
         "<p class='a old'>no</p><p class='no'>no</p><div class='old'><p id='top'>no</p><p>It rose.</p></div></body></html>",
         "The fee is ninety crowns.\n\nIt rose."),
    Kind("tabs.html", "<html><head><title>T</title><style>.tab{display:none}</style></head><body><p>Fees</p><p class='tab'>The fee is "
         "ninety crowns.</p></body></html>", "Fees\n\nThe fee is ninety crowns."),
    Kind("a.json", json.dumps([{"text": "A ticket.", "attachment": f"logo.png\n{CODE * 3}"}]), "A ticket.",
         {"raw_data": {"attachment": "logo.png\n[data, 1 kB]", "left_out": {"base64": 1}}}),
    Kind("arabic.html", ("<html><head><meta http-equiv=Content-Type content='text/html; charset=iso-8859-6'></head><body>"
         "وأعرب الاتحاد</body></html>").encode("iso8859-6"), "وأعرب الاتحاد", {"encoding": "iso8859-6"}),
    Kind("a.docx", docx('<w:p><w:pPr><w:outlineLvl w:val="1"/></w:pPr><w:r><w:t>Fees</w:t></w:r></w:p><w:p><w:r><w:t>Ida</w:t><w:tab/>'
         '<w:t>paid</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>no</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>A</w:t></w:r></w:p>'
         "</w:tc><w:tc><w:p><w:r><w:t>B</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"), "## Fees\n\nIda paid\n\n| A | B |\n| --- | --- |",
         {"title": "Fees", "raw_data": {"left_out": {"hidden_runs": 1}}}),
    Kind("a.odt", open_document("text", '<text:h text:outline-level="2">Fees</text:h><text:p>See <text:a x:href="u"><text:span>the link</text:span>'
         "</text:a><text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>A note.</text:p></text:note-body></text:note>."
         "</text:p>"), "## Fees\n\nSee the link[^1].\n\n[^1]: A note.", {"title": "Fees"}),
    Kind("a.xlsx", workbook(sheet_row(1, "Name", "Item") + sheet_row(2, "Ida", "rope") + sheet_row(3, "", "tar"), hidden=True, more=MERGED),
         "Name: Ida. Item: rope.\nName: Ida. Item: tar.", {"raw_data": {"Item": "rope", "left_out": {"hidden_sheets": 1}}}),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_what_is_read_from_a_file_of_each_kind(tmp_path: Path, kind: Kind) -> None:
    loaded = load(tmp_path, {kind.name: kind.content})
    row = loaded.documents.row(0, named=True)
    assert "\n".join(texts(loaded)) == kind.text
    assert loaded.errors.height == 0
    row["raw_data"], row["places"] = json.loads(row["raw_data"] or "{}"), [place["value"] for place in row["places"]]
    row["document_date"] = row["document_date"] and str(row["document_date"])
    assert {name: row[name] for name in kind.others} == dict(kind.others)


CHAT = json.dumps(
    {"messages": [{"role": "user", "content": "Who was it?"}, {"role": "assistant", "content": "It was Field."}]}
)
PROBLEMS = {
    "a broken line among chats.jsonl": (f'{CHAT}\n{CHAT}\n{{"messages": [BROKEN\n', "malformed JSON", 2),
    "no header.csv": ("Ida,master,1999\nOtto,clerk,2001\n", "the table has no header: its columns are named column_1, column_2, …", 2),
    "damaged.xml": ("<book><para>One.</para><para>Two", "the XML is damaged at line 1", 1),
    "formulas.xlsx": (
        workbook(sheet_row(1, "Name", "Sum") + '<row r="2"><c r="A2" t="inlineStr"><is><t>Ida</t></is></c><c r="B2"><f>A1*2</f></c></row>'),
        "1 formulas of the workbook have no saved values: their cells are empty", 1,
    ),
    "locked.docx": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "the file is protected by a password", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_cannot_be_read_of_a_file_is_a_row(tmp_path: Path, name: str) -> None:
    content, error, n_documents = PROBLEMS[name]
    loaded = load(tmp_path, {name: content})
    assert loaded.errors["error"][0].startswith(error)
    assert loaded.documents.height == n_documents


OLD = Path(__file__).resolve().parents[1] / "data" / "old-office"


def test_a_presentation_of_powerpoint_97_has_its_slides_and_notes_without_footers_and_masters(tmp_path: Path) -> None:
    (row,) = load(tmp_path, {"talk.ppt": lzma.decompress((OLD / "talk.ppt.xz").read_bytes())}).documents.to_dicts()
    first = "Landing at Valentia\n\nCaptain Anderson commanded the Great Eastern.\nЦель: связать Ирландию и Америку."
    second = "Second slide\n\nA free text box, höher gelegt."
    assert row["title"] == "The cable of 1866"
    assert row["text"] == f"{first}\n\nNotes: Ask Mr. Field about the price.\n\n{second}"
    assert [(place["kind"], place["value"]) for place in row["places"]] == [("slide", "1"), ("slide", "2")]


@pytest.mark.parametrize("name", ["letter.doc", "letter.rtf"])
def test_a_letter_in_an_older_format_has_its_words_cells_and_notes_in_every_script(tmp_path: Path, name: str) -> None:
    (row,) = load(tmp_path, {name: lzma.decompress((OLD / f"{name}.xz").read_bytes())}).documents.to_dicts()
    assert row["title"] == "Letter from Valentia"
    assert "laid by the William Corry at Foilhommerum.[^1]" in row["text"]  # the words of a link, without its field
    assert "Příliš žluťoučký kůň. Инженер Томсон был на борту." in row["text"]
    assert "Great Eastern | Anderson |" in row["text"]
    assert row["text"].endswith("[^1]: A bay of the island.")
