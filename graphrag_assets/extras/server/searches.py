"""Questions of clients, within what each may see."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

from graphrag_assets.errors import InvalidOption, QueryError
from graphrag_assets.extras.server.access import Access, Client
from graphrag_assets.extras.server.footnotes import Footnotes
from graphrag_assets.query import AnswerMethodName, Callbacks, Citation, Failure, GraphRAG
from graphrag_assets.query.options import Filter
from graphrag_assets.query.question_task import AnswerStream
from graphrag_assets.query.scope import Scope, scope_of
from graphrag_assets.store.publication_reader import Reader

Result = TypeVar("Result")
RankingName = Literal["graph", "text", "words", "vectors"]
_OWN_OPTIONS = frozenset({"callbacks", "timeout", "filter", "rights", "history", *(f.name for f in fields(Filter))})


@dataclass(frozen=True)
class Searches:
    """Runs the searches of all clients; one ends after `seconds`."""

    rag: GraphRAG
    access: Access
    seconds: float = 120

    def ask(
        self,
        client: Client,
        question: str,
        method: AnswerMethodName = "ask",
        *,
        history: Sequence[Mapping[str, str]] = (),
        filter: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[AnswerStream, Footnotes]:
        """Return the answer to a question, in pieces, and its footnotes, with links that the client can open.

        Raises:
            InvalidOption: the question or an option is not allowed.
        """
        if reserved := sorted(_OWN_OPTIONS & set(options or ())):
            raise InvalidOption(f"{reserved[0]} is no option here; give filters as `filter` and turns as messages.")
        stream = self.rag.astream(
            method,
            question,
            filter=_filter(filter),
            rights=client.filter,
            history=list(history),
            timeout=self.seconds,
            **(options or {}),
        )

        def url(citation: Citation) -> str | None:
            return self.access.passage_url(client, stream.result.publication, citation.text_unit_id, citation.span)

        return stream, Footnotes(stream.citations_in, url)

    async def retrieve(
        self, client: Client, question: str, k: int, method: RankingName, filter: Mapping[str, Any] | None
    ) -> dict[str, list[Any]]:
        """Return the passages that match a question best, with links; and names of the filter that are not there."""
        callbacks = _Errors()
        frame = await self.rag.aretrieve(
            question,
            k,
            method,
            filter=_filter(filter),
            rights=client.filter,
            timeout=self.seconds,
            callbacks=callbacks,
        )
        rows = frame.rename({"id": "text_unit_id"}).to_dicts()
        return {"passages": self.linked(client, rows), "errors": callbacks.errors}

    def linked(self, client: Client, passages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Passages with their addresses."""
        publication = self.rag.index.reader().publication
        return [row | {"url": self.access.passage_url(client, publication, row["text_unit_id"])} for row in passages]

    async def look_up(self, client: Client, work: Callable[[Reader, Scope], Result]) -> Result:
        """Return what a function of `lookups` finds in the newest publication, within the filter of the client."""

        def work_here() -> Result:
            reader = self.rag.index.reader()
            return work(reader, scope_of(reader, client.filter))

        return await asyncio.to_thread(work_here)


class _Errors(Callbacks):
    def __init__(self) -> None:
        self.errors = list[str]()

    def on_error(self, failure: Failure) -> None:
        self.errors.append(failure.error)


def _filter(limits: Mapping[str, Any] | None) -> Filter:
    """Return the filter of a request. Raises InvalidOption."""
    try:
        return Filter(**(limits or {}))
    except QueryError as error:
        raise InvalidOption(str(error)) from None
