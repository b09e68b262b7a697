"""One description from many: in one request if they fit, else in batches that carry the summary along."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from pydantic import model_validator

from graphrag_assets.errors import SettingsError
from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Text
from graphrag_assets.llm.tasks.chat_protocol import NOWHERE, Chat, Origin, ask, max_prompt_tokens, prompt_tokens
from graphrag_assets.text import encode

TASK = "summarize_descriptions"
_MIN_ROOM = 100  # minimum tokens for descriptions, in addition to those of the prompt


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """Limits of a description summary: tokens of each request, words of the result."""

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
    distinct = sorted({" ".join(text.split()) for text in descriptions} - {""})
    if len(distinct) < 2:
        return "".join(distinct)
    whole = summary_request(prompts, title, distinct, options, origin)
    if max_prompt_tokens(whole) <= options.max_input_tokens:
        return (await ask(chat, whole, Summary)).description
    room = options.max_input_tokens - prompt_tokens(summary_request(prompts, title, [], options), options.encoding)
    if room < _MIN_ROOM:
        raise SettingsError(
            f"{options.max_input_tokens} tokens are too few for summaries of descriptions: the prompt for "
            f"{title[:80]!r} takes {options.max_input_tokens - room}. Raise the limit."
        )
    # Half the room for each, so that a summary and one more piece always fit together.
    half = room // 2 - _MARGIN
    pending = [piece for text in distinct for piece in _pieces(text, half, options.encoding)]
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
    prompts: Prompts,
    title: str,
    carried: list[str],
    pending: list[str],
    options: SummaryOptions,
    origin: Origin,
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
