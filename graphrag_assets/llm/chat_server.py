"""What a process has learned about the server of a chat model: how it takes requests, and what it does to prompts."""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from graphrag_assets.llm import provider
from graphrag_assets.llm.limits import REJECTS
from graphrag_assets.llm.model_errors import RequestRejected
from graphrag_assets.llm.model_options import Message, ModelOptions, Structured
from graphrag_assets.llm.structured_output import WEAKER
from graphrag_assets.text.words import count_tokens

_SHORT_PROMPT, _BYTES_PER_TOKEN = 4_000, 5
"""Bytes of prompts that are not looked at: all of short ones, and what a token usually has at most."""
_ABOUT_FORMAT = ("response_format", "json", "schema", "grammar")
_log = logging.getLogger(__name__)


@dataclass
class ChatServer:
    """The server of one model. `refused`: parameters that are left out."""

    options: ModelOptions
    refused: set[str] = field(default_factory=set)
    cuts_prompts: bool = False  # it counts less than half of the tokens of a long prompt
    lacks_opening_tag: bool = False  # its thoughts begin without a tag, so nothing is shown before they end
    _mode: Structured | None = None

    def mode(self) -> Structured:
        """Return how JSON is requested, as far as is known."""
        if self._mode is None:
            self._mode = provider.structured_mode(self.options)
        return self._mode

    def learn(self, error: RequestRejected, rejected: Structured | None, sent: Iterable[str]) -> bool:
        """Ask for JSON in a weaker way from now on, or leave out the parameters that a rejection names.

        Returns whether the request is to be sent again. `rejected`: how it asked for JSON, if it did.
        """
        if rejected in WEAKER and any(word in str(error).lower() for word in _ABOUT_FORMAT):
            if self._mode == rejected:  # else another call has done so
                self._mode = WEAKER[rejected]
            return True
        said = str(error).partition(REJECTS)[2]  # without the names of task, text unit and batch
        names = {name for name in sent if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said)}
        if new := sorted(names - self.refused):
            self.refused.update(new)
            _log.warning("%s refuses %s, so it is left out: %s", self.options.where, ", ".join(new), said)
        return bool(names)

    def observe(self, reply: provider.Reply, messages: Sequence[Message]) -> None:
        """Warn of a prompt that was cut, and of thoughts without their opening tag, whose answers are shown whole."""
        size, counted = sum(len(message["content"].encode()) for message in messages), reply.prompt_tokens
        is_long = counted is not None and size >= max(_SHORT_PROMPT, counted * _BYTES_PER_TOKEN)
        if counted and is_long and not self.cuts_prompts and 2 * counted < (n_sent := n_tokens_of(messages)):
            self.cuts_prompts = True  # tokenizers differ by less
            _log.warning(
                "%s counted %d tokens of a prompt of about %d: it seems to cut prompts, so the model does not read all "
                "of them. Raise its context: for Ollama num_ctx in GRAPHRAG_MODEL_PARAMETERS (models ollama_chat/…) or "
                "OLLAMA_CONTEXT_LENGTH in the environment of its server.",
                *(self.options.where, counted, n_sent),
            )
        if reply.lacked_opening_tag and not self.lacks_opening_tag:
            self.lacks_opening_tag = True
            _log.warning(
                "%s sends thoughts without their opening tag, so its answers are not streamed. Start its server with a "
                "reasoning parser (vLLM: --reasoning-parser, llama.cpp: --reasoning-format).",
                self.options.where,
            )


_servers: dict[tuple[str, str | None], ChatServer] = {}


def server_of(options: ModelOptions) -> ChatServer:
    """Return the server that all clients of a model at an address share."""
    return _servers.setdefault((options.model, options.base_url), ChatServer(options))


def n_tokens_of(messages: Sequence[Message]) -> int:
    """Return the tokens of the messages, counted here."""
    return sum(count_tokens(message["content"] for message in messages))
