"""Files as the programs of people write them, one kind each: what a reader finds in them."""

import json
from pathlib import Path

import pytest

from tests.pipeline.test_loading import load, texts
from tests.reading.packages import presentation

HEAD = "From: Ada <ada@example.org>\nTo: Ben <ben@example.org>\nSubject: Pump\nDate: Tue, 5 Mar 2024 09:12:00 +0100\n"
PLAIN = f"{HEAD}Content-Type: text/plain; charset=utf-8\n\n"
HTML = f"{HEAD}MIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n"
MAILS = {
    "Gmail": f"{HTML}<div>The pump runs.<br></div><div class='gmail_quote'>On Monday Ben &lt;<a href='m'>b@x.org</a>&gt; wrote:"
    "<blockquote class='gmail_quote'>Does it run?</blockquote></div>",
    "Outlook": f"{HTML}<div><p>The pump runs.</p><div><div style='border:none;border-top:solid #E1E1E1 1.0pt'><p><b>From:</b> "
    "Ben<br><b>Sent:</b> Monday<br></p></div></div><p>Does it run?</p></div>",
    "answers between quotes": f"{PLAIN}Ben wrote:\n> Does it\n> run?\n\nThe pump runs.\n\n____________________\ndev list\n",
    "forwarded": f"{PLAIN}The pump runs.\n\n---------- Forwarded message ---------\nFrom: Eve\n\nAn offer.\n",
    "a phrase of farewell": f"{PLAIN}The pump runs.\n\nKind regards,\n\nAda Example\nHead of pumps\n",
    "a name with its address": f"{PLAIN}The pump runs.\n\nBen <ben@example.org> wrote:\n\n> Does it run?\n",
    "a text that is only attached": f"{HEAD}MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=z\n\n--z\n"
    "Content-Type: text/plain\nContent-Disposition: attachment; filename=a.txt\n\nThe pump runs.\n--z--\n",
}


@pytest.mark.parametrize("client", MAILS)
def test_a_mail_of_any_client_is_what_its_sender_wrote(tmp_path: Path, client: str) -> None:
    assert texts(load(tmp_path, {"a.eml": MAILS[client]})) == ["The pump runs."]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_a_mail_that_names_no_encoding_is_read_in_the_likeliest(tmp_path: Path, encoding: str) -> None:
    mail = "From: Ören <o@example.org>\nSubject: Grüße\nMIME-Version: 1.0\n\nDie Straße in Köln ist gesperrt.\n"
    loaded = load(tmp_path, {"a.eml": mail.encode(encoding)})
    assert texts(loaded) == ["Die Straße in Köln ist gesperrt."]
    assert loaded.documents["title"].to_list() == ["Grüße"]


def test_a_line_that_begins_with_from_parts_no_mailbox(tmp_path: Path) -> None:
    mailbox = f"From ada@example.org Tue Mar  5 09:12:00 2024\n{PLAIN}It said:\n\n>From here on.\n\nFrom the start.\n"
    assert texts(load(tmp_path, {"a.mbox": mailbox})) == ["It said:\n\nFrom here on.\n\nFrom the start."]


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


TALK = {"date": "2024-03-05T09:12:00", "from": "Ada", "text": ["Good ", {"type": "bold", "text": "day."}]}
ANSWER = {"date": "2024-03-05T09:13:00", "from": "Ben", "text": "Good day."}
NODE = {"author": {"role": "Ada"}, "content": {"content_type": "text", "parts": ["Good day."]}, "create_time": 1.7e9}
CHATS = {
    "telegram.json": {"chats": {"list": [{"name": "Pumps", "messages": [TALK, ANSWER]}]}},
    "discord.json": {
        "channel": {"name": "Pumps"},
        "messages": [
            {
                "timestamp": "2024-03-05T09:12:00+00:00",
                "content": "Good day.",
                "author": {"name": "a", "nickname": "Ada"},
            },
            {"timestamp": "2024-03-05T09:13:00+00:00", "content": "Good day.", "author": {"name": "Ben"}},
        ],
    },
    "messenger.json": {
        "title": "Pumps",
        "messages": [
            {"sender_name": "Ben", "timestamp_ms": 1709630000000, "content": "Good day."},
            {"sender_name": "Ada", "timestamp_ms": 1709620000000, "content": "Good day."},
        ],
    },
    "chatgpt.json": [
        {
            "title": "Pumps",
            "mapping": {
                "b": {"message": {**NODE, "author": {"role": "Ben"}, "create_time": 1.7e9 + 1}},
                "a": {"message": NODE},
            },
        }
    ],
}


@pytest.mark.parametrize("name", CHATS)
def test_chats_of_messengers_and_assistants_are_lines_in_the_order_of_time(tmp_path: Path, name: str) -> None:
    loaded = load(tmp_path, {name: json.dumps(CHATS[name])})
    assert loaded.documents.select("title", "text").rows() == [("Pumps", "Ada: Good day.\nBen: Good day.")]


@pytest.mark.parametrize("stamps", [("3/5/24, 9:12 PM", "3/15/24, 9:13 PM"), ("05.03.24, 21:12", "15.03.24, 21:13")])
def test_times_of_whatsapp_are_dates_where_the_order_of_day_and_month_is_certain(
    tmp_path: Path, stamps: tuple[str, str]
) -> None:
    (row,) = load(tmp_path, {"a.txt": "".join(f"{at} - Ada: Yes.\n" for at in stamps)}).documents.iter_rows(named=True)
    assert [place["value"] for place in row["places"]] == ["2024-03-05 21:12:00", "2024-03-15 21:13:00"]
    assert str(row["document_date"]) == "2024-03-05"


def test_xml_of_records_is_names_and_values_in_its_own_encoding(tmp_path: Path) -> None:
    data = "<?xml version='1.0' encoding='ISO-8859-1'?><list><city><name>Köln</name><n>3</n></city></list>"
    assert texts(load(tmp_path, {"a.xml": data.encode("latin-1")})) == ["name: Köln\nn: 3"]


PAGES = {
    "details": "<p>Questions.</p><details><summary>Does it run?</summary><p>It does, since Monday at noon.</p></details>",
    "links to headings": "<main><h1>Pump<a class='headerlink' href='#'>¶</a></h1><p>Does it <code>run</code>? It does.</p></main>",
}


@pytest.mark.parametrize("name", PAGES)
def test_short_pages_are_whole_and_without_navigation(tmp_path: Path, name: str) -> None:
    page = f"<html><head><title>Pump</title></head><body><nav><a>Home</a></nav>{PAGES[name]}</body></html>"
    (row,) = load(tmp_path, {"a.html": page}).documents.iter_rows(named=True)
    assert row["title"] == "Pump"
    assert "Does it run?" in row["text"]
    assert not any(word in row["text"] for word in ("Home", "¶"))


@pytest.mark.parametrize("header", ["text", "Entries"])
def test_a_table_of_one_column_whose_rows_have_commas_begins_with_its_header(tmp_path: Path, header: str) -> None:
    rows = "".join(f'"Entry {number}. One met two, and three wrote."\n' for number in range(30))
    loaded = load(tmp_path, {"a.csv": f"{header}\n{rows}"})
    assert [text.count("met") for text in texts(loaded)] == [1] * 30


RST = """The pump
========

See :ref:`the valve <valve>`, :func:`~pump.run` and :doc:`start`.

.. list-table:: Parts
   :header-rows: 1

   * - Part
     - Maker
   * - Valve
     - Hugo Brand

.. csv-table::
   :header: "Name", "City"

   "Ada", "Ulm"

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


def test_tables_references_and_directives_of_sphinx_are_in_the_text_of_restructured_text(tmp_path: Path) -> None:
    (row,) = load(tmp_path, {"a.rst": RST}).documents.iter_rows(named=True)
    assert row["title"] == "The pump"
    assert row["text"].split("\n\n") == [
        "# The pump",
        "See the valve, run and start.",
        "Parts",
        "| Part | Maker |\n| --- | --- |\n| Valve | Hugo Brand |",
        "| Name | City |\n| --- | --- |\n| Ada | Ulm |",
        "run(x)",
        "Runs the pump.",
        "The manual.",
        '```python\nprint(":ref:`x`")\n```',
        "```\n.. include:: /etc/passwd\n```",
    ]


def test_docinfo_of_restructured_text_is_metadata(tmp_path: Path) -> None:
    text = "The pump\n========\n\n:Author: Ada\n:Date: 2024-03-05\n:Version: 2\n\nIt runs.\n"
    (row,) = load(tmp_path, {"a.rst": text}).documents.iter_rows(named=True)
    assert (row["title"], row["text"], str(row["document_date"])) == (
        "The pump",
        "# The pump\n\nIt runs.",
        "2024-03-05",
    )
    assert json.loads(row["raw_data"]) == {"author": "Ada", "version": "2"}


def test_a_block_of_multimarkdown_is_metadata(tmp_path: Path) -> None:
    text = "Title: The pump\n  of Ulm\nAuthor: Ada\nDate: 2024-03-05\n\nIt runs.\n"
    prose = "Note: it runs.\nAnswer: it does.\n\nText.\n"
    loaded = load(tmp_path, {"a.md": text, "b.md": prose})
    first, second = loaded.documents.iter_rows(named=True)
    assert (first["title"], first["text"], str(first["document_date"])) == (
        "The pump of Ulm",
        "It runs.\n",
        "2024-03-05",
    )
    assert json.loads(first["raw_data"])["author"] == "Ada"
    assert second["text"] == prose


def test_notes_of_a_speaker_follow_their_slide(tmp_path: Path) -> None:
    data = presentation(("The pump", "Say who paid."), ("The valve", ""), ("The seal", "Ida made it."))
    (row,) = load(tmp_path, {"a.pptx": data}).documents.iter_rows(named=True)
    first, second, third = [place["start_char"] for place in row["places"]]
    assert row["text"][first:second] == "## The pump\n\nNotes: Say who paid.\n\n"
    assert row["text"][second:third] == "## The valve\n\n"
    assert row["text"][third:] == "## The seal\n\nNotes: Ida made it."
