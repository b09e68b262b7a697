"""Chats: exports of Slack, Teams and WhatsApp, and lists of messages in JSON, to one document each.

A line of the document is a message: the speaker, a colon, and the text. Its time is a place.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from graphrag_assets.pipeline.source_records import Place, Record, metadata_json

_SPEAKERS = ("role", "speaker", "sender", "from", "user", "username", "sender_name", "author")
_TEXTS = ("text", "content", "message", "body")
_TIMES = ("ts", "timestamp", "timestamp_ms", "time", "date", "created_at", "createdDateTime", "createdAt", "sent")
_WHATSAPP = re.compile(
    r"^\u200e?\[?(\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? \d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:[ \u202f]?[AaPp]\.?[Mm]\.?)?)\]?"
    r"(?: - | )([^:\n]{1,60}): (.*)$",
    re.MULTILINE,
)
_NOTICE = re.compile(r"^\u200e?\[?\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? \d{1,2}[:.]\d\d.*$")
_MIN_MESSAGES = 2
_SLACK_LINK = re.compile(r"<((?:https?|mailto):[^|>]+)(?:\|([^>]+))?>")
_SLACK_NAME = re.compile(r"<([@#!])([^|>]+)(?:\|([^>]+))?>")
_TAG = re.compile(r"<[^>\n]+>")


class _Message(NamedTuple):
    speaker: str
    text: str
    time: str


def whatsapp_record(text: str) -> Record | None:
    """Return the chat of an export of WhatsApp; None if the text is none."""
    lines = text.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if not _NOTICE.match(first) or len(_WHATSAPP.findall(text)) < _MIN_MESSAGES:
        return None
    messages: list[_Message] = []
    for line in lines:
        if found := _WHATSAPP.match(line):
            messages.append(_Message(found[2].strip(), found[3].strip(), found[1]))
        elif messages and line.strip() and not _NOTICE.match(line):
            messages[-1] = messages[-1]._replace(text=f"{messages[-1].text} {line.strip()}")
    return _chat(messages)


def json_chat(value: Any) -> Record | None:
    """Return the chat of a JSON value, a list of messages or an object with one; None if it is none.

    Messages have a speaker, a text and a time, or a role and a content.
    """
    title = value.get("name") or value.get("title") or value.get("topic") if isinstance(value, Mapping) else None
    items = value.get("messages", value.get("value")) if isinstance(value, Mapping) else value
    if not isinstance(items, list) or len(items) < _MIN_MESSAGES or not all(isinstance(one, Mapping) for one in items):
        return None
    names = {
        str(one["user"]): str(profile.get("real_name") or profile.get("display_name"))
        for one in items
        if isinstance(profile := one.get("user_profile"), Mapping) and one.get("user")
        if profile.get("real_name") or profile.get("display_name")
    }
    messages = [message for one in items if (message := _message(one, names))]
    if len(messages) < _MIN_MESSAGES or 2 * len(messages) < len(items):
        return None
    return _chat(messages, title if isinstance(title, str) else None)


def _message(item: Mapping[str, Any], names: Mapping[str, str]) -> _Message | None:
    speaker = next((name for key in _SPEAKERS if (name := _speaker(item.get(key), names))), "")
    text = next((text for key in _TEXTS if (text := _text(item.get(key), names))), "")
    time = next((time for key in _TIMES if (time := _time(item.get(key)))), "")
    return _Message(speaker, text, time) if speaker and text and (time or "role" in item) else None


def _speaker(value: Any, names: Mapping[str, str]) -> str:
    if isinstance(value, Mapping):  # Teams: {"user": {"displayName": …}}
        nested = [value.get("displayName"), value.get("name"), *value.values()]
        return next((name for one in nested if (name := _speaker(one, names))), "")
    return " ".join(names.get(value, value).split())[:60] if isinstance(value, str) else ""


def _text(value: Any, names: Mapping[str, str]) -> str:
    if isinstance(value, Mapping):  # Teams: {"contentType": "html", "content": …}
        value = _TAG.sub(" ", str(value.get("content") or ""))
    if isinstance(value, list):  # parts, as of chat models and of Telegram
        parts = (one.get("text") if isinstance(one, Mapping) else one for one in value)
        value = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(value, str):
        return ""
    text = _SLACK_LINK.sub(lambda link: link[2] or link[1], value)
    text = _SLACK_NAME.sub(lambda name: f"{name[1]}{name[3] or names.get(name[2], name[2])}", text)
    return " ".join(text.split())


def _time(value: Any) -> str:
    """Return a time as it is written; seconds or milliseconds since 1970 in ISO 8601."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return value.strip()[:19].replace("T", " ") if isinstance(value, str) else ""
    seconds = seconds / 1000 if seconds > 1e11 else seconds
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S") if seconds > 1e8 else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _chat(messages: Iterable[_Message], title: str | None = None) -> Record:
    text, places, speakers = "", [], dict[str, None]()
    for message in messages:
        text += "\n" if text else ""
        if message.time:
            places.append(Place(len(text), "time", message.time))
        speakers[message.speaker] = None
        text += f"{message.speaker}: {message.text}"
    date = next((place.value[:10] for place in places), None)
    return Record(text, title, date=date, raw_data=metadata_json({"speakers": list(speakers)}), places=tuple(places))
