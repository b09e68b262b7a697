"""Mails with Python's email package: what the sender wrote, without quoted mails and signature, and the headers."""

import codecs
import re
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from email.message import EmailMessage, MIMEPart
from email.utils import parsedate_to_datetime

from mailparser_reply import EmailMessage as Correspondence

from graphrag_assets.reading.decoding import UnreadableError, decode
from graphrag_assets.reading.source_records import Problem, Record, filled
from graphrag_assets.reading.web import mail_text, read_page

_NO_TEXT = Problem("the mail has no text that can be read", "If it is encrypted, save it decrypted.")
_LANGUAGES = ["en", "cs", "da", "de", "es", "fr", "it", "ja", "ko", "nl", "pl", "sv", "zh"]
_SEPARATOR = re.compile(rb"(?:\A|\n\r?\n)From [^\n]+\n(?=[A-Za-z][A-Za-z0-9-]*:)")
_ESCAPED_FROM = re.compile(rb"^>(?=>*From )", re.MULTILINE)
_SIGNATURE = re.compile(r"^-- ?$", re.MULTILINE)
_SIGNATURE_LINES = 12  # of a signature without its mark; more are rather text after a phrase such as "Thanks,"
_QUOTED = re.compile(r"(?:^(?!>)[^\n]{1,200}:[ \t]*\n\s*)?(?:^>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_END = re.compile(
    r"^(?:_{20,}|-{3,} ?(?:forwarded|original|weitergeleitete|urspr)[^\n]*|begin forwarded message:) *$.*",
    re.MULTILINE | re.IGNORECASE | re.DOTALL,
)
"""Lines that begin a list's footer or a mail that is passed on."""


def read_mail(data: bytes) -> list[Record | Problem]:
    """Return the one document of a mail, or the problem that it has no text."""
    if count := re.match(rb"\d+\s*\n", data):  # a file of Apple Mail: the size of the mail, and its flags after it
        data = data[count.end() :][: int(count[0])]
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # saved as text by an editor
        data = data.decode("utf-16", "replace").encode()
    return [_document(data.removeprefix(codecs.BOM_UTF8), None)]


def read_saved_page(data: bytes) -> list[Record | Problem]:
    """Return the one document of a page that a browser saved as a mail, with its pictures attached."""
    message = message_from_bytes(data, policy=policy.default)
    assert isinstance(message, EmailMessage)
    page = next((part for part in _parts(message) if part.get_content_type() == "text/html"), None)
    return read_mail(data) if page is None else read_page(_content(page))


def read_mailbox(data: bytes) -> list[Record | Problem]:
    """Return a document for each message of a mailbox in the format mbox."""
    messages = [_ESCAPED_FROM.sub(b"", part) for part in _SEPARATOR.split(data) if part.strip()]
    return [_document(part, number) for number, part in enumerate(messages, start=1)]


def _document(data: bytes, number: int | None) -> Record | Problem:
    message = message_from_bytes(data, policy=policy.default)
    assert isinstance(message, EmailMessage)
    text = latest_message(_body(message))
    if not text:
        return Problem(_NO_TEXT.error, _NO_TEXT.hint, number)
    return Record(
        text,
        _header(message, "subject"),
        number,
        date=_date(message),
        metadata=filled(
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
    """Return the text of the plain part, else that of the HTML part, else that of the first attached text."""
    plain = next((part for part in _parts(message) if part.get_content_type() == "text/plain"), None)
    part = message.get_body(("plain", "html")) or plain
    if part is None:
        return ""
    content = _content(part)
    return mail_text(content) if part.get_content_subtype() == "html" and content.strip() else content


def _content(part: MIMEPart) -> str:
    """Return the text of a part; in the encoding that its bytes suggest where it names none, or a wrong one."""
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    try:
        return payload.decode(part.get_content_charset("ascii"))
    except (LookupError, UnicodeError):
        return _decoded(payload)


def _decoded(data: bytes) -> str:
    try:
        return decode(data).text
    except UnreadableError:
        return data.decode(errors="replace")


def latest_message(body: str) -> str:
    """Return what the sender wrote; all of a mail that only forwards another one."""
    body = body.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    replies = Correspondence(text=body, languages=_LANGUAGES, keep_hyphen_lists=True).read().replies
    latest = replies[0] if replies else None
    said = latest.content if latest else ""
    if latest and latest.body and latest.signatures.count("\n") < _SIGNATURE_LINES:
        said = latest.body
    said = _QUOTED.sub("", _END.sub("", _SIGNATURE.split(said)[0]))
    return re.sub(r"\n{3,}", "\n\n", said).strip() or body.strip()


def _header(message: EmailMessage, name: str) -> str | None:
    """Return a header as it is written, decoded: the parser of addresses drops what follows a wrong separator."""
    try:
        raw = next((str(value) for key, value in message.raw_items() if key.lower() == name), "")
        raw = _decoded(raw.encode("ascii", "surrogateescape")) if not raw.isascii() else raw
        value = str(make_header(decode_header(" ".join(raw.split()))))
    except Exception:  # malformed headers raise whatever their parser raises
        return None
    return " ".join(value.split()) or None


def _date(message: EmailMessage) -> str | None:
    try:
        return parsedate_to_datetime(str(message["date"])).date().isoformat()
    except (TypeError, ValueError, IndexError):
        return None
