"""Chats: exports of messengers and assistants, and lists of messages in JSON, to one document for each chat.

A line of the document is a message: the speaker, a colon, and the text. Its time is a place.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from typing import Any

from graphrag_assets.reading.source_records import Place, Record, filled

_FIELDS = {
    "messages": "messages value chat_messages MessageList conversation conversations transcript mapping",
    "title": "channel name title topic displayName",
    "speaker": "role speaker sender from user username user_name sender_name author creator name nickname displayName",
    "person": "profile real_name nickname displayName display_name name username first_name role user application",
    "text": "text content message body value parts",
    "time": "ts timestamp timestamp_ms time date created_at createdDateTime createdAt sent create_time created_date"
    " origin_server_ts originalarrivaltime datetime",
}
"""The fields of messages and chats of Slack, Teams, Discord, Telegram, Messenger, ChatGPT, Claude and others."""
_ROLES = ("system", "user", "assistant", "human", "gpt", "tool", "ai", "bot")
_NOTICE = re.compile(r"(?:channel|group)_(?:join|leave|archive|unarchive|name|topic|purpose)|systemEventMessage")
"""Messages of Slack and Teams that say who has come and gone."""
_INLINE = re.compile(r"</?(?:a|at|b|code|em|font|i|s|span|strong|sub|sup|u)(?:\s[^>\n]*)?>", re.IGNORECASE)
_SLACK_LINK = re.compile(r"<(?:(https?:|mailto:)|([@#])|!)([^|>]+)(?:\|([^>]+))?>")
SLACK_USERS = "users.json"
SLACK_LISTS = frozenset((
    "users.json", "channels.json", "groups.json", "dms.json", "mpims.json", "integration_logs.json",
    "canvases.json", "lists.json", "org_users.json", "file_conversations.json",
))  # fmt: skip
"""Files of an export of Slack that hold no messages, in the folder of its channels."""
_WHATSAPP = re.compile(
    r"^\u200e?\[?(?P<stamp>(\d{1,4})([./-])(\d{1,2})\3(\d{1,4}),? ([^\W\d]{0,4})(\d{1,2})[:.](\d\d)(?:[:.](\d\d))?"
    r"(?: ?([^\W\d][^\]:\n-]{0,9}))?)(?:\] | - )(?:(?P<speaker>[^:\n]{1,60}): )?",
    re.MULTILINE,
)
_MORNING, _AFTERNOON = ("am", "上午", "오전", "午前", "πμ", "ص", "öö"), ("pm", "下午", "오후", "午後", "μμ", "م", "ös")
_Message = tuple[str, str, str]
"""The speaker, the text, and the time."""


def whatsapp_record(text: str) -> Record | None:
    """Return the chat of an export of WhatsApp; None if the text is none."""
    text = re.sub("[\u202f\xa0]", " ", text)
    stamps = [*_WHATSAPP.finditer(text)]
    if not stamps or text[: stamps[0].start()].strip():
        return None
    first, second = (max(int(stamp[group]) for stamp in stamps) for group in (2, 4))
    has_dots = stamps[0][3] == "."
    # The groups of year, month and day. In America the month is first.
    order = (2, 4, 5) if first > 31 else (5, 4, 2) if first > 12 or has_dots else (5, 2, 4) if second > 12 else ()
    ends = [*(stamp.start() for stamp in stamps[1:]), None]
    chat = [
        (stamp["speaker"].strip(), " ".join(text[stamp.end() : end].split()).strip("\u200e "), _iso(stamp, order))
        for stamp, end in zip(stamps, ends, strict=True)
        if stamp["speaker"]  # a line without one is a notice
    ]
    return _record(chat) if len(chat) > 1 else None


def _iso(stamp: re.Match[str], order: tuple[int, ...]) -> str:
    """Return a time in ISO 8601 if the order of day and month is certain, else as it is written; "" if impossible."""
    half = re.sub(r"[\W_]", "", (stamp[6] or stamp[10] or "").casefold())
    if not order or half not in ("", *_MORNING, *_AFTERNOON):
        return stamp["stamp"]
    year, month, day = (int(stamp[group]) for group in order)
    hour = int(stamp[7]) % 12 + 12 * (half in _AFTERNOON) if half else int(stamp[7])
    try:
        time = datetime(year + 2000 * (year < 100), month, day, hour, int(stamp[8]), int(stamp[9] or 0))
    except ValueError:
        return ""
    return time.isoformat(" ")


def slack_names(value: Any) -> dict[str, str] | None:
    """Return the names of the users of an export of Slack by their ids; None if the value is no list of users."""
    is_list = isinstance(value, list) and all(isinstance(one, Mapping) and "id" in one for one in value)
    return {str(one["id"]): name for one in value if (name := _person(one))} if is_list else None


def json_chats(value: Any, slack: Mapping[str, str] | None = None) -> list[Record]:
    """Return the chats of a JSON value: a list of messages, an object with one, or several such objects.

    Messages have a speaker, a text and a time, or a role and a content. `slack`: the value is a day of a channel of an
    export of Slack, whose users have these names.
    """
    if chat := _json_chat(value, slack):
        return [chat]
    for part in value.values() if isinstance(value, Mapping) else [value]:  # all chats of an account
        chats: Any = part.get("list") if isinstance(part, Mapping) else part
        records = [chat for one in chats if (chat := _json_chat(one, None))] if isinstance(chats, list) else []
        if records and 2 * len(records) > len(chats):
            several = enumerate(records, start=1) if len(records) > 1 else ()
            return [replace(record, row_number=number) for number, record in several] or records
    return []


def _json_chat(value: Any, slack: Mapping[str, str] | None) -> Record | None:
    title, messages = "", value
    if isinstance(value, Mapping):
        title = _first(value, "title", _person)
        messages = _first(value, "messages", lambda one: one if isinstance(one, list | Mapping) else None)
    if isinstance(messages, Mapping):  # ChatGPT: a tree of messages
        nodes = (node.get("message") for node in messages.values() if isinstance(node, Mapping))
        messages = [one for one in nodes if isinstance(one, Mapping) and one.get("create_time")]
    if not isinstance(messages, list) or not all(isinstance(one, Mapping) and "title" not in one for one in messages):
        return None
    names = {str(one.get("user")): _person(one.get("user_profile")) for one in messages} | {**(slack or {})}
    said = [one for one in messages if not _NOTICE.fullmatch(str(one.get("subtype") or one.get("messageType")))]
    chat = [message for one in said if (message := _message(one, names))]
    if len(chat) < (2 if slack is None else 1) or 2 * len(chat) < len(said) or _are_articles(chat):
        return None
    if all(re.match(r"\d{4}-\d\d-\d\d", time) for _, _, time in chat):
        chat.sort(key=lambda message: message[2])
    return _record(chat, (_utf8(title) if "sender_name" in said[0] else title) or None)


def _are_articles(chat: list[_Message]) -> bool:
    return 2 * sum(len(text) > 2000 for _, text, _ in chat) > len(chat)


def _first(item: Mapping[str, Any], field: str, value_of: Callable[[Any], Any]) -> Any:
    """Return the first value of a field that has one."""
    return next(filter(None, (value_of(item.get(name)) for name in _FIELDS[field].split())), "")


def _message(item: Mapping[str, Any], names: Mapping[str, str]) -> _Message | None:
    speaker = _first(item, "speaker", lambda value: _person(value, names))
    text, time = _first(item, "text", lambda value: _text(value, names)), _first(item, "time", _time)
    if "sender_name" in item:
        speaker, text = _utf8(speaker), _utf8(text)
    return (speaker, text, time) if speaker and text and (time or "role" in item or speaker.lower() in _ROLES) else None


def _utf8(text: str) -> str:
    """Return a text of Messenger, which writes UTF-8 as Latin-1."""
    with suppress(UnicodeError):
        return text.encode("latin-1").decode()
    return text


def _person(value: Any, names: Mapping[str, str] | None = None) -> str:
    """Return the name of a person, or of a channel, which a text or an object states."""
    if isinstance(value, Mapping):  # Teams: {"user": {"displayName": …}}
        return _first(value, "person", lambda one: _person(one, names))
    return " ".join(((names or {}).get(value) or value).split())[:60] if isinstance(value, str) else ""


def _text(value: Any, names: Mapping[str, str]) -> str:
    if isinstance(value, Mapping):  # Teams: {"contentType": "html", "content": …}; ChatGPT: parts
        html = _INLINE.sub("", str(value.get("content") or value.get("body") or ""))
        value = re.sub(r"<[^>\n]+>", " ", html) or value.get("parts")
    if isinstance(value, list):  # parts, as of chat models and of Telegram
        parts = (one.get("text") if isinstance(one, Mapping) else one for one in value)
        value = "".join(part for part in parts if isinstance(part, str))
    plain = _SLACK_LINK.sub(
        lambda link: (link[2] or "") + (link[4] or (link[1] or "") + (names.get(link[3]) or link[3])),
        value if isinstance(value, str) else "",
    )
    return " ".join(unescape(plain).split())


def _time(value: Any) -> str:
    """Return a time as it is written; seconds or milliseconds since 1970 in ISO 8601."""
    try:
        seconds = float(value) / (1000 if float(value) > 1e11 else 1)
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S") if seconds > 1e8 else ""
    except (TypeError, ValueError, OverflowError, OSError):
        return value.strip()[:19].replace("T", " ") if isinstance(value, str) else ""


def _record(messages: list[_Message], title: str | None = None) -> Record:
    text, places = "", []
    for speaker, words, time in messages:
        text += "\n" if text else ""
        places += [Place(len(text), "time", time)] if time else []
        text += f"{speaker}: {words}"
    speakers = list(dict.fromkeys(speaker for speaker, _, _ in messages))
    metadata = filled({"speakers": speakers})
    return Record(text, title, date=places[0].value[:10] if places else None, metadata=metadata, places=tuple(places))
