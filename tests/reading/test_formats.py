"""What is read from files of each kind: text, title, date, places and metadata."""

import json
from datetime import date
from pathlib import Path

import pytest

from graphrag_assets.pipeline.batch import read_corpus
from graphrag_assets.pipeline.chunking import ChunkOptions
from graphrag_assets.pipeline.loading import LoadOptions
from tests.pipeline.test_loading import WITHOUT_PROCESS, InMemoryFile, load, only_error, texts


def test_front_matter_is_metadata_and_not_text(tmp_path: Path) -> None:
    page = "---\ntitle: Bees\ndate: 2024-04-02\nlang: de-AT\ntags: [roof]\n---\n\n# A heading\n\nText.\n"
    (row,) = load(tmp_path, {"index.md": page}).documents.iter_rows(named=True)
    assert (row["title"], row["text"]) == ("Bees", "# A heading\n\nText.\n")
    assert (row["document_date"], row["language"]) == (date(2024, 4, 2), "de")
    assert json.loads(row["raw_data"]) == {"date": "2024-04-02", "lang": "de-AT", "tags": ["roof"]}


def test_targets_of_links_are_metadata_and_not_text(tmp_path: Path) -> None:
    page = "See [the *site*](https://x.org/a_(b) 'A title') and ![a picture](p.png).\n`[code](x)` <!-- no -->\n"
    (row,) = load(tmp_path, {"a.md": page}).documents.iter_rows(named=True)
    assert row["text"] == "See the *site* and a picture.\n`[code](x)` \n"
    assert json.loads(row["raw_data"]) == {"links": ["https://x.org/a_(b)"]}


def test_data_uris_and_invisible_characters_are_no_text(tmp_path: Path) -> None:
    data = "data:image/png;base64," + "iVBORw0KGgo" * 400
    loaded = load(tmp_path, {"a.md": f"A pic\u00adture: ![it]({data})\u200b and <img src='{data}'>"})
    assert texts(loaded) == ["A picture: it and <img src='[image/png, 3 kB]'>"]


PAGE = """<html lang="de"><head><title>Hafen Brenz · Zeitung</title>
<meta property="article:published_time" content="2021-04-03T10:00:00Z"></head><body>
<nav><a href="/">Startseite</a> <a href="/a">Anmelden</a></nav><article><h1>Hafen Brenz</h1>
<p style="display: none">versteckt</p><p hidden>auch versteckt</p>
<p>Ida Holm leitet den Hafen von Brenz seit vielen Jahren. Er hat neun Liegeplätze und zwei Kräne, und im Sommer kommen
die Fähren aus Lund. Die Stadt hat ihn im Jahr 1998 gebaut, weil der alte Kai für die neuen Schiffe zu kurz war.</p>
<table><tr><th>Jahr</th><th>Fähren</th></tr><tr><td>1998</td><td>4</td></tr></table></article>
<footer>Impressum und Datenschutz</footer></body></html>"""


def test_a_web_page_is_its_article_with_title_date_and_language(tmp_path: Path) -> None:
    (row,) = load(tmp_path, {"a.html": PAGE}).documents.iter_rows(named=True)
    assert (row["title"], row["document_date"], row["language"]) == ("Hafen Brenz", date(2021, 4, 3), "de")
    assert "Liegeplätze" in row["text"]
    assert "1998 | 4" in row["text"]
    assert not any(word in row["text"] for word in ("versteckt", "Anmelden", "Impressum"))


MAIL = """From: Ada Example <ada@example.org>
To: Ben Example <ben@example.org>
Subject: =?utf-8?q?The_pump_=E2=98=B8?=
Date: Tue, 5 Mar 2024 09:12:00 +0100
Message-ID: <1@example.org>
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8

The pump runs again since Monday.

On Mon, 4 Mar 2024 at 17:01, Ben Example wrote:
> Does the pump in hall 4 run?

--
Ada Example
Head of maintenance
"""


@pytest.mark.parametrize("name", ["a.eml", "cur/1709626320.M1P1.host:2,S", "a mail"])
def test_a_mail_is_what_its_sender_wrote(tmp_path: Path, name: str) -> None:
    (row,) = load(tmp_path, {name: MAIL}).documents.iter_rows(named=True)
    assert (row["title"], row["text"]) == ("The pump ☸", "The pump runs again since Monday.")
    assert (row["document_date"], row["format"]) == (date(2024, 3, 5), "eml")
    assert json.loads(row["raw_data"])["from"] == "Ada Example <ada@example.org>"


def test_sender_and_receiver_of_a_mail_are_in_the_context_of_its_text() -> None:
    files = [InMemoryFile("one/a.eml", MAIL.encode())]
    _, text_units, _ = read_corpus("one", files, LoadOptions(), ChunkOptions(), WITHOUT_PROCESS)
    (context,) = text_units["context"]
    assert context.startswith("The pump ☸ (from: Ada Example <ada@example.org>; to: ")


def test_a_mailbox_is_a_document_for_each_message(tmp_path: Path) -> None:
    second = MAIL.replace("The pump runs again since Monday.", "It stopped.").replace("<1@", "<2@")
    mailbox = f"From ada@example.org Tue Mar  5 09:12:00 2024\n{MAIL}\nFrom ada@example.org Tue Mar  5 10:12:00 2024\n{second}"
    loaded = load(tmp_path, {"a.mbox": mailbox})
    assert texts(loaded) == ["The pump runs again since Monday.", "It stopped."]
    assert loaded.documents["row_number"].to_list() == [1, 2]


def test_a_list_of_articles_with_authors_stays_a_document_each(tmp_path: Path) -> None:
    rows = [
        {"title": "A", "author": "Ada", "text": "The cable broke."},
        {"title": "B", "author": "Ben", "text": "It held."},
    ]
    assert texts(load(tmp_path, {"a.json": json.dumps(rows)})) == ["The cable broke.", "It held."]


def test_a_table_without_text_is_indexed_up_to_20000_rows_unless_asked_for(tmp_path: Path) -> None:
    rows = "n,city\n" + "".join(f"{n},Brenz\n" for n in range(20_001))
    error = only_error(load(tmp_path, {"a.csv": rows}))
    assert error["error"] == "20,001 rows without a column 'text'; the columns are: n, city"
    assert "PATTERN=*" in error["hint"]
    assert load(tmp_path, {"a.csv": rows}, text_column="a.csv=*, text").documents.height == 20_001


def test_the_text_column_may_differ_by_file(tmp_path: Path) -> None:
    files = {"mail/a.csv": "body,text\nOne.,x\n", "b.csv": "body,text\nx,Two.\n"}
    assert texts(load(tmp_path, dict(files), text_column="mail/*=body, text")) == ["Two.", "One."]


def test_a_file_that_is_utf8_but_for_single_bytes_stays_utf8_with_a_row(tmp_path: Path) -> None:
    good = "Zoë Falk paid €400 – “a fortune”.\n".encode() * 10
    loaded = load(tmp_path, {"a.txt": good + b"caf\xe9\n"})
    assert loaded.documents["encoding"].to_list() == ["utf-8"]
    assert texts(loaded) == [good.decode() + "caf\N{REPLACEMENT CHARACTER}\n"]
    assert loaded.errors.select("stage", "error").rows() == [
        ("encoding", "1 byte not valid UTF-8, the first in line 11: shown as U+FFFD")
    ]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        (
            "iso8859_2",
            "Źródło rzeki leży w górach, gdzie inżynier Łukasz Żak zbudował młyn. Wieś jest mała i piękna.\n",
        ),
        ("cp1250", "Źródło rzeki leży w górach, gdzie inżynier Łukasz Żak zbudował młyn. Wieś jest mała i piękna.\n"),
        ("cp1252", "Il fut un câble où le maître régnait. Où est l'élève? Il était à l'hôtel près du château."),
        ("iso8859_2", "Příliš žluťoučký kůň úpěl ďábelské ódy. Město leží na řece a má starý hrad z roku 1300."),
        ("cp1257", "Žąsys šąla pūgoje, o ąžuolas čia auga jau šimtą metų. Upė yra plati ir graži."),
        ("iso2022_jp", "みどり灯台は一九二三年に港の入口に建てられた。\n"),
        ("cp874", "สะพานไม้ริมคลองสร้างขึ้นในปี พ.ศ. 2475 โดยช่างไม้ชื่อสมชาย\n"),
        ("cp1252", "Die Müllers zahlten 400 € für „ein Vermögen“ – und das war’s, größer ging es nicht.\n"),
    ],
)
def test_the_letters_of_a_language_decide_the_encoding_of_a_text(tmp_path: Path, encoding: str, text: str) -> None:
    assert texts(load(tmp_path, {"a.txt": text.encode(encoding)})) == [text]
