"""One description from many. Short descriptions are joined without a model.

Several things may share one request (`things_together`): the answer for each is that of its own request
(`whole_request`), so that it is the same to the ledger which other things were asked for.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pydantic import model_validator

from graphrag_assets.llm.model_options import ChatRequest, Completion, Message
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.task import SYSTEM, Task, TaskModel, prompt_tokens, with_rules
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Text
from graphrag_assets.llm.together import Pack, ask_together, numbered, packs_of
from graphrag_assets.text.words import count_tokens, cut_text

MAX_TOGETHER = 20
"""So many things at most share a request: an answer for more becomes careless, and an invalid one costs more."""
MAX_WORDS = 200  # of a summary
_MARGIN = 16  # tokens that the fence's marks and a line's dash may take more or less
_MIN_PIECE = 50  # tokens, whatever the prompt takes
_DATED = re.compile(r" \((\d{4}-\d\d-\d\d)\)$")


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """Limits of a description summary."""

    min_tokens: int = 500  # descriptions of at most so many together are joined, not summarized
    max_input_tokens: int = 4000  # of each request
    language: str | None = None
    encoding: str = "o200k_base"


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


class Summaries(AnswerForm):
    summaries: Salvaged[NumberedSummary]

    @model_validator(mode="after")
    def _some(self) -> "Summaries":
        if not self.summaries:
            raise ValueError("there is no usable summary")
        return self


SUMMARY = Task(
    "summarize_descriptions", Summary, {"descriptions": "descriptions"}, "", "max_words language", profile="persona"
)
SUMMARIES = Task("summarize_descriptions_together", Summaries, required="count", blocks=SYSTEM)


class Described(NamedTuple):
    """A thing, by its key, with its title and its distinct descriptions."""

    key: str
    title: str
    descriptions: Sequence[str]


def join_short(things: Iterable[Described], options: SummaryOptions) -> tuple[dict[str, str], list[Described]]:
    """Return the descriptions, by key, that need no model, because they are single or short, and the things that do."""
    short: dict[str, str] = {}
    long: list[Described] = []
    for thing in things:
        texts = distinct(thing.descriptions)
        text = thing.descriptions[0] if len(thing.descriptions) == 1 else " ".join(texts)
        if len(texts) == 1 or count_tokens([text], options.encoding)[0] <= options.min_tokens:
            short[thing.key] = text
        else:
            long.append(thing)
    return short, long


def distinct(descriptions: Iterable[str]) -> list[str]:
    """Return the different descriptions by the date at their end, then by alphabet, white space as single spaces."""
    texts = {" ".join(text.split()) for text in descriptions} - {""}
    return sorted(texts, key=lambda text: (date[1] if (date := _DATED.search(text)) else "", text))


def whole_request(model: TaskModel, thing: Described, options: SummaryOptions) -> ChatRequest | None:
    """Return the request for all descriptions of one thing; None if they do not fit into one."""
    request = _request(model, thing.title, distinct(thing.descriptions), options)
    return request if prompt_tokens(request, options.encoding) <= options.max_input_tokens else None


def things_together(
    model: TaskModel, things: Mapping[str, tuple[Described, ChatRequest]], options: SummaryOptions
) -> list[Pack[str]]:
    """Return the keys of things, which are given with their `whole_request`, as they share requests."""
    if not things:
        return []
    requests = [request for _, request in things.values()]
    sizes = [n + _MARGIN for n in count_tokens([one.messages[-1]["content"] for one in requests], options.encoding)]
    rules = prompt_tokens(model.request(SUMMARIES, count=MAX_TOGETHER), options.encoding)
    room = options.max_input_tokens - rules - prompt_tokens(requests[0], options.encoding) + sizes[0]
    return packs_of(things, sizes, room, MAX_TOGETHER)


async def summaries_together(
    model: TaskModel, things: Sequence[tuple[Described, ChatRequest]]
) -> list[Completion | None]:
    """Return the answers to the requests of things; see `ask_together`. An answer with another title is none."""
    requests = [request for _, request in things]

    def rules(count: int) -> Message:
        return with_rules(requests[0].messages, model.request(SUMMARIES, count=count).messages)[0]

    def fits(summary: NumberedSummary, place: int) -> bool:
        return _letters(summary.title) in ("", _letters(things[place][0].title))

    joined = numbered(requests, "Task", Summaries, rules, fits)
    return (await ask_together(model.chat, requests, joined, caller_retries=True))[0]


def _letters(title: str) -> str:
    return "".join(filter(str.isalnum, title.casefold()))


async def summarize_descriptions(
    model: TaskModel, title: str, descriptions: Iterable[str], options: SummaryOptions
) -> str:
    """Return a description of `title` (of a relationship: both its titles) with the content of all descriptions.

    Depends only on the set of descriptions. A single one is returned unchanged, without a call; of too many for one
    request, the summaries of the two halves are summarized.
    """
    empty = prompt_tokens(_request(model, title, [], options), options.encoding)
    most = max((options.max_input_tokens - empty) // 2 - _MARGIN, _MIN_PIECE)  # two of them fit into a request

    async def summary(texts: Sequence[str]) -> str:
        if len(texts) < 2:
            return "".join(texts)
        request = _request(model, title, texts, options)
        if len(texts) == 2 or prompt_tokens(request, options.encoding) <= options.max_input_tokens:
            answer: Summary = (await model.chat.complete(request)).parsed
            return answer.description
        middle = len(texts) // 2
        halves = [await summary(texts[:middle]), await summary(texts[middle:])]
        return await summary([cut_text(half, most, options.encoding) for half in halves])

    texts = distinct(descriptions)
    if len(texts) > 1 and not whole_request(model, Described("", title, texts), options):
        texts = [piece for text in texts for piece in _pieces(text, most, options.encoding)]
    return await summary(texts)


def _request(model: TaskModel, title: str, descriptions: Iterable[str], options: SummaryOptions) -> ChatRequest:
    lines = "\n".join([" ".join(title.split()), *(f"- {text}" for text in descriptions)])
    return model.request(SUMMARY, descriptions=lines, max_words=MAX_WORDS, language=options.language)


def _pieces(text: str, max_tokens: int, encoding: str) -> list[str]:
    """`text` in parts of at most `max_tokens` tokens, cut between words where there are spaces."""
    if count_tokens([text], encoding)[0] <= max_tokens:
        return [text]
    middle = len(text) // 2
    cut = text.rfind(" ", 0, middle) + 1 or middle
    return [*_pieces(text[:cut].strip(), max_tokens, encoding), *_pieces(text[cut:].strip(), max_tokens, encoding)]
