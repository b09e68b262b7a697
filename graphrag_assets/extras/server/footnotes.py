"""Answers with footnotes: [1] where an answer cites a passage, and the passage behind each number."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from graphrag_assets.query import Answer, AnswerStream, Citation
from graphrag_assets.runtime.outgoing import as_markdown, safe_markdown

_BLOCK = re.compile(r"\[Data: [^\]]*\]")
_SPACE = re.compile(rf"{_BLOCK.pattern}|\s+")
_FOREIGN = re.compile(r"\\*\[(?=\^?\d)")  # what documents and models write like a footnote
MARK = re.compile(r"(?<!\\)\[(\d+)\]")
_QUOTE = 200
_MAX_ENTITIES = 20
HEADING = "\n\n**Sources**\n\n"


@dataclass
class Footnotes:
    """Numbers the passages that an answer cites in the order of their first citation, also while it is streamed.

    `cited`: the passages that a statement with its references cites. `url`: the address of a passage, after the end.
    """

    cited: Callable[[str], list[Citation]]
    url: Callable[[Citation], str | None]
    passages: dict[Citation, int] = field(default_factory=dict)
    _marks: dict[str, str] = field(default_factory=dict)
    _held: str = ""
    _since: str = ""
    _statement: str = ""
    _text: list[str] = field(default_factory=list)  # what was shown

    async def whole(self, stream: AnswerStream) -> Answer:
        """Return the answer, once it is complete."""
        async for _ in self.pieces(stream):
            pass
        return stream.result

    async def pieces(self, stream: AnswerStream) -> AsyncIterator[str]:
        """Yield the text of an answer, in pieces; the stream is closed at the end."""
        async with stream:
            async for piece in stream:
                if text := await asyncio.to_thread(self.feed, piece):
                    yield text
            if text := await asyncio.to_thread(self.end):
                yield text

    def feed(self, piece: str) -> str:
        """Return the text that can be shown after a piece, which has whole references.

        It is Markdown without links, images and HTML of documents or models; a number in brackets that they have is no
        footnote. The last word is held back: what ends it may make a link of it.
        """
        text = self._held + piece
        settled = max((space.end() for space in _SPACE.finditer(text) if space[0].isspace()), default=0)
        self._held = text[settled:]
        return self._shown(text[:settled])

    def end(self) -> str:
        """Return the rest of the text, after the last piece."""
        rest, self._held = self._held, ""
        return self._shown(rest)

    def _shown(self, text: str) -> str:
        parts, end = [], 0
        for block in _BLOCK.finditer(text):
            before = text[end : block.start()]
            self._since += before
            if self._since.strip():  # of consecutive references, the statement is the one before the first
                self._statement = self._since
            self._since, end = "", block.end()
            parts += [_FOREIGN.sub(r"\\[", before), self._marked(f"{self._statement}{block[0]}")]
        self._since += text[end:]
        self._text.append(safe_markdown("".join([*parts, _FOREIGN.sub(r"\\[", text[end:])])))
        return self._text[-1]

    def _marked(self, cited: str) -> str:
        if cited not in self._marks:
            passages = [replace(one, rows=()) if one.text_unit_id else one for one in self.cited(cited)]
            numbers = [self.passages.setdefault(one, len(self.passages) + 1) for one in passages]
            self._marks[cited] = " ".join(f"[{number}]" for number in numbers)
        return self._marks[cited]

    def as_markdown(self) -> str:
        """Return what follows the text: its sources, each with a link to its passage; "" for an answer without
        citations.
        """
        lines = [f"- [{number}] {self._linked(citation)}" for citation, number in self.passages.items()]
        return HEADING + "\n".join(lines) if lines else ""

    def _linked(self, citation: Citation) -> str:
        quote = " ".join((citation.quote or "").split())
        shortened = quote if len(quote) <= _QUOTE else quote[:_QUOTE].rsplit(" ", 1)[0] + " …"
        said = f": “{as_markdown(shortened)}”" if shortened else ""
        url = self.url(citation)
        title = as_markdown(title_of(citation))
        return (f"[{title}]({url})" if url else title) + said

    def plain(self, answer: Answer) -> dict[str, Any]:
        """Return answer as plain data: text with footnotes, the passages behind these, and entities that were read."""
        entities = answer.context.get("entities", pl.DataFrame())
        in_context = entities.filter("in_context").head(_MAX_ENTITIES) if entities.height else entities
        return {
            "text": "".join(self._text),
            "citations": [
                {
                    "footnote": number,
                    "title": title_of(citation),
                    "text_unit_id": citation.text_unit_id,
                    "start_char": citation.start_char,
                    "end_char": citation.end_char,
                    "span": citation.span,
                    "quote": citation.quote,
                    "url": self.url(citation),
                }
                for citation, number in self.passages.items()
            ],
            "entities": [
                {"number": row["human_readable_id"], "title": row["title"]} for row in in_context.iter_rows(named=True)
            ],
            "method": answer.method,
            "model": answer.model,
            "publication": answer.publication,
            "seconds": answer.seconds,
            "errors": [failure.error for failure in answer.errors],
        }


def title_of(citation: Citation) -> str:
    """Document and place: "report.pdf, page 12"."""
    named = citation.document or (citation.rows[0].title if citation.rows else "")
    return ", ".join(part for part in (named, citation.place) if part)
