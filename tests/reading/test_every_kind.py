"""A small file of each kind, also under a wrong name: its text, title, date and metadata."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from graphrag_assets.pipeline.batch import read_corpus
from graphrag_assets.pipeline.chunking import ChunkOptions
from graphrag_assets.pipeline.loading import LoadOptions
from tests.pipeline.test_loading import WITHOUT_PROCESS, InMemoryFile, load, only_error, texts
from tests.reading.packages import docx, old_file, open_document, pdf, presentation, sheet_row, workbook

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
HEAD = (
    "From: Ada <ada@example.org>\nTo: Ben <ben@example.org>\nSubject: =?utf-8?q?The_pump_=E2=98=B8?=\n"
    "Date: Tue, 5 Mar 2024 09:12:00 +0100\nMessage-ID: <1@example.org>\n"
)
PLAIN = f"{HEAD}Content-Type: text/plain; charset=utf-8\n\n"
HTML = f"{HEAD}MIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n"
MAILS = {
    "Gmail": f"{HTML}<div>The pump runs.<br></div><div class='gmail_quote'>On Monday Ben &lt;<a href='m'>b@x.org</a>&gt; wrote:"
    "<blockquote class='gmail_quote'>Does it run?</blockquote></div>",
    "Outlook": f"{HTML}<div><p>The pump runs.</p><div><div style='border:none;border-top:solid #E1E1E1 1.0pt'><p><b>From:</b> "
    "Ben<br><b>Sent:</b> Monday<br></p></div></div><p>Does it run?</p></div>",
    "answers between quotes": f"{PLAIN}Ben wrote:\n> Does it\n> run?\n\nThe pump runs.\n\n____________________\ndev list\n",
    "forwarded": f"{PLAIN}The pump runs.\n\n---------- Forwarded message ---------\nFrom: Eve\n\nAn offer.\n",
    "a signature": f"{PLAIN}The pump runs.\n\n--\nAda Example\nHead of maintenance\n",
    "a phrase of farewell": f"{PLAIN}The pump runs.\n\nKind regards,\n\nAda Example\nHead of pumps\n",
    "a name with its address": f"{PLAIN}The pump runs.\n\nBen <ben@example.org> wrote:\n\n> Does it run?\n",
    "a text that is only attached": f"{HEAD}MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=z\n\n--z\n"
    "Content-Type: text/plain\nContent-Disposition: attachment; filename=a.txt\n\nThe pump runs.\n--z--\n",
}
TALK = {"date": "2024-03-05T09:12:00", "from": "Ada", "text": ["Good ", {"type": "bold", "text": "day."}]}
ANSWER = {"date": "2024-03-05T09:13:00", "from": "Ben", "text": "Good day."}
NODE = {"author": {"role": "Ada"}, "content": {"content_type": "text", "parts": ["Good day."]}, "create_time": 1.7e9}
CHATS = {
    "telegram.json": {"chats": {"list": [{"name": "Pumps", "messages": [TALK, ANSWER]}]}},
    "discord.json": {"channel": {"name": "Pumps"}, "messages": [
        {"timestamp": "2024-03-05T09:12:00+00:00", "content": "Good day.", "author": {"name": "a", "nickname": "Ada"}},
        {"timestamp": "2024-03-05T09:13:00+00:00", "content": "Good day.", "author": {"name": "Ben"}},
    ]},
    "messenger.json": {"title": "Pumps", "messages": [
        {"sender_name": "Ben", "timestamp_ms": 1709630000000, "content": "Good day."},
        {"sender_name": "Ada", "timestamp_ms": 1709620000000, "content": "Good day."},
    ]},
    "chatgpt.json": [{"title": "Pumps", "mapping": {
        "b": {"message": {**NODE, "author": {"role": "Ben"}, "create_time": 1.7e9 + 1}},
        "a": {"message": NODE},
    }}],
}  # fmt: skip
RST = """The pump
========

See :ref:`the valve <valve>`, :func:`~pump.run` and :doc:`start`.

.. list-table:: Parts
   :header-rows: 1

   * - Part
     - Maker
   * - Valve
     - Hugo Brand

.. toctree::
   :maxdepth: 2

   start

.. py:function:: run(x)
   :async:

   Runs the pump.

.. seealso:: The manual.

.. code-block:: python
   :caption: An example

   print(":ref:`x`")

.. include:: /etc/passwd
"""
RST_TEXT = "\n\n".join([
    "# The pump", "See the valve, run and start.", "Parts", "| Part | Maker |\n| --- | --- |\n| Valve | Hugo Brand |",
    "run(x)", "Runs the pump.", "The manual.", '```python\nprint(":ref:`x`")\n```',
    "```\n.. include:: /etc/passwd\n```",
])  # fmt: skip
UNNAMED = "From: Ören <o@example.org>\nSubject: Grüße\nMIME-Version: 1.0\n\nDie Straße in Köln ist gesperrt.\n"
URI = "data:image/png;base64," + "iVBORw0KGgo" * 400
ENCODINGS = [
    ("iso8859_2", "Źródło rzeki leży w górach, gdzie inżynier Łukasz Żak zbudował młyn. Wieś jest mała i piękna.\n"),
    ("cp1250", "Źródło rzeki leży w górach, gdzie inżynier Łukasz Żak zbudował młyn. Wieś jest mała i piękna.\n"),
    ("cp1252", "Il fut un câble où le maître régnait. Où est l'élève? Il était à l'hôtel près du château."),
    ("cp1257", "Žąsys šąla pūgoje, o ąžuolas čia auga jau šimtą metų. Upė yra plati ir graži."),
    ("iso2022_jp", "みどり灯台は一九二三年に港の入口に建てられた。\n"),
    ("cp874", "สะพานไม้ริมคลองสร้างขึ้นในปี พ.ศ. 2475 โดยช่างไม้ชื่อสมชาย\n"),
]
ARTICLE = """<html lang="de"><head><title>Hafen Brenz · Zeitung</title>
<meta property="article:published_time" content="2021-04-03T10:00:00Z"></head><body>
<nav><a href="/">Startseite</a> <a href="/a">Anmelden</a></nav><article><h1>Hafen Brenz</h1>
<p style="display: none">versteckt</p><p hidden>auch versteckt</p>
<p>Ida Holm leitet den Hafen von Brenz seit vielen Jahren. Er hat neun Liegeplätze und zwei Kräne, und im Sommer kommen
die Fähren aus Lund. Die Stadt hat ihn im Jahr 1998 gebaut, weil der alte Kai für die neuen Schiffe zu kurz war.</p>
<table><tr><th>Jahr</th><th>Fähren</th></tr><tr><td>1998</td><td>4</td></tr></table></article>
<footer>Impressum und Datenschutz</footer></body></html>"""
ARTICLE_TEXT = """# Hafen Brenz

Ida Holm leitet den Hafen von Brenz seit vielen Jahren. Er hat neun Liegeplätze und zwei Kräne, und im Sommer kommen \
die Fähren aus Lund. Die Stadt hat ihn im Jahr 1998 gebaut, weil der alte Kai für die neuen Schiffe zu kurz war.

| Jahr | Fähren |\x20
|---|---|
| 1998 | 4 |"""
LEFT = [
    "The port of Brenz has nine",
    "berths and two cranes which",
    "were built by Ida Holm in",
    "the year of the great flood",
    "and stand.",
]
RIGHT = [
    "In summer the ferries come",
    "from Lund every day at noon",
    "and bring people who buy",
    "fish and look at the old",
    "quay and go.",
]
COLUMNS = [
    line
    for row, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True))
    for line in ((50, 700 - 14 * row, 10, left), (320, 700 - 14 * row, 10, right))
]  # fmt: skip
MAILBOX = "From ada@example.org Tue Mar  5 09:12:00 2024\n"
KINDS = [
    *(Kind(f"{encoding}.txt", text.encode(encoding), text, {"encoding": encoding}) for encoding, text in ENCODINGS),
    Kind("article.html", ARTICLE, ARTICLE_TEXT, {"title": "Hafen Brenz", "document_date": "2021-04-03", "language": "de"}),
    Kind("details.html", "<html><head><title>Pump</title></head><body><nav><a>Home</a></nav><p>Questions.</p><details><summary>Does it run?"
         "</summary><p>It does, since Monday at noon.</p></details></body></html>", "Questions.\n\nDoes it run?\n\nIt does, since Monday at noon."),
    Kind("permalink.html", "<html><body><nav><a>Home</a></nav><main><h1>Pump<a class='headerlink' href='#'>¶</a></h1><p>Does it <code>run</code>? "
         "It does.</p></main></body></html>", "# Pump\n\nDoes it run? It does.", {"title": "Pump"}),
    Kind("entries.csv", "Entries\n" + '"Entry. One met two, and three wrote."\n' * 30, "\n".join(["Entries: Entry. One met two, and three wrote."] * 30)),
    Kind("front.md", "---\ntitle: Bees\ndate: 2024-04-02\nlang: de-AT\ntags: [roof]\n---\n\n# A heading\n\nText.\n", "# A heading\n\nText.\n",
         {"title": "Bees", "document_date": "2024-04-02", "language": "de",
          "raw_data": {"date": "2024-04-02", "lang": "de-AT", "tags": ["roof"]}}),
    Kind("links.md", "See [the *site*](https://x.org/a_(b) 'A title') and ![a picture](p.png).\n`[code](x)` <!-- no -->\n",
         "See the *site* and a picture.\n`[code](x)` \n", {"raw_data": {"links": ["https://x.org/a_(b)"]}}),
    Kind("uris.md", f"A pic\u00adture: ![it]({URI})\u200b and <img src='{URI}'>", "A picture: it and <img src='[image/png, 3 kB]'>"),
    Kind("multi.md", "Title: The pump\n  of Ulm\nAuthor: Ada\nDate: 2024-03-05\n\nIt runs.\n", "It runs.\n",
         {"title": "The pump of Ulm", "document_date": "2024-03-05", "raw_data": {"author": "Ada", "date": "2024-03-05"}}),
    Kind("prose.md", "Note: it runs.\nAnswer: it does.\n\nText.\n", "Note: it runs.\nAnswer: it does.\n\nText.\n"),
    Kind("docinfo.rst", "The pump\n========\n\n:Author: Ada\n:Date: 2024-03-05\n:Version: 2\n\nIt runs.\n", "# The pump\n\nIt runs.",
         {"title": "The pump", "document_date": "2024-03-05", "raw_data": {"author": "Ada", "version": "2"}}),
    Kind("sphinx.rst", RST, RST_TEXT, {"title": "The pump"}),
    Kind("records.xml", "<?xml version='1.0' encoding='ISO-8859-1'?><list><city><name>Köln</name><n>3</n></city></list>".encode("latin-1"),
         "name: Köln\nn: 3"),
    Kind("catalog.xml", "<catalog><book><title>Book 0</title><section><title>Inner</title><table><tr><td>c1</td><td>c2</td></tr></table>"
         "</section><row><id>7</id></row></book></catalog>", "# Book 0\n\n# Inner\n\n| c1 | c2 |\n\nid: 7", {"title": "Book 0"}),
    Kind("articles.json", json.dumps([{"title": "A", "author": "Ada", "text": "The cable broke."},
         {"title": "B", "author": "Ben", "text": "It held."}]), "The cable broke.\nIt held.", {"title": "A"}),
    Kind("cur/1709626320.M1P1.host:2,S", f"{PLAIN}It runs.\n", "It runs.", {"title": "The pump ☸", "document_date": "2024-03-05", "format": "eml",
         "raw_data": {"from": "Ada <ada@example.org>", "to": "Ben <ben@example.org>", "message_id": "<1@example.org>"}}),
    Kind("two.mbox", f"{MAILBOX}{PLAIN}It runs.\n\n{MAILBOX}{PLAIN.replace('<1@', '<2@')}It stopped.\n", "It runs.\nIt stopped.", {"row_number": 1}),
    Kind("from.mbox", f"{MAILBOX}{PLAIN}It said:\n\n>From here on.\n\nFrom the start.\n", "It said:\n\nFrom here on.\n\nFrom the start."),
    *(Kind(f"{client}.eml", mail, "The pump runs.") for client, mail in MAILS.items()),
    *(Kind(f"{encoding}.eml", UNNAMED.encode(encoding), "Die Straße in Köln ist gesperrt.", {"title": "Grüße"}) for encoding in ("utf-8", "cp1252")),
    *(Kind(name, json.dumps(chat), "Ada: Good day.\nBen: Good day.", {"title": "Pumps"}) for name, chat in CHATS.items()),
    Kind("american.txt", "3/5/24, 9:12 PM - Ada: Yes.\n3/15/24, 9:13 PM - Ada: Yes.\n", "Ada: Yes.\nAda: Yes.",
         {"document_date": "2024-03-05", "places": ["2024-03-05 21:12:00", "2024-03-15 21:13:00"]}),
    Kind("impossible.txt", "30/2/24, 9:12 - Ada: Yes.\n15/3/24, 9:13 - Ada: No.\n", "Ada: Yes.\nAda: No.",
         {"document_date": "2024-03-15", "places": ["2024-03-15 09:13:00"]}),
    Kind("a.org", "# licence\n#+TITLE: Guide\n#+DATE: 2021-04-03\n* TODO Berths :tag:\n:PROPERTIES:\n:ID: 7\n:END:\nSee "
         "[[https://x.org][the *site*]].\n# no\n", "# Berths\n\nSee the site.", {"title": "Guide", "document_date": "2021-04-03", "encoding": "utf-8"}),
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
         "Methods</title><p>By <b>gauge</b>.</p><table><tr><th colspan='2'>Goats</th></tr><tr><td rowspan='2'>n</td><td>7</td></tr><tr><td>8</td></tr></table></sec>"
         "</body><ref><element-citation><surname>Rao</surname><year>2003</year></element-citation></ref></article>",
         "# Tides\n\n## Methods\n\nBy gauge.\n\n| Goats | Goats |\n| --- | --- |\n| n | 7 |\n| n | 8 |\n\nRao 2003",
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
    Kind("hash.csv", "#,Name,City\n1,Ada,Ulm\n2,Ben,Bonn\n", "#: 1. Name: Ada. City: Ulm.\n#: 2. Name: Ben. City: Bonn."),
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
    Kind("chat with a key.txt", f"05.03.24, 08:12 - Ada: {CODE}\n13.03.24, 08:13 - Ben: Yes.\n", "Ada: [data, 1 kB]\nBen: Yes.", {"starts": [0, 18]}),
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
         "Ada: Good day.\nBen: Good day.", {"places": ["2024-03-05 09:12:00", "2024-03-05 09:13:00"]}),
    Kind("key.txt", f"Apologies: Ida.\n-----BEGIN KEY-----\n{CODE[:64]}\n{CODE[64:128]}\n{CODE[:64]}\n{CODE[:64]}\nQQ==\n-----END-----\n",
         "Apologies: Ida.\n-----BEGIN KEY-----\n[data, 1 kB]\n-----END-----\n", {"raw_data": {"left_out": {"base64": 1}}}),
    Kind("hidden.html", "<html><head><title>T</title><style>.gone {display : none}</style></head><body><p class='gone'>no</p><noscript>no"
         "</noscript><p style='font-size:0'>no</p><p>The fee is ninety crowns.</p></body></html>", "The fee is ninety crowns."),
    Kind("rules.html", "<html><head><title>T</title><style>.night .text{display:none}/* .text{display:none} */@media print{.text{display:none}}"
         "@import 'x.css'; p.old, #top {display: none} @media screen{.no{display:none}}</style></head><body class='night'><p class='text'>The fee is ninety crowns.</p>"
         "<p class='a old'>no</p><p class='no'>no</p><div class='old'><p id='top'>no</p><p>It rose.</p></div></body></html>",
         "The fee is ninety crowns.\n\nIt rose."),
    Kind("tabs.html", f"<html><head><title>T</title><style>.tab{{display:none}}</style></head><body><script>{CODE}</script><p>Fees</p>"
         "<p class='tab'>The fee is ninety crowns.</p></body></html>", "Fees\n\nThe fee is ninety crowns."),
    Kind("nested.html", "<html><head><title>T</title><style>.old{display:none}</style></head><body><p>The fee is ninety crowns.</p>"
         "<div class='old'><p class='old'>It was eighty.</p></div></body></html>", "The fee is ninety crowns."),
    Kind("a.json", json.dumps([{"text": "A ticket.", "attachment": f"logo.png\n{CODE * 3}", "a": None, "b": ""}]), "A ticket.",
         {"raw_data": {"attachment": "logo.png\n[data, 1 kB]", "left_out": {"base64": 1}}}),
    Kind("arabic.html", ("<html><head><meta http-equiv=Content-Type content='text/html; charset=iso-8859-6'></head><body>"
         "وأعرب الاتحاد</body></html>").encode("iso8859-6"), "وأعرب الاتحاد", {"encoding": "iso8859-6"}),
    Kind("talk.ppt", old_file("talk.ppt"), "Landing at Valentia\n\nCaptain Anderson commanded the Great Eastern.\nЦель: связать Ирландию и "
         "Америку.\n\nNotes: Ask Mr. Field about the price.\n\nSecond slide\n\nA free text box, höher gelegt.",
         {"title": "The cable of 1866", "places": ["1", "2"]}),
    Kind("pages.pdf", pdf(*([(50, 780, 9, "Harbour news"), (50, 740, 12, title), (50, 700, 10, "It was mended in the har-"),
         (50, 686, 10, "bour."), (50, 20, 9, f"Page {n}")] for n, title in enumerate(["Cranes", "Berths", "Fees"], 1))),
         "Harbour news\n\n## Cranes\nIt was mended in the harbour.\nPage 1\n\n## Berths\nIt was mended in the harbour.\n\n## Fees\n"
         "It was mended in the harbour.", {"title": "Cranes", "places": ["1", "2", "3"]}),
    Kind("columns.pdf", pdf([(50, 740, 18, "The harbour of Brenz"), *COLUMNS]), "\n".join(["## The harbour of Brenz", *LEFT, *RIGHT])),
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
    row["starts"] = [place["start_char"] for place in row["places"]]
    row["raw_data"], row["places"] = json.loads(row["raw_data"] or "{}"), [place["value"] for place in row["places"]]
    row["document_date"] = row["document_date"] and str(row["document_date"])
    assert {name: row[name] for name in kind.others} == dict(kind.others)


CHAT = json.dumps(
    {"messages": [{"role": "user", "content": "Who was it?"}, {"role": "assistant", "content": "It was Field."}]}
)
PROBLEMS = {
    "a broken line among chats.jsonl": (f'{CHAT}\n{CHAT}\n{{"messages": [BROKEN\n', "malformed JSON", 2),
    "no header.csv": ("Ida,master,1999\nOtto,clerk,2001\n", "the table has no header: its columns are named column_1, column_2, …", 2),
    "one bad byte.txt": (
        "Zoë Falk paid €400 – “a fortune”.\n".encode() * 10 + b"caf\xe9\n", "1 byte not valid UTF-8, the first in line 11: shown as U+FFFD", 1,
    ),
    "damaged.xml": ("<book><para>One.</para><para>Two", "the XML is damaged at line 1", 1),
    "formulas.xlsx": (
        workbook(sheet_row(1, "Name", "Sum") + '<row r="2"><c r="A2" t="inlineStr"><is><t>Ida</t></is></c><c r="B2"><f>A1*2</f></c></row>'),
        "1 formulas of the workbook have no saved values: their cells are empty", 1,
    ),
    "broken.parquet": (b"PAR1", "not a readable Parquet file: Invalid Input Error: File 'the file' too small to be a Parquet file", 0),
    "locked.docx": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "the file is protected by a password", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_cannot_be_read_of_a_file_is_a_row(tmp_path: Path, name: str) -> None:
    content, error, n_documents = PROBLEMS[name]
    loaded = load(tmp_path, {name: content})
    assert loaded.errors["error"][0].startswith(error)
    assert loaded.documents.height == n_documents


@pytest.mark.parametrize("name", ["letter.doc", "letter.rtf"])
def test_a_letter_in_an_older_format_has_its_words_cells_and_notes_in_every_script(tmp_path: Path, name: str) -> None:
    (row,) = load(tmp_path, {name: old_file(name)}).documents.to_dicts()
    assert row["title"] == "Letter from Valentia"
    assert "laid by the William Corry at Foilhommerum.[^1]" in row["text"]  # the words of a link, without its field
    assert "Příliš žluťoučký kůň. Инженер Томсон был на борту." in row["text"]
    assert "Great Eastern | Anderson |" in row["text"]
    assert row["text"].endswith("[^1]: A bay of the island.")


def test_a_table_without_text_is_indexed_up_to_20000_rows_unless_asked_for(tmp_path: Path) -> None:
    rows = "n,city\n" + "".join(f"{n},Brenz\n" for n in range(20_001))
    error = only_error(load(tmp_path, {"a.csv": rows}))
    assert error["error"] == "20,001 rows without a column 'text'; the columns are: n, city"
    assert "PATTERN=*" in error["hint"]
    assert load(tmp_path, {"a.csv": rows}, text_column="a.csv=*, text").documents.height == 20_001


def test_the_text_column_may_differ_by_file(tmp_path: Path) -> None:
    files = {"mail/a.csv": "body,text\nOne.,x\n", "b.csv": "body,text\nx,Two.\n"}
    assert texts(load(tmp_path, dict(files), text_column="mail/*=body, text")) == ["Two.", "One."]


def test_sender_and_receiver_of_a_mail_are_in_the_context_of_its_text() -> None:
    files = [InMemoryFile("one/a.eml", f"{PLAIN}It runs.".encode())]
    _, text_units, _ = read_corpus("one", files, LoadOptions(), ChunkOptions(), WITHOUT_PROCESS)
    (context,) = text_units["context"]
    assert context.startswith("The pump ☸ (from: Ada <ada@example.org>; to: ")


def test_an_export_of_slack_has_the_names_of_its_users(tmp_path: Path) -> None:
    users = [{"id": "U1", "name": "ada", "profile": {"real_name": "Ada Lovelace"}}, {"id": "U2", "name": "ben"}]
    day = [
        {"type": "message", "subtype": "channel_join", "user": "U2", "ts": "1709626320.1", "text": "<@U2> has joined"},
        {"type": "message", "user": "U1", "ts": "1709626380.1", "text": "Hello <@U2> &amp; all"},
    ]
    files = {"users.json": users, "channels.json": [{"id": "C1", "name": "general"}], "general/2024-03-05.json": day}
    loaded = load(tmp_path, {f"slack/{name}": json.dumps(value) for name, value in files.items()})
    assert loaded.documents.select("title", "text").rows() == [("general 2024-03-05", "Ada Lovelace: Hello @ben & all")]
    assert loaded.errors.height == 0


def test_notes_of_a_speaker_follow_their_slide(tmp_path: Path) -> None:
    data = presentation(("The pump", "Say who paid."), ("The valve", ""), ("The seal", "Ida made it."))
    (row,) = load(tmp_path, {"a.pptx": data}).documents.iter_rows(named=True)
    first, second, third = [place["start_char"] for place in row["places"]]
    assert row["text"][first:second] == "## The pump\n\nNotes: Say who paid.\n\n"
    assert row["text"][second:third] == "## The valve\n\n"
    assert row["text"][third:] == "## The seal\n\nNotes: Ida made it."


def test_hidden_sheets_are_counted_once(tmp_path: Path) -> None:
    rows = sheet_row(1, "Name", "Item") + sheet_row(2, "Ida", "rope") + sheet_row(3, "Otto", "tar")
    metadata = load(tmp_path, {"a.xlsx": workbook(rows, hidden=True)}).documents["raw_data"]
    assert ["hidden_sheets" in str(values) for values in metadata] == [True, False]
