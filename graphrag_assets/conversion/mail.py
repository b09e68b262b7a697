"""Mails with Python's email package: what the sender wrote, without quoted mails and signature, and the headers."""

import codecs
import re
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime

from mailparser_reply import EmailReplyParser

from graphrag_assets.conversion.web import page_record
from graphrag_assets.pipeline.source_records import Problem, Record, metadata_json

_NO_TEXT = Problem("the mail has no text that can be read", "If it is encrypted, save it decrypted.")
_LANGUAGES = ["en", "da", "de", "es", "fr", "it", "ja", "ko", "nl", "no", "pl", "pt", "sv", "zh"]
_SEPARATOR = re.compile(rb"(?:\A|\n\r?\n)From [^\n]+\n")
_SIGNATURE = re.compile(r"^-- ?$", re.MULTILINE)


def read_mail(data: bytes) -> list[Record | Problem]:
    """Return the one document of a mail, or the problem that it has no text."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # saved as text by an editor
        data = data.decode("utf-16", "replace").encode()
    return [_document(data.removeprefix(codecs.BOM_UTF8), None)]


def read_mailbox(data: bytes) -> list[Record | Problem]:
    """Return a document for each message of a mailbox in the format mbox."""
    messages = [part for part in _SEPARATOR.split(data) if part.strip()]
    return [_document(part, number) for number, part in enumerate(messages, start=1)]


def _document(data: bytes, number: int | None) -> Record | Problem:
    message = message_from_bytes(data, policy=policy.default)
    assert isinstance(message, EmailMessage)
    text = _said(_body(message))
    if not text:
        return Problem(_NO_TEXT.error, _NO_TEXT.hint, number)
    return Record(
        text,
        _header(message, "subject"),
        number,
        date=_date(message),
        raw_data=metadata_json(
            {
                **{name: _header(message, name) for name in ("from", "to", "cc")},
                "message_id": _header(message, "message-id"),
                "attachments": [name for part in _parts(message) if (name := part.get_filename())],
            }
        ),
    )


def _parts(message: EmailMessage) -> Iterator[EmailMessage]:
    for part in message.walk():
        if isinstance(part, EmailMessage) and not part.is_multipart():
            yield part


def _body(message: EmailMessage) -> str:
    """Return the text of the plain part, else that of the HTML part."""
    part = message.get_body(("plain", "html"))
    if part is None:
        return ""
    try:
        content = str(part.get_content())
    except (LookupError, UnicodeError, KeyError):  # an unknown character set, or a part that is no text
        payload = part.get_payload(decode=True)
        content = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
    return page_record(content).text if part.get_content_subtype() == "html" and content.strip() else content


def _said(body: str) -> str:
    """Return what the sender wrote; all of a mail that only forwards another one."""
    body = body.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    latest = EmailReplyParser(languages=_LANGUAGES).parse_reply(text=body) or ""
    return _SIGNATURE.split(latest)[0].strip() or body.strip()


def _header(message: EmailMessage, name: str) -> str | None:
    try:
        value = message[name]
    except Exception:  # malformed headers raise whatever their parser raises
        return None
    return " ".join(str(value).split()) or None if value is not None else None


def _date(message: EmailMessage) -> str | None:
    try:
        return parsedate_to_datetime(str(message["date"])).date().isoformat()
    except (TypeError, ValueError, IndexError):
        return None
