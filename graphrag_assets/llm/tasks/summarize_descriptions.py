"""One description from many: in one request if they fit, else in batches that carry the summary along.

Short descriptions are joined without a model. Several things may share one request (`together`): the answer for each
is that of its own request (`whole_request`), so that it is the same to the ledger which other things were asked for.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import ClassVar, NamedTuple

from pydantic import model_validator

from graphrag_assets.errors import SettingsError
from graphrag_assets.llm.model_errors import StoredInParts
from graphrag_assets.llm.model_options import ChatRequest, Message
from graphrag_assets.llm.prompts import Prompts, prompt_text
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Text
from graphrag_assets.llm.tasks.chat_protocol import NOWHERE, Chat, Origin, ask, max_prompt_tokens, prompt_tokens
from graphrag_assets.llm.tasks.shared_requests import by_place
from graphrag_assets.text.words import count_tokens, encode

TASK = "summarize_descriptions"
TOGETHER = "summarize_descriptions_together"
MAX_TOGETHER = 20
"""So many things at most share a request: an answer for more becomes careless, and an invalid one costs more."""
_MIN_ROOM = 100  # minimum tokens for descriptions, in addition to those of the prompt


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """Limits of a description summary: tokens of each request, words of the result.

    `min_tokens`: descriptions of one thing with at most so many tokens together are joined, not summarized.
    """

    min_tokens: int = 500
    max_input_tokens: int = 4000
    max_words: int = 200
    language: str | None = None
    encoding: str = "o200k_base"


_DEFAULTS = SummaryOptions()


class Summary(AnswerForm):
    other_names: ClassVar = {"summary": "description"}
    description: Text

    @model_validator(mode="after")
    def _not_empty(self) -> "Summary":
        if not self.description:
            raise ValueError("the description is empty")
        return self


class NumberedSummary(Summary):
    number: int
    title: Text = ""


_DATED = re.compile(r" \((\d{4}-\d\d-\d\d)\)$")


class Summaries(AnswerForm):
    summaries: Salvaged[NumberedSummary]

    @model_validator(mode="after")
    def _some(self) -> "Summaries":
        if not self.summaries:
            raise ValueError("there is no usable summary")
        return self


class Described(NamedTuple):
    """A thing, by its key, with its title and its distinct descriptions."""

    key: str
    title: str
    descriptions: Sequence[str]


def join_short(things: Iterable[Described], options: SummaryOptions) -> tuple[dict[str, str], list[Described]]:
    """The descriptions, by key, that need no model, and the things that do.

    A single description is kept as it is; several with at most `min_tokens` tokens together follow one
    another by date.
    """
    things = list(things)
    texts = [
        thing.descriptions[0] if len(thing.descriptions) == 1 else " ".join(distinct(thing.descriptions))
        for thing in things
    ]
    short: dict[str, str] = {}
    long: list[Described] = []
    for thing, text, tokens in zip(things, texts, count_tokens(texts, options.encoding), strict=True):
        if tokens <= options.min_tokens or len(distinct(thing.descriptions)) == 1:
            short[thing.key] = text
        else:
            long.append(thing)
    return short, long


def distinct(descriptions: Iterable[str]) -> list[str]:
    """The different descriptions by the date at their end, then by alphabet, white space as single spaces."""
    texts = {" ".join(text.split()) for text in descriptions} - {""}
    return sorted(texts, key=lambda text: (date[1] if (date := _DATED.search(text)) else "", text))


def whole_request(prompts: Prompts, thing: Described, options: SummaryOptions, origin: Origin) -> ChatRequest | None:
    """The request for all descriptions of one thing; None if they do not fit into one."""
    request = summary_request(prompts, thing.title, distinct(thing.descriptions), options, origin)
    fits = max_prompt_tokens(request) <= options.max_input_tokens
    return request if fits or prompt_tokens(request, options.encoding) <= options.max_input_tokens else None


def together(
    prompts: Prompts, requests: Mapping[str, tuple[str, ChatRequest]], options: SummaryOptions, origin: Origin
) -> Iterator[tuple[list[str], ChatRequest]]:
    """Requests that ask for several things each, in the given order, with the keys of these things.

    Args:
        requests: by key, the title and the `whole_request` of a thing. Equal requests have one answer, so the first
            stands for all; a thing that would be alone in its request is left out.
    """
    first = {prompt_text(request.messages): key for key, (_, request) in reversed(list(requests.items()))}
    keys = [key for key in requests if key in set(first.values())]
    if not keys:
        return
    sizes = [tokens + _MARGIN for tokens in count_tokens([_data(requests[key][1]) for key in keys], options.encoding)]
    added = prompt_text(prompts.render(TOGETHER, count=MAX_TOGETHER))
    rules = prompt_tokens(requests[keys[0]][1], options.encoding) - sizes[0] + _MARGIN
    room = options.max_input_tokens - rules - len(encode(added, options.encoding)) - _MARGIN
    pack, tokens = list[str](), 0
    for key, size in zip(keys, sizes, strict=True):
        if len(pack) == MAX_TOGETHER or tokens + size > room:
            yield from _request_together(prompts, pack, requests, origin)
            pack, tokens = [], 0
        pack.append(key)
        tokens += size
    yield from _request_together(prompts, pack, requests, origin)


def _request_together(
    prompts: Prompts, keys: Sequence[str], requests: Mapping[str, tuple[str, ChatRequest]], origin: Origin
) -> Iterator[tuple[list[str], ChatRequest]]:
    if len(keys) < 2:
        return
    titles, parts = zip(*(requests[key] for key in keys), strict=True)
    rules = [message["content"] for message in parts[0].messages if message["role"] == "system"]
    rules.append(prompt_text(prompts.render(TOGETHER, count=len(parts))))
    tasks = (f"### Task {number} of {len(parts)}\n{_data(part)}" for number, part in enumerate(parts, 1))
    messages = (Message(role="system", content="\n\n".join(rules)), Message(role="user", content="\n\n".join(tasks)))
    request = origin.request(TASK, messages, Summaries)
    yield list(keys), replace(request, parts=parts, split=partial(_split, titles))


def _data(request: ChatRequest) -> str:
    return "\n\n".join(message["content"] for message in request.messages if message["role"] == "user")


def _split(titles: Sequence[str], found: Summaries) -> dict[int, str]:
    """The answers, by place, as those of the things' own requests.

    A number that occurs twice, is unknown, or has the title of another thing answers nothing.
    """
    return {
        place: json.dumps({"description": one.description}, ensure_ascii=False)
        for place, one in by_place(found.summaries, attrgetter("number"), len(titles)).items()
        if _letters(one.title) in ("", _letters(titles[place]))
    }


def _letters(title: str) -> str:
    return "".join(filter(str.isalnum, title.casefold()))


async def ask_together(chat: Chat, keys: Sequence[str], request: ChatRequest) -> dict[str, str]:
    """The descriptions, by key, that the answer to a request of `together` has; it may lack some.

    Raises:
        Exception: what `chat` raises.
    """
    try:
        found = await ask(chat, request, Summaries)
    except StoredInParts:  # asked alone, each gets its answer from the ledger
        return {}
    answers = request.split(found) if request.split else {}
    return {keys[place]: Summary.model_validate_json(answer).description for place, answer in answers.items()}


async def summarize_descriptions(
    chat: Chat,
    prompts: Prompts,
    title: str,
    descriptions: Iterable[str],
    options: SummaryOptions = _DEFAULTS,
    origin: Origin = NOWHERE,
) -> str:
    """A description of `title` (of a relationship: both its titles) with the content of all descriptions.

    Depends only on the set of descriptions, not on their order or repetitions, so that the same set makes the same
    requests. A single description is returned unchanged, without a call.

    Raises:
        SettingsError: `max_input_tokens` is too small for the prompt.
        Exception: what `chat` raises.
    """
    texts = distinct(descriptions)
    if len(texts) < 2:
        return "".join(texts)
    if whole := whole_request(prompts, Described("", title, texts), options, origin):
        return (await ask(chat, whole, Summary)).description
    room = options.max_input_tokens - prompt_tokens(summary_request(prompts, title, [], options), options.encoding)
    if room < _MIN_ROOM:
        raise SettingsError(
            f"{options.max_input_tokens} tokens are too few for summaries of descriptions: the prompt for "
            f"{title[:80]!r} takes {options.max_input_tokens - room}. Raise the limit."
        )
    # Half the room for each, so that a summary and one more piece always fit together.
    half = room // 2 - _MARGIN
    pending = [piece for text in texts for piece in _pieces(text, half, options.encoding)]
    summary = ""
    while pending:
        carried = _pieces(summary, half, options.encoding)[:1] if summary else []
        request, taken = _fullest(prompts, title, carried, pending, options, origin)
        summary = (await ask(chat, request, Summary)).description
        pending = pending[taken:]
    return summary


def summary_request(
    prompts: Prompts, title: str, descriptions: Iterable[str], options: SummaryOptions, origin: Origin = NOWHERE
) -> ChatRequest:
    """The request for one batch of descriptions."""
    lines = "\n".join([" ".join(title.split()), *(f"- {text}" for text in descriptions)])
    messages = prompts.render(TASK, descriptions=lines, max_words=options.max_words, language=options.language)
    return origin.request(TASK, messages, Summary)


_MARGIN = 16  # tokens that the fence's marks and a line's dash may take more or less


def _fullest(
    prompts: Prompts, title: str, carried: list[str], pending: list[str], options: SummaryOptions, origin: Origin
) -> tuple[ChatRequest, int]:
    """The request with as many of the pending descriptions as fit, and how many these are."""
    taken, tokens = 0, 0
    for text in pending:
        tokens += len(encode(text, options.encoding))
        if taken and tokens > options.max_input_tokens:
            break
        taken += 1
    while True:
        request = summary_request(prompts, title, [*carried, *pending[:taken]], options, origin)
        excess = prompt_tokens(request, options.encoding) - options.max_input_tokens
        if excess <= 0 or taken == 1:
            return request, taken
        # Drop lines from the end until the excess is gone, then check again.
        while taken > 1 and excess > 0:
            taken -= 1
            excess -= len(encode(pending[taken], options.encoding)) + 2


def _pieces(text: str, max_tokens: int, encoding: str) -> list[str]:
    """`text` in parts of at most `max_tokens` tokens, cut between words where there are spaces."""
    if len(encode(text, encoding)) <= max_tokens:
        return [text]
    middle = len(text) // 2
    cut = text.rfind(" ", 0, middle) + 1 or middle
    return [*_pieces(text[:cut].strip(), max_tokens, encoding), *_pieces(text[cut:].strip(), max_tokens, encoding)]
