"""Several requests in one: each has an answer of its own in the ledger, whichever others it was sent with."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm.model_errors import InvalidAnswer, RequestRejected
from graphrag_assets.llm.model_options import ChatRequest, Completion, Message
from graphrag_assets.llm.task import Chat, usage_of

Item = TypeVar("Item")
Joined = Callable[[Sequence[int]], ChatRequest]
"""Returns one request for the requests at some places, whose `split` counts these places from 0."""


async def ask_together(
    chat: Chat, requests: Sequence[ChatRequest], joined: Joined, caller_retries: bool = False
) -> tuple[list[Completion | None], Usage]:
    """Return the answer to each request, None for those without one, and the cost.

    The requests that the ledger has no answer to, and that are not given up, are sent as one; a single one as it is.
    `caller_retries`: the caller sends by itself what has no answer, so a single request is left to it, and an unusable
    answer is none.

    Raises:
        GivenUp: all that lack an answer are given up, and the caller does not retry.
        ModelError: what `chat` raises otherwise.
    """
    answers, usage = [await chat.stored_answer(one) for one in requests], Usage()
    reasons = {n: await chat.given_up(one) for n, one in enumerate(requests) if answers[n] is None}
    places = [n for n, reason in reasons.items() if reason is None]
    for reason in reasons.values():
        if reason and not places and not caller_retries:
            raise reason
    fewest = 2 if caller_retries else 1
    if len(places) >= fewest:
        parts = tuple(requests[n] for n in places)
        # A single answer is stored whatever it says: without its text's record, it would be asked for in every run.
        together = replace(joined(places), parts=parts) if len(parts) > 1 else replace(parts[0], split=None)
        try:
            usage = usage_of(await chat.complete(together))
        except (InvalidAnswer, RequestRejected):
            if not caller_retries:
                raise
        for n in places:
            answers[n] = await chat.stored_answer(requests[n])
    return answers, usage


def numbered(
    requests: Sequence[ChatRequest],
    noun: str,
    form: type[BaseModel],
    rules: Callable[[int], Message],
    fits: Callable[[Any, int], bool],
) -> Joined:
    """Return what joins the texts of requests, each after a line with its number.

    `form` has one list of records with these numbers: one that is unknown, or occurs twice, is no answer, nor is one
    that does not fit the request at a place. `rules`: the system message for so many.
    """
    (name,) = form.model_fields

    def joined(places: Sequence[int]) -> ChatRequest:
        count = len(places)

        def split(answer: Any) -> dict[int, BaseModel]:
            occurs = Counter(record.number for record in getattr(answer, name))
            valid = {one.number - 1: one for one in getattr(answer, name) if occurs[one.number] == 1}
            return {n: one for n, one in valid.items() if 0 <= n < count and fits(one, places[n])}

        texts = (
            f"### {noun} {n} of {count}\n{requests[place].messages[-1]['content']}" for n, place in enumerate(places, 1)
        )
        messages = (rules(count), Message(role="user", content="\n\n".join(texts)))
        return replace(requests[places[0]], messages=messages, response_model=form, split=split)

    return joined


@dataclass
class Pack(Generic[Item]):
    """Items that share a request; the first whose answer is wanted asks for all."""

    items: list[Item] = field(default_factory=list)
    _answers: "asyncio.Future[list[Completion | None]] | None" = None

    async def answer(self, item: Item, ask: Callable[[list[Item]], Any]) -> Completion | None:
        """Return the answer on an item, of those that `ask` returns for all; None if it is to be asked for alone."""
        if self._answers is None:
            self._answers = asyncio.ensure_future(ask(self.items))
        return (await self._answers)[self.items.index(item)]


def packs_of(
    items: Iterable[Item],
    sizes: Iterable[int],
    room: int,
    most: int | None = None,
    group: Callable[[Item], Hashable] = lambda _: None,
) -> list[Pack[Item]]:
    """Return the items as they share requests: of one group, in order, of at most `room` in all, and at most `most`."""
    packs, used = list[Pack[Item]](), 0
    for item, size in zip(items, sizes, strict=True):
        pack = packs[-1].items if packs else []
        if not pack or used + size > room or len(pack) == most or group(item) != group(pack[0]):
            packs.append(Pack())
            used = 0
        packs[-1].items.append(item)
        used += size
    return packs
