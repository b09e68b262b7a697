"""Text files: Markdown, AsciiDoc, subtitles and everything else that decodes as text, to documents."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any

import webvtt
import yaml

from graphrag_assets.reading.document_dates import in_fields
from graphrag_assets.reading.markdown import headings
from graphrag_assets.reading.source_records import LoadOptions, Place, Problem, Record, filled

_YAML = re.compile(r"\A---[ \t]*\n(?!\s*\n)(.{0,20000}?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^([A-Za-z][\w-]*):[ \t]+([^\[{&*!|>%@`\s].*?)[ \t]*$", re.MULTILINE)
_FIELDS = re.compile(r"(?:(?:[A-Za-z][\w-]*:|#|- |[ \t])[^\n]*\n|\n)+")
_PANDOC = re.compile(r"\A%[ \t]*([^\n]+)\n(?:%[ \t]*([^\n]*)\n)?(?:%[ \t]*([^\n]*)\n)?(?=\n|\Z)")
_MULTIMARKDOWN = re.compile(r"\A(?:[A-Za-z][\w -]{0,40}:[ \t]*\S[^\n]*\n(?:[ \t]+\S[^\n]*\n)*)+(?=[ \t]*\n)")
_MULTIMARKDOWN_FIELD = re.compile(r"^([A-Za-z][\w -]*):[ \t]*([^\n]*(?:\n[ \t]+[^\n]*)*)", re.MULTILINE)
_HTML_HEADING = re.compile(r"<h([1-6])(?:\s[^>]*)?>(.*?)</h\1>", re.IGNORECASE | re.DOTALL)
_HTML_TAG = re.compile(
    r"</?(?:a|b|br|center|code|details|div|em|font|hr|i|img|kbd|p|picture|s|small|source|span|strong|sub|summary|sup|u)"
    r"(?:\s(?![^<>]*data:)[^<>]*)?/?>",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"^ {0,3}\[([^\]\n]+)\]:[ \t]+<?(\S+?)>?(?:[ \t]+[\"'(][^\n]*)?$", re.MULTILINE)
_REFERRING = re.compile(r"(?<!\!)\[([^\[\]\n]+)\]\[[^\[\]\n]*\]")
_WIKI_LINK = re.compile(r"!?\[\[(?:[^\[\]|\n]*\|)?([^\[\]|\n]+)\]\]")
_TOML = re.compile(r"\A\+\+\+[ \t]*\n(.{0,20000}?\n)?\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL)
_ADOC_HEADING = re.compile(r"^(={1,6})(?=[ \t]+\S)", re.MULTILINE)
_ADOC_ATTRIBUTE = re.compile(r"^:([\w-]+):[ \t]*(.*)$")
_ADOC_REVISION = re.compile(r"(?:v[\w.]+,? *)?(\d{4}-\d\d-\d\d)")
_ADOC_ATTRIBUTES = re.compile(r"^\[[\w#.,%*=\" -]*\][ \t]*\n", re.MULTILINE)
_ADOC_LINK = re.compile(r"(?:(?:link|image|xref|mailto|video)::?[^\s\[]+|https?://[^\s\[\]]+)\[([^\]\n]*)\]")
_ADOC_CROSS = re.compile(r"<<#?([^<>,\n]+)(?:,[ \t]*([^<>\n]+))?>>")
_ADOC_COMMENTS = re.compile(r"^(////+)[ \t]*\n(?:.*?^\1[ \t]*(?:\n|\Z))", re.MULTILINE | re.DOTALL)
_ADOC_COMMENT = re.compile(r"^(?://(?!/)[^\n]*|:[\w!-]+:[^\n]*)\n?", re.MULTILINE)
_ADOC_FOOTNOTE = re.compile(r"footnote(?:ref)?:[\w-]*\[([^\]]*)\]")
_ADOC_FENCE = re.compile(r"^(----+|\.\.\.\.+)[ \t]*$.*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(
    r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(\s*<?((?:[^()\s<>]|\([^()\s]*\))+)>?(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"(^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_MAX_LINKS = 100
_SRT_TIME = re.compile(r"(\d\d:\d\d:\d\d),(\d{3})")
_VTT_TITLE = re.compile(r"WEBVTT[ \t]+(?:-[ \t]*)?(?!FILE\b)(\S[^\n]*)")
_VTT_LANGUAGE = re.compile(r"^Language:[ \t]*([a-z]{2})\b", re.MULTILINE)
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?[ \t]+([^>]+)>")
_CAPTION_MARK = re.compile(r"</?[a-z0-9][^>]*>|\{\\[^}]*\}|</?\d[^>]*>", re.IGNORECASE)
_SPEAKER = re.compile(r"[-\N{EN DASH}\N{EM DASH}] ?\S|>> ?\S|\w[\w .,'-]{0,40}: \S")


def text_record(text: str, file_format: str, options: LoadOptions) -> Record | Problem:
    """Return the document of a text file: `md`, `adoc`, or anything else as it is."""
    fields, body = split_front_matter(text)
    links: list[str] = []
    if file_format == "md" and not fields:
        fields, body = _multimarkdown(body)
    if file_format == "adoc":
        more, body = _asciidoc(body)
        fields = more | fields
    if file_format == "md":
        body, links = _without_targets(body)
    if not body.strip():
        return Problem("the file has no text", "Delete it, or add text to it.")
    title = next((str(fields[name]) for name in ("title", "Title", "TITLE") if fields.get(name)), None)
    if title is None and file_format == "md":
        title = next((heading.title for heading in headings(body) if heading.level == 1), None)
    elif title is None and file_format == "adoc":
        title = first_heading(body)
    others = {name: value for name, value in fields.items() if name.lower() != "title"}
    return Record(
        body,
        title,
        metadata=filled(others | ({"links": links} if links else {})),
        date=in_fields(fields, options.date_fields),
        language=_language(fields),
    )


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the fields of the YAML, TOML or JSON block that a text begins with, and the text after it.

    The values are texts or lists of them. A block that is no mapping is text.
    """
    for pattern, parse in ((_YAML, _yaml), (_TOML, _toml)):
        if block := pattern.match(text):
            fields = parse(block[1] or "")
            return (fields, text[block.end() :].lstrip("\n")) if fields is not None else ({}, text)
    if block := _PANDOC.match(text):
        fields = {"title": block[1], "author": block[2], "date": block[3]}
        return {name: value.strip() for name, value in fields.items() if value}, text[block.end() :].lstrip("\n")
    if text.startswith("{\n"):
        try:
            fields, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            return {}, text
        if isinstance(fields, dict) and text[end : end + 1] == "\n" and text[end:].strip():
            return fields, text[end:].lstrip("\n")
    return {}, text


def _multimarkdown(text: str) -> tuple[dict[str, Any], str]:
    """Return the fields that a text in MultiMarkdown begins with, if a title is among them, and the text after them."""
    block = _MULTIMARKDOWN.match(text)
    lines = _MULTIMARKDOWN_FIELD.findall(block[0]) if block else []
    fields = {name.strip().lower(): " ".join(value.split()) for name, value in lines}
    return (fields, text[block.end() :].lstrip()) if block and "title" in fields else ({}, text)


def _yaml(block: str) -> dict[str, Any] | None:
    try:
        fields = yaml.load(block, Loader=yaml.BaseLoader)  # values stay texts: 2021-02-30 would be an error
    except (yaml.YAMLError, RecursionError):
        fields = dict(_FIELD.findall(block)) if _FIELDS.fullmatch(block) else None  # title: Law: on water
    return fields if isinstance(fields, dict) else None


def _toml(block: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(block)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def first_heading(text: str) -> str | None:
    """Return the first heading of the first level of a Markdown text, else its first heading."""
    outline = headings(text)
    return next((heading.title for heading in outline if heading.level == 1), outline[0].title if outline else None)


def _language(fields: Mapping[str, Any]) -> str | None:
    stated = str(fields.get("lang") or fields.get("language") or "").split("-")[0].split("_")[0].lower()
    return stated if re.fullmatch("[a-z]{2}", stated) else None


def _asciidoc(text: str) -> tuple[dict[str, Any], str]:
    """Return title, attributes and revision date of an AsciiDoc text, and the text with headings as in Markdown."""
    fields: dict[str, Any] = {}
    lines = _ADOC_COMMENTS.sub("", text).split("\n")
    number = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if lines[number].startswith("= "):
        fields["title"] = lines[number][2:].strip()
        for end in range(number + 1, len(lines) + 1):
            line = lines[end] if end < len(lines) else ""
            if not line.strip():
                break
            if attribute := _ADOC_ATTRIBUTE.match(line):
                fields[attribute[1]] = attribute[2]
            elif revision := _ADOC_REVISION.match(line):
                fields.setdefault("date", revision[1])
        text = "\n".join([lines[number], *lines[end:]])
        fields.setdefault("date", fields.get("revdate", ""))
    else:
        text = "\n".join(lines)
    marked, position = "", 0
    for block in _ADOC_FENCE.finditer(text):
        marked += _asciidoc_prose(text[position : block.start()]) + block[0]
        position = block.end()
    return {name: value for name, value in fields.items() if value}, marked + _asciidoc_prose(text[position:])


def _asciidoc_prose(text: str) -> str:
    """Return AsciiDoc with headings as in Markdown, links and pictures as their words, without lines of attributes."""
    text = _ADOC_ATTRIBUTES.sub("", _ADOC_HEADING.sub(_marks, _ADOC_COMMENT.sub("", text)))
    text = _ADOC_FOOTNOTE.sub(r" (\1)", text)
    return _ADOC_CROSS.sub(lambda link: link[2] or link[1], _ADOC_LINK.sub(lambda link: link[1].split(",")[0], text))


def _marks(heading: re.Match[str]) -> str:
    return "#" * len(heading[1])


def _without_targets(text: str) -> tuple[str, list[str]]:
    """Return Markdown with the words of links only, without comments, and the targets of the links."""
    links: dict[str, None] = {}

    def words(link: re.Match[str]) -> str:
        if not link[1] and "://" in link[3] and len(links) < _MAX_LINKS:
            links[link[3]] = None
        return link[2]

    parts, position = [], 0
    for code in [*_CODE.finditer(text), None]:
        prose = text[position : code.start() if code else len(text)]
        prose = _HTML_HEADING.sub(_marked_heading, _COMMENT.sub("", prose))
        prose = _LINK.sub(words, _LINK.sub(words, prose))  # a picture may be the words of a link
        for reference in _REFERENCE.finditer(prose):
            if "://" in reference[2] and len(links) < _MAX_LINKS:
                links[reference[2]] = None
        prose = _REFERRING.sub(r"\1", _REFERENCE.sub("", prose))
        parts.append(_HTML_TAG.sub("", _WIKI_LINK.sub(r"\1", prose)))
        if code:
            parts.append(code[0])
            position = code.end()
    return "".join(parts), list(links)


def _marked_heading(heading: re.Match[str]) -> str:
    words = " ".join(_HTML_TAG.sub(" ", heading[2]).split())
    return f"\n{'#' * int(heading[1])} {words}\n" if words else ""


def subtitle_record(text: str, file_format: str) -> Iterator[Record | Problem]:
    """Yield the spoken text of WebVTT or SubRip subtitles, with its times as places, and what of it cannot be read.

    A line begins where a speaker does. Captions that scroll repeat their last line, which is left out.
    """
    vtt = text if file_format == "vtt" else "WEBVTT\n\n" + _SRT_TIME.sub(r"\1.\2", text)
    try:
        captions = webvtt.from_string(vtt).captions
    except webvtt.errors.MalformedFileError as error:
        yield Problem(f"not readable as {file_format}: {error}", "Check the file, or save its text as .txt.")
        return
    spoken, places, before = "", [], list[str]()
    for caption in captions:
        lines = _caption_lines(caption.raw_text)
        new = [line for line in lines if line not in before]
        before = lines or before
        for line in new:
            if spoken:
                spoken += "\n" if _SPEAKER.match(line) else " "
            if line is new[0]:
                places.append(Place(len(spoken), "time", caption.start.split(".")[0]))
            spoken += line
    if not spoken:
        yield Problem("the file has no captions", "Delete it, or add captions to it.")
        return
    if (n_lost := text.count("-->") - len(captions)) > 0:
        yield Problem(f"{n_lost} captions without a readable time or text are left out", "Check the file.")
    title = _VTT_TITLE.match(text)
    stated = _VTT_LANGUAGE.search(text.split("\n\n", 1)[0])
    yield Record(spoken, title and title[1], language=stated and stated[1], places=tuple(places))


def _caption_lines(raw: str) -> list[str]:
    """Return the lines of a caption, each with its speaker where the caption names one, without marks."""
    text = _VOICE.sub(lambda voice: f"\n{voice[1].strip()}: ", raw)
    lines = (" ".join(unescape(_CAPTION_MARK.sub("", line)).split()) for line in text.split("\n"))
    joined: list[str] = []
    for line in filter(None, lines):
        if joined and joined[-1].endswith(":"):
            joined[-1] += f" {line}"
        else:
            joined.append(line)
    return joined
