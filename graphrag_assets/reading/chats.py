"""Chats: exports of messengers and assistants, and lists of messages in JSON, to one document for each chat.

A line of the document is a message: the speaker, a colon, and the text. Its time is a place.
"""

import re
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from itertools import pairwise
from typing import Any, NamedTuple

from graphrag_assets.reading.source_records import Place, Record, metadata_json

_SPEAKERS = (
    *("role", "speaker", "sender", "from", "user", "username", "user_name", "sender_name", "author", "creator"),
)
_TEXTS = ("text", "content", "message", "body", "value")
_TIMES = (
    *("ts", "timestamp", "timestamp_ms", "time", "date", "created_at", "createdDateTime", "createdAt", "sent"),
    *("create_time", "created_date", "origin_server_ts", "originalarrivaltime", "start", "datetime"),
)
_LISTS = ("messages", "value", "chat_messages", "MessageList", "conversation", "conversations", "transcript")
_TITLES = ("name", "title", "topic", "displayName")
_ROLES = frozenset({"system", "user", "assistant", "human", "gpt", "tool", "ai", "bot"})
_MOVES = re.compile(r"(?:channel|group)_(?:join|leave|archive|unarchive|name|topic|purpose)")
"""Messages of Slack that say who has come and gone."""
_WHATSAPP = re.compile(
    r"^\u200e?\[?(\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? \d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:[ \u202f]?[AaPp]\.?[Mm]\.?)?)\]?"
    r"(?: - | )([^:\n]{1,60}): (.*)$",
    re.MULTILINE,
)
_NOTICE = re.compile(r"^\u200e?\[?\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? \d{1,2}[:.]\d\d.*$")
_STAMP = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4}),? (.*)")
_CLOCK = re.compile(r"(\d{1,2})[:.](\d\d)(?:[:.](\d\d))? ?(?:([ap])\.?m\.?)?", re.IGNORECASE)
_MIN_MESSAGES = 2
_LONG = 2000  # characters of a message; where most are longer, they are articles
_SLACK_LINK = re.compile(r"<((?:https?|mailto):[^|>]+)(?:\|([^>]+))?>")
_SLACK_NAME = re.compile(r"<([@#!])([^|>]+)(?:\|([^>]+))?>")
_TAG = re.compile(r"<[^>\n]+>")
SLACK_USERS = "users.json"
SLACK_LISTS = frozenset((
    "users.json", "channels.json", "groups.json", "dms.json", "mpims.json", "integration_logs.json", "canvases.json",
    "lists.json", "org_users.json", "file_conversations.json",
))  # fmt: skip
"""Files of an export of Slack that hold no messages, in the folder of its channels."""


class _Message(NamedTuple):
    speaker: str
    text: str
    time: str


def whatsapp_record(text: str) -> Record | None:
    """Return the chat of an export of WhatsApp; None if the text is none."""
    lines = text.replace("\u202f", " ").split("\n")
    first = next((line for line in lines if line.strip()), "")
    if not _NOTICE.match(first) or len(_WHATSAPP.findall(text)) < _MIN_MESSAGES:
        return None
    messages: list[_Message] = []
    for line in lines:
        if message := _WHATSAPP.match(line):
            messages.append(_Message(message[2].strip(), message[3].strip("\u200e \t"), message[1]))
        elif messages and line.strip() and not _NOTICE.match(line):
            messages[-1] = messages[-1]._replace(text=f"{messages[-1].text} {line.strip()}")
    return _chat(_in_iso(messages))


def _in_iso(messages: list[_Message]) -> list[_Message]:
    """Return messages with times in ISO 8601 if the order of day and month is certain from any of them."""
    stamps = [_STAMP.fullmatch(message.time) for message in messages]
    days = [(int(stamp[1]), int(stamp[3]), stamp[2]) for stamp in stamps if stamp]
    if any(first > 31 for first, _, _ in days):
        order = (1, 3, 4)
    elif any(first > 12 or mark == "." for first, _, mark in days):
        order = (4, 3, 1)
    elif any(second > 12 for _, second, _ in days):
        order = (4, 1, 3)
    else:
        return messages
    return [
        message._replace(time=_iso(stamp, order) or message.time)
        for message, stamp in zip(messages, stamps, strict=True)
    ]


def _iso(stamp: re.Match[str] | None, order: tuple[int, int, int]) -> str | None:
    clock = _CLOCK.fullmatch(stamp[5]) if stamp else None
    if not stamp or not clock:
        return None
    year, month, day = (int(stamp[place]) for place in order)
    hour = int(clock[1]) if not clock[4] else int(clock[1]) % 12 + 12 * (clock[4].lower() == "p")
    try:
        time = datetime(year + 2000 * (year < 100), month, day, hour, int(clock[2]), int(clock[3] or 0))
    except ValueError:
        return None
    return str(time)


def slack_names(value: Any) -> dict[str, str] | None:
    """Return the names of the users of an export of Slack by their ids; None if the value is no list of users."""
    if not isinstance(value, list) or not all(isinstance(one, Mapping) and "id" in one for one in value):
        return None
    return {str(one["id"]): name for one in value if (name := _profile_name(one))}


def _profile_name(user: Mapping[str, Any]) -> str:
    profile = user["profile"] if isinstance(user.get("profile"), Mapping) else {}
    names = (profile.get("real_name"), user.get("real_name"), profile.get("display_name"), user.get("name"))
    return next((name for name in names if isinstance(name, str) and name), "")


def json_chats(value: Any, slack: Mapping[str, str] | None = None) -> list[Record]:
    """Return the chats of a JSON value: a list of messages, an object with one, or several such objects.

    Messages have a speaker, a text and a time, or a role and a content. `slack`: the value is a day of a channel of an
    export of Slack, whose users have these names.
    """
    if chat := _chat_of(value, slack):
        return [chat]
    if isinstance(value, Mapping):  # all chats of an account
        inner = (item.get("list") if isinstance(item, Mapping) else item for item in value.values())
        lists = [item for item in inner if isinstance(item, list) and item]
    else:
        lists = [value] if isinstance(value, list) else []
    for chats in lists:
        records = [_chat_of(one, None) for one in chats if isinstance(one, Mapping)]
        if 2 * sum(map(bool, records)) > len(chats):
            return [record for record in records if record]
    return []


def _chat_of(value: Any, slack: Mapping[str, str] | None) -> Record | None:
    title, items = None, value
    if isinstance(value, Mapping):
        channel = value.get("channel")
        titles = [channel.get("name") if isinstance(channel, Mapping) else None, *(value.get(name) for name in _TITLES)]
        title = next((title for title in titles if isinstance(title, str) and title), None)
        items = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None) or _tree(value)
    least = _MIN_MESSAGES if slack is None else 1
    if not isinstance(items, list) or len(items) < least or not all(isinstance(one, Mapping) for one in items):
        return None
    names = dict(slack or {}) | {
        str(one["user"]): name
        for one in items
        if isinstance(profile := one.get("user_profile"), Mapping) and one.get("user")
        if (name := _profile_name({"profile": profile}))
    }
    items = [one for one in items if not _MOVES.fullmatch(str(one.get("subtype")))]
    messages = [message for one in items if (message := _message(one, names))]
    if len(messages) < least or 2 * len(messages) < len(items) or any("title" in one for one in items):
        return None
    if statistics.median(len(message.text) for message in messages) > _LONG:
        return None
    if items and "sender_name" in items[0]:  # Messenger writes UTF-8 as Latin-1
        messages = [_Message(*map(_repaired, message)) for message in messages]
        title = _repaired(title or "") or None
    if len(messages) > 1 and all(one.time > other.time for one, other in pairwise(messages)):
        messages.reverse()  # the newest first
    return _chat(messages, title)


def _tree(value: Mapping[str, Any]) -> list[Any] | None:
    """Return the messages of a conversation with ChatGPT, whose nodes are a tree, by their times."""
    nodes = value.get("mapping")
    if not isinstance(nodes, Mapping):
        return None
    messages = [node.get("message") for node in nodes.values() if isinstance(node, Mapping)]
    dated = [one for one in messages if isinstance(one, Mapping) and isinstance(one.get("create_time"), int | float)]
    return sorted(dated, key=lambda one: float(one["create_time"]))


def _repaired(text: str) -> str:
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


def _message(item: Mapping[str, Any], names: Mapping[str, str]) -> _Message | None:
    if item.get("messageType") not in (None, "message"):  # Teams: who has come and gone
        return None
    speaker = next((name for key in _SPEAKERS if (name := _speaker(item.get(key), names))), "")
    text = next((text for key in _TEXTS if (text := _text(item.get(key), names))), "")
    time = next((time for key in _TIMES if (time := _time(item.get(key)))), "")
    timeless = "role" in item or speaker.lower() in _ROLES
    return _Message(speaker, text, time) if speaker and text and (time or timeless) else None


def _speaker(value: Any, names: Mapping[str, str]) -> str:
    if isinstance(value, Mapping):  # Teams: {"user": {"displayName": …}}
        nested = [*(value.get(key) for key in ("nickname", "displayName", "name", "role")), *value.values()]
        return next((name for one in nested if (name := _speaker(one, names))), "")
    return " ".join(names.get(value, value).split())[:60] if isinstance(value, str) else ""


def _text(value: Any, names: Mapping[str, str]) -> str:
    if isinstance(value, Mapping):  # Teams: {"contentType": "html", "content": …}; ChatGPT: parts
        value = _TAG.sub(" ", str(value.get("content") or value.get("body") or "")) or value.get("parts")
    if isinstance(value, list):  # parts, as of chat models and of Telegram
        parts = (one.get("text") if isinstance(one, Mapping) else one for one in value)
        value = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(value, str):
        return ""
    text = _SLACK_LINK.sub(lambda link: link[2] or link[1], value)
    text = _SLACK_NAME.sub(lambda name: f"{name[1].strip('!')}{name[3] or names.get(name[2], name[2])}", text)
    return " ".join(unescape(text).split())


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


def numbered(chats: list[Record]) -> Iterator[Record]:
    """Yield the chats of a file, with their numbers if they are several."""
    for number, chat in enumerate(chats, start=1):
        yield replace(chat, row_number=number) if len(chats) > 1 else chat
