"""Tokens and cost of a chat request: expected before it is sent, and counted when it is answered."""

from collections import defaultdict
from collections.abc import Sequence

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm.chat_parameters import ChatParameters
from graphrag_assets.llm.model_options import ChatRequest, Message
from graphrag_assets.llm.prices import Prices
from graphrag_assets.llm.provider import Reply
from graphrag_assets.text.words import count_tokens

_UNKNOWN_OUTPUT_TOKENS = 1000  # of a task without a limit that has not been answered yet
_SHORT_PROMPT, _BYTES_PER_TOKEN = 4_000, 5
"""Bytes of prompts that are not looked at: all of short ones, and what a token usually has at most."""
_TIMES_THE_PRICE = 10
"""A cost above this many times the price of the tokens comes from details of the usage that cannot be."""


class ChatCosts:
    """Tokens and cost of the requests to one chat model; it remembers how long the answers to each task are."""

    def __init__(self, parameters: ChatParameters):
        self._parameters = parameters
        self._answered: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))  # by task: answers, their tokens

    def estimate(self, request: ChatRequest, messages: Sequence[Message]) -> tuple[int, int]:
        """Prompt tokens, counted, and completion tokens: the task's mean so far, else its limit."""
        counted = count_tokens(message["content"] for message in messages)
        answers, tokens = self._answered[request.task]
        limit = self._parameters.of(request).get("max_tokens")
        output = tokens / answers if answers else limit or _UNKNOWN_OUTPUT_TOKENS
        return sum(counted) + 4 * len(messages), round(min(output, limit) if limit else output)

    def usage_of(self, request: ChatRequest, reply: Reply, prices: Prices) -> Usage:
        """Tokens and cost of a reply. Tokens that the server does not say are counted here."""
        sent, received, cached = reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens
        cost_usd = reply.cost_usd
        if sent is None or received is None:
            sent, received = self.estimate(request, request.messages)[0], _n_tokens(reply.text)
            cost_usd, cached = None, 0
        answers, tokens = self._answered[request.task]
        self._answered[request.task] = (answers + 1, tokens + received)
        cost = prices.cost(sent, received, cached)
        if prices.source == "litellm" and cost_usd is not None and 0 <= cost_usd <= _TIMES_THE_PRICE * cost:
            cost = cost_usd  # includes the prices of tiered tokens, and of tokens written to a cache
        return Usage(prompt_tokens=sent, cached_tokens=cached, completion_tokens=received, cost_usd=cost)


def tokens_if_cut(messages: Sequence[Message], reply: Reply) -> int:
    """The tokens of a prompt of which the server has counted less than half: it has cut the rest. 0 otherwise.

    Tokenizers differ by less, and short prompts are never cut.
    """
    size = sum(len(message["content"].encode()) for message in messages)
    if reply.prompt_tokens is None or size < max(_SHORT_PROMPT, reply.prompt_tokens * _BYTES_PER_TOKEN):
        return 0
    n_sent = sum(count_tokens(message["content"] for message in messages))
    return n_sent if reply.prompt_tokens < n_sent / 2 else 0


def _n_tokens(text: str) -> int:
    return sum(count_tokens([text]))
