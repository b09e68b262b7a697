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

_FIELDS = {
    "speaker": "role speaker sender from user username user_name sender_name author creator name nickname displayName",
    "text": "text content message body value parts",
    "time": "ts timestamp timestamp_ms time date created_at createdDateTime createdAt sent create_time created_date"
    " origin_server_ts originalarrivaltime start datetime",
    "messages": "messages value chat_messages MessageList conversation conversations transcript",
    "title": "channel name title topic displayName",
}
"""The fields of messages and chats of Slack, Teams, Discord, Telegram, Messenger, ChatGPT, Claude and others."""
_ROLES = frozenset({"system", "user", "assistant", "human", "gpt", "tool", "ai", "bot"})
_MOVES = re.compile(r"(?:channel|group)_(?:join|leave|archive|unarchive|name|topic|purpose)")
"""Messages of Slack that say who has come and gone."""
_WHATSAPP = re.compile(
    r"\u200e?\[?(\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? "
    r"(?:[^\W\d]{1,4})?\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?: ?[^\W\d][^\]:\n-]{0,9})?)(?:\] | - )(?:([^:\n]{1,60}): )?(.*)"
)
_STAMP = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4}),? ([^\W\d]*)(\d{1,2})[:.](\d\d)(?:[:.](\d\d))?(?: ?(\D+))?")
_MORNING, _AFTERNOON = ("am", "上午", "오전", "午前", "πμ", "ص", "öö"), ("pm", "下午", "오후", "午後", "μμ", "م", "ös")
"""Halves of the day in the languages with a clock of twelve hours."""
_MIN_MESSAGES = 2
_LONG = 2000  # characters of a message; where most are longer, they are articles
_SLACK_LINK = re.compile(r"<((?:https?|mailto):[^|>]+)(?:\|([^>]+))?>")
_SLACK_NAME = re.compile(r"<([@#!])([^|>]+)(?:\|([^>]+))?>")
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
    lines = [*filter(str.strip, text.replace("\u202f", " ").replace("\xa0", " ").split("\n"))]
    messages: list[_Message] = []
    if not lines or not _WHATSAPP.match(lines[0]):
        return None
    for line in lines:
        entry = _WHATSAPP.fullmatch(line)
        if entry and entry[2]:
            messages.append(_Message(entry[2].strip(), entry[3].strip("\u200e \t"), entry[1]))
        elif messages and not entry:  # a line without a speaker is a notice
            messages[-1] = messages[-1]._replace(text=f"{messages[-1].text} {line.strip()}")
    return _chat(_in_iso(messages)) if len(messages) >= _MIN_MESSAGES else None


def _in_iso(messages: list[_Message]) -> list[_Message]:
    """Return messages with times in ISO 8601 if the order of day and month is certain from any of them."""
    stamps = [_STAMP.fullmatch(message.time) for message in messages]
    days = [(int(stamp[1]), int(stamp[3]), stamp[2]) for stamp in stamps if stamp]
    orders = (
        ((1, 3, 4), any(first > 31 for first, _, _ in days)),
        ((4, 3, 1), any(first > 12 or mark == "." for first, _, mark in days)),
        ((4, 1, 3), any(second > 12 for _, second, _ in days)),
    )
    order = next((order for order, certain in orders if certain), None)
    times = [_iso(stamp, order) if stamp and order else None for stamp in stamps]
    return [message._replace(time=time or message.time) for message, time in zip(messages, times, strict=True)]


def _iso(stamp: re.Match[str], order: tuple[int, int, int]) -> str | None:
    year, month, day = (int(stamp[place]) for place in order)
    half = re.sub(r"[\W_]", "", (stamp[5] or stamp[9] or "").casefold())
    if half and half not in (*_MORNING, *_AFTERNOON):
        return None
    hour = int(stamp[6]) % 12 + 12 * (half in _AFTERNOON) if half else int(stamp[6])
    try:
        return str(datetime(year + 2000 * (year < 100), month, day, hour, int(stamp[7]), int(stamp[8] or 0)))
    except ValueError:
        return None


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
    parts = value.values() if isinstance(value, Mapping) else [value]  # all chats of an account
    for part in parts:
        chats = part.get("list") if isinstance(part, Mapping) else part
        if not isinstance(chats, list) or not chats:
            continue
        records = [_chat_of(one, None) for one in chats if isinstance(one, Mapping)]
        if 2 * sum(map(bool, records)) > len(chats):
            return [record for record in records if record]
    return []


def _chat_of(value: Any, slack: Mapping[str, str] | None) -> Record | None:
    title, items = "", value
    if isinstance(value, Mapping):
        title = _first(value, "title", lambda one: one.get("name") if isinstance(one, Mapping) else one)
        items = next((value[name] for name in _FIELDS["messages"].split() if isinstance(value.get(name), list)), None)
        if isinstance(nodes := value.get("mapping"), Mapping):  # ChatGPT: a tree of messages
            messages = [node.get("message") for node in nodes.values() if isinstance(node, Mapping)]
            items = [one for one in messages if isinstance(one, Mapping) and one.get("create_time")]
            items.sort(key=lambda one: str(_time(one["create_time"])))
    fewest = _MIN_MESSAGES if slack is None else 1
    if not isinstance(items, list) or len(items) < fewest or not all(isinstance(one, Mapping) for one in items):
        return None
    names = dict(slack or {}) | {
        str(one.get("user")): name
        for one in items
        if isinstance(profile := one.get("user_profile"), Mapping) and (name := _profile_name({"profile": profile}))
    }
    items = [one for one in items if not _MOVES.fullmatch(str(one.get("subtype")))]
    chat = [message for one in items if (message := _message(one, names))]
    if len(chat) < fewest or 2 * len(chat) < len(items) or any("title" in one for one in items):
        return None
    if statistics.median(len(message.text) for message in chat) > _LONG:
        return None
    if "sender_name" in items[0]:  # Messenger writes UTF-8 as Latin-1
        chat, title = [_Message(*map(_repaired, message)) for message in chat], _repaired(title)
    if len(chat) > 1 and all(one.time > other.time for one, other in pairwise(chat)):
        chat.reverse()  # the newest first
    return _chat(chat, title or None)


def _first(item: Mapping[str, Any], field: str, text_of: Any) -> str:
    """Return the first of the values of a field that has a text."""
    values = (text_of(item.get(name)) for name in _FIELDS[field].split())
    return next((value for value in values if isinstance(value, str) and value), "")


def _repaired(text: str) -> str:
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


def _message(item: Mapping[str, Any], names: Mapping[str, str]) -> _Message | None:
    if item.get("messageType") not in (None, "message"):  # Teams: who has come and gone
        return None
    speaker = _first(item, "speaker", lambda value: _speaker(value, names))
    text, time = _first(item, "text", lambda value: _text(value, names)), _first(item, "time", _time)
    timeless = "role" in item or speaker.lower() in _ROLES
    return _Message(speaker, text, time) if speaker and text and (time or timeless) else None


def _speaker(value: Any, names: Mapping[str, str]) -> str:
    if isinstance(value, Mapping):  # Teams: {"user": {"displayName": …}}
        nested = [*(value.get(key) for key in ("nickname", "displayName", "name", "role")), *value.values()]
        return next((name for one in nested if (name := _speaker(one, names))), "")
    return " ".join(names.get(value, value).split())[:60] if isinstance(value, str) else ""


def _text(value: Any, names: Mapping[str, str]) -> str:
    if isinstance(value, Mapping):  # Teams: {"contentType": "html", "content": …}; ChatGPT: parts
        content = re.sub(r"<[^>\n]+>", " ", str(value.get("content") or value.get("body") or ""))
        value = content or value.get("parts")
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
        seconds = seconds / 1000 if seconds > 1e11 else seconds
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S") if seconds > 1e8 else ""
    except (TypeError, ValueError, OverflowError, OSError):
        return value.strip()[:19].replace("T", " ") if isinstance(value, str) else ""


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
