"""What prompts say about a corpus, requested from the chat model; and readings of text units to compare prompts by."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from graphrag_assets.contracts.prompt_profile import ProfileType
from graphrag_assets.llm.model_errors import GivenUp
from graphrag_assets.llm.model_options import ChatRequest, Completion, Message
from graphrag_assets.llm.prompts import Prompts, fence
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, Text
from graphrag_assets.llm.tasks.chat_protocol import NOWHERE, Chat, Origin, ask, prompt_tokens
from graphrag_assets.text.words import count_tokens, cut_text

TASK = "tune_prompts"
_SAMPLE_TOKENS = 6000
_MAX_LENGTH = 600  # characters of a field
_OTHER_WORDS = (
    "Read the document as a second reader who has not seen what others found: decide for yourself what it names and "
    "what connects the names, by the same rules and in the same form."
)


class TypeDefinition(Form):
    type: Text
    definition: Text = ""


class CorpusDescription(AnswerForm):
    domain: Text = ""
    persona: Text = ""
    rating_scale: Text = ""
    definitions: Salvaged[TypeDefinition] = Field(default_factory=list)

    def line(self, name: str) -> str:
        """A field on one line, at most 600 characters long."""
        return " ".join(str(getattr(self, name)).split())[:_MAX_LENGTH]


async def describe_corpus(
    chat: Chat,
    prompts: Prompts,
    texts: Sequence[str],
    types: Iterable[ProfileType],
    language: str | None,
    encoding: str,
    origin: Origin = NOWHERE,
) -> CorpusDescription:
    """Domain, persona, rating scale and definitions of the types, from the beginnings of the texts.

    Raises:
        Exception: what `chat` raises.
    """
    room = _SAMPLE_TOKENS // max(len(texts), 1)
    messages = prompts.render(
        TASK,
        sample="\n\n".join(fence(cut_text(text, room, encoding), "passage") for text in texts),
        types="\n".join(f"{kind.type}: {', '.join(kind.examples)}" for kind in types),
        language=language,
    )
    return await ask(chat, origin.request(TASK, messages, CorpusDescription), CorpusDescription)


@dataclass
class ReadingChat:
    """A `Chat` that counts the tokens of requests and answers, wherever they come from.

    `in_other_words`: the request is worded differently, so that a model of the same temperature reads independently.
    """

    chat: Chat
    encoding: str
    in_other_words: bool = False
    tokens: int = 0

    async def known(self, request: ChatRequest) -> Completion | None:
        """The answer that is paid for, or None."""
        return await self.chat.known(self._worded(request))

    async def given_up(self, request: ChatRequest) -> GivenUp | None:
        """Why the request is not sent again; None if it may be."""
        return await self.chat.given_up(self._worded(request))

    async def complete(self, request: ChatRequest) -> Completion:
        """The answer to the request."""
        request = self._worded(request)
        completion = await self.chat.complete(request)
        self.tokens += prompt_tokens(request, self.encoding) + count_tokens([completion.text], self.encoding)[0]
        return completion

    def _worded(self, request: ChatRequest) -> ChatRequest:
        if not self.in_other_words:
            return request
        *before, last = request.messages
        worded = Message(role=last["role"], content=f"{last['content']}\n\n{_OTHER_WORDS}")
        return replace(request, messages=(*before, worded))
