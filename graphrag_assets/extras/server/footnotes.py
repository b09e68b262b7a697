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
_MOST_NODES = 20
HEADING = "**Sources**"


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

    def cited(self, answer: Answer) -> list[tuple[int, Citation]]:
        """The citations of an answer, each with the number of its row; a passage of several rows is there for each."""
        found = [
            (self.numbers[row.table, row.number], citation)
            for citation in answer.citations
            for row in citation.rows
            if (row.table, row.number) in self.numbers
        ]
        return sorted(found, key=lambda numbered: numbered[0])

    def as_markdown(self, answer: Answer) -> str:
        """The list of sources, each with a link to its passage; "" for an answer without citations."""
        passages = {(number, citation.text_unit_id): citation for number, citation in reversed(self.cited(answer))}
        lines = [f"- [{number}] {self._linked(passage)}" for (number, _), passage in reversed(passages.items())]
        return "\n".join([HEADING, "", *lines]) if lines else ""

    def _linked(self, citation: Citation) -> str:
        quote = " ".join((citation.quote or "").split())
        shortened = quote if len(quote) <= _QUOTE else quote[:_QUOTE].rsplit(" ", 1)[0] + " …"
        said = f": “{as_markdown(shortened)}”" if shortened else ""
        url = self.url(citation)
        title = as_markdown(title_of(citation))
        return (f"[{title}]({url})" if url else title) + said

    def plain(self, answer: Answer) -> dict[str, Any]:
        """The answer as plain data: `Answer.to_dict` with `text`, which has footnotes, and numbered citations."""
        text = self.text(answer.answer)
        citations = [
            {
                "footnote": number,
                "title": title_of(citation),
                "document": citation.document,
                "document_id": citation.document_id,
                "source": citation.source,
                "place": citation.place,
                "text_unit_id": citation.text_unit_id,
                "start_char": citation.start_char,
                "end_char": citation.end_char,
                "quote": citation.quote,
                "url": self.url(citation),
                "rows": [
                    {"table": row.table, "number": row.number, "id": row.id, "title": row.title}
                    for row in citation.rows
                ],
            }
            for number, citation in self.cited(answer)
        ]
        own = {"text": text, "citations": citations, "graph": graph_of(answer)}
        return answer.to_dict() | own


def title_of(citation: Citation) -> str:
    """Document and place: "report.pdf, page 12"."""
    return ", ".join(part for part in (citation.document or citation.title, citation.place) if part)


def graph_of(answer: Answer) -> dict[str, list[dict[str, Any]]]:
    """The first entities that were read for an answer, and the relationships between them that were."""
    entities, related = answer.context.get("entities"), answer.context.get("relationships")
    if entities is None or related is None or entities.is_empty():
        return {"nodes": [], "edges": []}
    nodes = entities.filter("in_context").head(_MOST_NODES).select("human_readable_id", "title", "type").to_dicts()
    titles = [node["title"] for node in nodes]
    edges = related.filter("in_context", pl.col("source").is_in(titles), pl.col("target").is_in(titles))
    return {"nodes": nodes, "edges": edges.select("source", "target", "type", "weight").to_dicts()}
