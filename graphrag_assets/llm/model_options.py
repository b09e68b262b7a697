"""Plain values that go in and out of the model layer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from pydantic import BaseModel

Structured = Literal["auto", "json_schema", "json_object", "text"]


class Message(TypedDict):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class PriceOptions:
    """US dollars per million tokens; None: litellm's table."""

    input_usd_per_million: float | None = None
    output_usd_per_million: float | None = None


@dataclass(frozen=True)
class ChatOptions:
    """A chat model and how it is asked.

    Attributes:
        model: litellm's name, `provider/model`.
        base_url, api_key: of an OpenAI-compatible server; None: the provider's own environment variables.
        temperature, max_tokens, seed: of every request that does not set its own; None is not sent.
        extra: further parameters of litellm's completion call, such as `reasoning_effort`; they are written into
            the ledger, so no secrets.
        timeout: seconds until a request counts as lost.
        structured: how JSON is asked for; auto: by a schema where the model is not known to lack it, and one
            step less (JSON mode, then plain text) when the server rejects it.
        encoding: tiktoken encoding that estimates the size of prompts.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = 0.0
    max_tokens: int | None = None
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 180.0
    structured: Structured = "auto"
    prices: PriceOptions = PriceOptions()
    encoding: str = "o200k_base"


@dataclass(frozen=True)
class EmbeddingOptions:
    """An embedding model and how it is asked.

    Attributes:
        dimensions: asked of models that can shorten their vectors; None: the model's own.
        batch_size, batch_bytes: most texts of one request, and most bytes of them in UTF-8, which are more than their
            tokens (in English about four times as many).
        item_tokens: longer texts are split and their vectors averaged.
        base64: vectors travel as base64 where OpenAI's protocol is spoken, unless the server refuses it: as numbers
            they are three times the bytes and take ten times the CPU to read.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    dimensions: int | None = None
    batch_size: int = 64
    batch_bytes: int = 200_000
    item_tokens: int = 8191
    base64: bool = True
    timeout: float = 120.0
    prices: PriceOptions = PriceOptions()
    encoding: str = "cl100k_base"


@dataclass(frozen=True)
class LimitOptions:
    """How much at once, and how patiently.

    Attributes:
        concurrency: most requests in flight.
        requests_per_minute, tokens_per_minute: held in any 60 seconds; None: no limit.
        max_retries: of one call, after its first attempt.
        backoff_seconds, backoff_max_seconds: the n-th retry waits a random time up to the first times 2^n.
        deadline_seconds: a call is given up when its next retry would start after this.
        circuit_failures: so many different calls given up in a row stop all.
        circuit_seconds: after this long a stopped model is tried again.
    """

    concurrency: int = 25
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_retries: int = 8
    backoff_seconds: float = 1.0
    backoff_max_seconds: float = 60.0
    deadline_seconds: float = 900.0
    circuit_failures: int = 10
    circuit_seconds: float = 60.0


@dataclass(frozen=True)
class ChatRequest:
    """One question to a chat model.

    `batch`, `unit` and `run_id` are for the ledger's books and no part of its key: the same question of another
    run is the same question.
    """

    task: str
    messages: tuple[Message, ...]
    response_model: type[BaseModel] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    batch: str | None = None
    unit: str | None = None
    run_id: str | None = None


@dataclass(frozen=True)
class TokenUsage:
    """What one call used. An answer from the ledger cost nothing now: its `cost_usd` is 0."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost_usd + other.cost_usd,
        )


@dataclass(frozen=True)
class Completion:
    """A valid answer.

    `parsed` is an instance of the request's response model; `dropped_records` counts the invalid records left
    out of its `Salvaged` lists. `retries` are all requests after the first, whatever the reason.
    """

    text: str
    parsed: Any = None
    usage: TokenUsage = TokenUsage()
    from_ledger: bool = False
    retries: int = 0
    seconds: float = 0.0
    seconds_waiting: float = 0.0
    dropped_records: int = 0
