"""Answers with footnotes: [1] where an answer cites rows, and the passages behind each number."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from graphrag_assets.query import Answer, Citation
from graphrag_assets.runtime.outgoing import as_markdown, safe_markdown
from graphrag_assets.text.references import rows_cited_in

_BLOCK = re.compile(r"\[Data: (?P<rows>[^\]]*)\]")
_LAST_WORD = re.compile(r"\S*\Z")
_QUOTE = 200
_MAX_ENTITIES = 20
HEADING = "\n\n**Sources**\n\n"


@dataclass
class Footnotes:
    """Numbers the rows that an answer cites in the order of their first citation, also while it is streamed.

    `url`: the address of a citation's passage.
    """

    url: Callable[[Citation], str | None]
    numbers: dict[tuple[str, int], int] = field(default_factory=dict)
    _held: str = ""

    def feed(self, piece: str) -> str:
        """The text that can be shown after a piece, which has whole references.

        It is Markdown without links, images and HTML of documents or models. The last word is held back: what ends it
        may make a link of it.
        """
        text = self._held + self._marked(piece)
        settled = len(text) - len("".join(_LAST_WORD.findall(text)))
        self._held = text[settled:]
        return safe_markdown(text[:settled])

    def end(self) -> str:
        """The rest of the text, after the last piece."""
        rest, self._held = self._held, ""
        return safe_markdown(rest)

    def text(self, answer: str) -> str:
        """A whole answer with footnotes: the same text as in pieces."""
        return safe_markdown(self._marked(answer))

    def _marked(self, text: str) -> str:
        return _BLOCK.sub(self._marks, text)

    def _marks(self, block: re.Match[str]) -> str:
        rows = rows_cited_in(block["rows"])
        return " ".join(f"[{self.numbers.setdefault(row, len(self.numbers) + 1)}]" for row in rows)

    def cited(self, answer: Answer) -> dict[int, list[Citation]]:
        """The passages behind each footnote, by its number; a passage of several rows is behind each of theirs."""
        found: dict[int, list[Citation]] = {}
        for citation in answer.citations:
            for row in citation.rows:
                if (number := self.numbers.get((row.table, row.number))) is not None:
                    found.setdefault(number, []).append(citation)
        return dict(sorted(found.items()))

    def as_markdown(self, answer: Answer) -> str:
        """What follows the text: its sources, each with a link to its passage; "" for an answer without citations."""
        lines = []
        for number, cited in self.cited(answer).items():
            passages: dict[str | None, Citation] = {}
            for citation in cited:
                passages.setdefault(citation.text_unit_id, citation)
            lines += [f"- [{number}] {self._linked(citation)}" for citation in passages.values()]
        return HEADING + "\n".join(lines) if lines else ""

    def _linked(self, citation: Citation) -> str:
        quote = " ".join((citation.quote or "").split())
        shortened = quote if len(quote) <= _QUOTE else quote[:_QUOTE].rsplit(" ", 1)[0] + " …"
        said = f": “{as_markdown(shortened)}”" if shortened else ""
        url = self.url(citation)
        title = as_markdown(title_of(citation))
        return (f"[{title}]({url})" if url else title) + said

    def plain(self, answer: Answer) -> dict[str, Any]:
        """The answer as plain data: text with footnotes, the passages behind these, and entities that were read."""
        text, entities = self.text(answer.answer), answer.context.get("entities", pl.DataFrame())
        read = entities.filter("in_context").head(_MAX_ENTITIES) if entities.height else entities
        return {
            "text": text,
            "citations": [
                {
                    "footnote": number,
                    "title": title_of(citation),
                    "text_unit_id": citation.text_unit_id,
                    "start_char": citation.start_char,
                    "end_char": citation.end_char,
                    "quote": citation.quote,
                    "url": self.url(citation),
                }
                for number, cited in self.cited(answer).items()
                for citation in cited
            ],
            "entities": [
                {"number": row["human_readable_id"], "title": row["title"]} for row in read.iter_rows(named=True)
            ],
            "method": answer.method,
            "model": answer.model,
            "publication": answer.publication,
            "seconds": answer.seconds,
            "errors": [failure.error for failure in answer.errors],
        }


def title_of(citation: Citation) -> str:
    """Document and place: "report.pdf, page 12"."""
    return ", ".join(part for part in (citation.document or citation.title, citation.place) if part)
