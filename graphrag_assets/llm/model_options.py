"""The values that go in and out of the model clients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from pydantic import BaseModel

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.runtime.outgoing import keep_secret, without_credentials

SAME_ANSWER = frozenset({"service_tier", "user", "metadata", "store", "prompt_cache_key", "safety_identifier"})
"""Parameters that do not change an answer: no part of the ledger's keys and of fingerprints."""
Structured = Literal["json_schema", "json_object", "text"]
"""How JSON is requested: by a schema, in JSON mode, or in words."""


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
class ModelOptions:
    """A model and its server."""

    model: str  # litellm's name, provider/model
    base_url: str | None = None  # of an OpenAI-compatible server
    api_key: str | None = field(default=None, repr=False)  # None: the provider's own environment variables
    timeout: float = 180.0  # seconds until a request counts as lost
    prices: PriceOptions = PriceOptions()
    parameters: str = "{}"  # JSON object by litellm's names, in place of those of a request; null: not sent

    def __post_init__(self) -> None:
        """Its key and the credentials of its address are masked in everything that leaves the process."""
        keep_secret(self.api_key)
        keep_secret(self.base_url)

    @property
    def where(self) -> str:
        """Model and address, for messages."""
        return f"{self.model} at {without_credentials(self.base_url)}" if self.base_url else self.model


@dataclass(frozen=True)
class EmbeddingOptions(ModelOptions):
    """An embedding model and the limits of its requests."""

    batch_size: int = 64  # texts of a request
    batch_bytes: int = 200_000  # of a request in UTF-8; more than its tokens, in English four times as many
    item_tokens: int = 8191  # longer texts are cut


@dataclass(frozen=True)
class LimitOptions:
    """Limits of the calls to a model, and how they are retried.

    Rates are leaky buckets: a burst up to this number, then an even rate; None: no limit. The n-th retry waits a random
    time up to `backoff_seconds` times 2^(n-1), in addition to the server's Retry-After.
    """

    concurrency: int = 25  # requests in flight
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_retries: int = 8  # of one call, after its first attempt
    backoff_seconds: float = 1.0
    backoff_max_seconds: float = 60.0
    retry_after_max_seconds: float = 120.0
    deadline_seconds: float = 900.0  # a call is given up if its next retry would start later
    circuit_failures: int = 10  # so many failed calls in a row suspend the calls
    circuit_seconds: float = 60.0  # after this time calls are sent again


@dataclass(frozen=True)
class ChatRequest:
    """One request to a chat model.

    `batch`, `unit` and `run_id` are recorded in the ledger but not part of its key. `may_say_nothing`: an answer
    without JSON means one without records, because models say so in words.

    `parts`: requests that this one asks together. `split` gives their answers, by place, from the parsed answer; each
    is stored as the answer of its part, with a share of tokens and cost, and nothing is stored for the whole: the
    answers are those that `stored_answer` gives for the parts.
    """

    task: str
    messages: tuple[Message, ...]
    response_model: type[BaseModel] | None = None
    temperature: float = 0.0
    batch: str | None = None
    unit: str | None = None
    run_id: str | None = None
    may_say_nothing: bool = False
    parts: tuple["ChatRequest", ...] = ()
    split: Callable[[Any], Mapping[int, BaseModel]] | None = None

    @property
    def name(self) -> str:
        """Task, text unit and batch, for messages."""
        unit = f" of {self.unit}" if self.unit else ""
        return f"{self.task}{unit}{f' in batch {self.batch}' if self.batch else ''}"


@dataclass(frozen=True)
class Completion:
    """A valid answer."""

    text: str
    parsed: Any = None  # an instance of the request's response model
    usage: Usage = field(default_factory=Usage)  # its tokens and their cost, which is 0 from the ledger
    from_ledger: bool = False
    dropped_records: int = 0  # invalid ones, left out of its `Salvaged` lists
    guessed: bool = False  # broken JSON, or its backslashes, were repaired
    doubtful: bool = False  # the repair may have lost something
