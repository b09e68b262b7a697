"""Several items in one request: the answer on each is stored on its own, so only items that are new are requested."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from graphrag_assets.contracts.answering import Usage
from graphrag_assets.llm.model_errors import StoredInParts
from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.llm.tasks.chat_protocol import Chat, Form, usage_of

Item = TypeVar("Item")
Record = TypeVar("Record")


def by_place(records: Iterable[Record], number_of: Callable[[Record], int], count: int) -> dict[int, Record]:
    """The records about `count` numbered items, by place; a number that is unknown or occurs twice says nothing."""
    records = list(records)
    occurs = Counter(map(number_of, records))
    return {n - 1: one for one in records if occurs[n := number_of(one)] == 1 and 1 <= n <= count}


async def answers_on(
    chat: Chat,
    items: Sequence[Item],
    request: Callable[[Sequence[Item]], ChatRequest],
    form: type[Form],
    split: Callable[[Sequence[Item], Form], Mapping[int, str]],
) -> tuple[list[Form | None], Usage]:
    """The answer on each item as to a request of its own, None where the model's answer leaves it out.

    Args:
        request: asks about several items; its response model is `form`.
        split: by place, the answer on each item as JSON of `form`.

    Raises:
        Exception: what `chat` raises.
    """
    alone = [request([item]) for item in items]
    known = [await chat.known(one) for one in alone]
    found = [None if stored is None else stored.parsed for stored in known]
    places = [place for place, stored in enumerate(known) if stored is None]
    if not places:
        return found, Usage()
    asked = [items[place] for place in places]
    whole = request(asked)
    if len(asked) > 1:
        parts = tuple(alone[place] for place in places)
        whole = replace(whole, parts=parts, split=lambda answer: split(asked, answer))
    try:
        completion = await chat.complete(whole)
    except StoredInParts:
        return await answers_on(chat, items, request, form, split)
    for number, answer in split(asked, completion.parsed).items():
        found[places[number]] = form.model_validate_json(answer)
    return found, usage_of(completion)
