"""litellm as it is used here: its setup, addresses, replies, errors, models, prices; and what a server is like."""

import asyncio
import contextlib
import functools
import json
import logging
import math
import os
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from graphrag_assets.errors import chain_of
from graphrag_assets.llm.model_errors import BadReplyError, RequestRejected
from graphrag_assets.llm.model_options import EmbeddingOptions, Message, ModelOptions, PriceOptions, Structured
from graphrag_assets.llm.thoughts import AnswerReader, is_json, read_whole
from graphrag_assets.runtime.outgoing import ReplyMasker, mask_reply, shown
from graphrag_assets.text.words import count_tokens

MAX_TOKENS = 100_000_000
"""More tokens than any request can have: a server that says more is wrong."""
LISTED_PRICES = PriceOptions()
Chunks = AsyncIterator[Any]
_log = logging.getLogger(__name__)
STREAMED: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
"""The parameters of a streamed request, whose last chunk has the usage."""
_FATAL = {401, 402, 403, 404}
_TRANSIENT = {200, 408, 409, 425}  # 200: a body that could not be read
_WITHOUT_STATUS = ("APIConnectionError", "APIError", "MidStreamFallbackError")
_NOT_INSTALLED = ("No module named", "pip install")  # a package of the provider; litellm reports some as HTTP 500
_NO_PROVIDER = ("LLM Provider NOT provided", "Unsupported provider", *_NOT_INSTALLED)
_PARTS = (
    "the content of its reply is a list of parts, not a text. Name the model mistral/…, whose replies have this form, "
    "or start the server without a reasoning parser."
)
_NO_CREDIT = ("insufficient_quota", "exceeded your current quota", "billing_hard_limit")


@functools.cache
def litellm() -> Any:
    """litellm, imported on first use (it takes seconds); without telemetry, downloads of prices and its own retries."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("DEFAULT_MAX_RETRIES", "0")
    import litellm as module

    module.telemetry = False
    module.suppress_debug_info = True
    module.drop_params = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # it logs what it raises, with a traceback
    return module


@functools.cache
def warn_once(message: str) -> None:
    """Log a warning, once per process."""
    _log.warning("%s", message)


def provider_of(model: str) -> tuple[str, str]:
    """Return (provider, model at that provider) of a litellm model name, without importing litellm."""
    provider, slash, name = model.partition("/")
    return (provider, name) if slash else ("", model)


def entry_of(model: str) -> dict[str, Any] | None:
    """Return the model's entry in litellm's table of prices and features; None if there is none."""
    table = litellm().model_cost
    entry: dict[str, Any] | None = table.get(model) or table.get(provider_of(model)[1])
    return entry


def address(options: ModelOptions) -> dict[str, Any]:
    """Model, address, key and timeout as litellm's parameters."""
    key = options.api_key
    if options.base_url and options.model.startswith("openai/"):
        # An OpenAI-compatible server may not need a key, but the openai client requires one.
        key = key or os.environ.get("OPENAI_API_KEY") or "none"
    where = {name: value for name, value in (("api_base", options.base_url), ("api_key", key)) if value}
    return {"model": options.model, "timeout": options.timeout, "max_retries": 0, **where}


def missing_key(options: ModelOptions) -> str:
    """Return provider's variables that could hold the API key, if none is set and no server is named; else empty."""
    if options.api_key or options.base_url:
        return ""
    missing = litellm().validate_environment(model=options.model)["missing_keys"]
    return " or ".join(name for name in missing if name.endswith("_API_KEY"))


def structured_mode(options: ModelOptions) -> Structured:
    """Return the strongest way of requesting JSON that the model is expected to support."""
    module = litellm()
    if not entry_of(options.model) or module.supports_response_schema(model=options.model):
        return "json_schema"
    return "json_object" if "response_format" in (module.get_supported_openai_params(options.model) or ()) else "text"


@dataclass(frozen=True)
class Prices:
    """US dollars per token of a model."""

    input_usd: float
    output_usd: float
    source: str  # "options", "litellm" or "unknown", which counts as free
    cached_usd: float  # of prompt tokens from the provider's prompt cache

    def cost(self, prompt_tokens: int, completion_tokens: int = 0, cached_tokens: int = 0) -> float:
        """Cost of a call in US dollars; `cached_tokens` are some of the prompt tokens."""
        prompt = (prompt_tokens - cached_tokens) * self.input_usd + cached_tokens * self.cached_usd
        return prompt + completion_tokens * self.output_usd

    @classmethod
    def of(cls, model: str, options: PriceOptions = LISTED_PRICES) -> "Prices":
        """Prices of a model: those of the options, where unset litellm's. Warns once where there are none."""
        by_option = {
            "input_cost_per_token": options.input_usd_per_million,
            "output_cost_per_token": options.output_usd_per_million,
            "cache_read_input_token_cost": options.input_usd_per_million,
        }
        usd = {name: price / 1e6 for name, price in by_option.items() if price is not None}
        source = "options" if usd else "litellm"
        if len(usd) < len(by_option):
            usd = {name: float(price) for name in by_option if (price := (entry_of(model) or {}).get(name))} | usd
        if "input_cost_per_token" not in usd and source == "litellm":
            source = "unknown"
            warn_once(
                f"No price is known for {model}: its calls count as free and are not limited by a budget. "
                "Set its prices per million tokens."
            )
        input_usd = usd.get("input_cost_per_token", 0.0)
        cached_usd = usd.get("cache_read_input_token_cost", input_usd)
        return cls(input_usd, usd.get("output_cost_per_token", 0.0), source, cached_usd)


# Replies


@dataclass(frozen=True)
class Reply:
    """A provider's reply to one chat request. Tokens are None where the server does not say them, or is wrong."""

    text: str = ""  # without thoughts, see `thoughts`
    finish_reason: str = "stop"
    refusal: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0  # of the prompt tokens, from the provider's prompt cache
    whole: str = ""  # the text with thoughts; of a stream its beginning
    thoughts: str = ""  # what a server with a reasoning parser takes for them
    lacked_opening_tag: bool = False  # of its thoughts


def read_reply(response: Any) -> Reply:
    """Return what litellm's `acompletion` returns, as a `Reply`; secrets are masked."""
    reply = _with_tokens(Reply(), response)
    if not response.choices:
        return reply
    choice = response.choices[0]
    whole, thoughts, refusal = _said_in(choice.message)
    text, lacked_opening_tag = read_whole(whole.lstrip())
    if not text.strip():  # some servers make a tool call of the answer
        calls = (call.function for call in getattr(choice.message, "tool_calls", None) or () if call.function)
        text = next((str(call.arguments) for call in calls), thoughts if is_json(thoughts) else "")
    return replace(
        reply,
        text=mask_reply(text),
        whole=whole,
        thoughts=thoughts,
        lacked_opening_tag=lacked_opening_tag,
        finish_reason=choice.finish_reason or "stop",
        refusal=refusal,
    )


async def pieces(first: Any, chunks: Chunks, timeout: float, reader: AnswerReader) -> AsyncIterator[tuple[str, Reply]]:
    """Yield the text of each chunk of a stream, with the reply as known so far; its text comes with the last one.

    Secrets are masked: the end of a chunk comes with the next one while a secret may begin there. A chunk that does not
    come in `timeout` seconds is a TimeoutError; comments that keep a connection are none.
    """
    reply, masker, chunk = Reply(), ReplyMasker(), first
    while chunk is not None:
        reply, text = _with_tokens(reply, chunk), ""
        if chunk.choices:
            choice = chunk.choices[0]
            text, thoughts, refusal = _said_in(choice.delta)
            reply = replace(
                reply,
                whole=reply.whole or text,
                thoughts=reply.thoughts or thoughts,
                finish_reason=choice.finish_reason or reply.finish_reason,
                refusal=reply.refusal or refusal,
            )
        yield reader.feed(masker.feed(text)), reply
        async with asyncio.timeout(timeout):
            chunk = await anext(chunks, None)
    rest = reader.feed(masker.feed("", last=True), last=True)
    yield rest, replace(reply, text=reader.answer, lacked_opening_tag=reader.lacked_opening_tag)


async def send_embedding(options: EmbeddingOptions, texts: list[str]) -> tuple[list[Any], int]:
    """Send one embedding request; returns the vectors, as lists of numbers, in the texts' order, and the tokens."""
    parameters = json.loads(options.parameters)
    response = await litellm().aembedding(
        input=texts, encoding_format="float", allowed_openai_params=list(parameters), **parameters, **address(options)
    )
    try:
        rows = {row["index"]: row["embedding"] for row in response.data}
    except (KeyError, TypeError, AttributeError):
        raise BadReplyError("The reply has no list of vectors.") from None
    if rows.keys() != set(range(len(response.data))) or any(isinstance(index, bool) for index in rows):
        raise BadReplyError("The vectors are not numbered 0, 1, 2, …")
    usage = response.usage
    billed = (_count(usage.prompt_tokens) or _count(usage.total_tokens) or 0) if usage else 0
    return [rows[index] for index in range(len(rows))], billed


def _said_in(message: Any) -> tuple[str, str, str | None]:
    """Text, thoughts and refusal of a message or of a piece of one, without halves of characters."""
    parts = (message.content, getattr(message, "reasoning_content", None))  # litellm gives `reasoning` this name
    text, thoughts = (part.encode("utf-8", "replace").decode() if isinstance(part, str) else "" for part in parts)
    fields = getattr(message, "provider_specific_fields", None) or {}
    refusal = getattr(message, "refusal", None) or fields.get("refusal")
    return text, thoughts, shown(str(refusal)) if refusal else None


def _with_tokens(reply: Reply, response: Any) -> Reply:
    """Return the reply with the tokens that a response or a chunk says."""
    usage = getattr(response, "usage", None)
    if not usage or not usage.prompt_tokens:  # which litellm makes of a usage that is missing
        return reply
    sent = _count(usage.prompt_tokens)
    cached = _count(getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)) or 0
    cached = cached if cached <= (sent or 0) else 0
    return replace(reply, prompt_tokens=sent, completion_tokens=_count(usage.completion_tokens), cached_tokens=cached)


def _count(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 <= value <= MAX_TOKENS else None


# Errors

FailureKind = Literal["transient", "unconnected", "rate_limited", "fatal", "rejected", "refused"]


@dataclass(frozen=True)
class Failure:
    """Why a request failed.

    Transient, unconnected and rate limited requests are sent again; of a fatal failure every request would fail; a
    request is rejected by the server, or refused by a content filter.
    """

    kind: FailureKind
    status: int | None  # of HTTP, if the server replied
    message: str  # the provider's, on one line, without secrets
    retry_after: float | None = None  # seconds that the server asks to wait
    timed_out: bool = False

    @property
    def may_be_of_request(self) -> bool:
        """Whether another attempt may fail alike: an unusable reply, an error within the server, or no reply."""
        return self.timed_out or self.status in (200, 500)

    @property
    def in_words(self) -> str:
        """What happened."""
        status = f"HTTP {self.status}: " if self.status and self.status != 200 else ""
        slow = " If the server is slow, raise GRAPHRAG_REQUEST_TIMEOUT." if self.timed_out else ""
        return f"{status}{self.message}{slow}"

    @property
    def remedy(self) -> str:
        """What to do about a fatal failure."""
        if any(words in self.message for words in _NOT_INSTALLED):
            return "Install the missing package."
        match self.status:
            case 401 | 403:
                return "Check the API key and what it may use."
            case 402 | 429:
                return "Check the account's credit."
            case 404:
                return "Check the model's name and the base URL."
        return "Check the model's name: provider/model, as litellm writes it."


def failure(error: Exception) -> Failure:
    """Classify an exception of a request."""
    status = getattr(error, "status_code", None)
    status = int(status) if isinstance(status, int | str) and str(status).isdigit() else None
    if no_connection := _no_connection(error):  # litellm reports it as HTTP 500
        return Failure("unconnected", None, shown(no_connection))
    message = _provider_message(error)
    if "Invalid response object" in message and "'content': [" in str(error):  # litellm reports it as HTTP 500
        return Failure("fatal", None, _PARTS)
    if "Missing credentials" in message:  # without a key nothing is sent; litellm reports it as HTTP 500
        status = 401
    name = type(error).__name__
    if "ContentPolicy" in name:
        return Failure("refused", status, message)
    if status == 429:
        no_credit = any(words in message for words in _NO_CREDIT)
        return Failure("fatal" if no_credit else "rate_limited", status, message, retry_after(error))
    # Google's errors of credentials say whether another attempt may help; litellm reports them as HTTP 500.
    has_no_access = any(getattr(one, "retryable", None) is False for one in chain_of(error))
    has_no_provider = any(words in message for words in _NO_PROVIDER)
    if status in _FATAL or has_no_access or has_no_provider or isinstance(error, ImportError):
        return Failure("fatal", status, message)
    passing = isinstance(error, TimeoutError | OSError) or name in _WITHOUT_STATUS
    if status is not None:
        passing = status in _TRANSIENT or status >= 500
    timed_out = isinstance(error, TimeoutError) or status in (408, 504)  # as a proxy says
    return Failure("transient" if passing else "rejected", status, message, retry_after(error), timed_out)


def _no_connection(error: BaseException) -> str | None:
    """Why there is no connection, and the remedy; None if the error is another one."""
    from aiohttp import ClientConnectorError

    refused = next((one for one in chain_of(error) if isinstance(one, ClientConnectorError)), None)
    if refused is None:
        return None
    reason = refused.strerror or refused.os_error
    remedy = "Check that the server runs, the base URL, and a proxy in HTTP_PROXY or HTTPS_PROXY."
    if any(isinstance(one, ssl.SSLCertVerificationError) for one in chain_of(error)):
        remedy = (
            "Its certificate is not one of an authority that this machine trusts. Set SSL_CERT_FILE to the file of the "
            "certificate, or of its authority."
        )
    elif any(isinstance(one, ssl.SSLError) for one in chain_of(error)):
        remedy = "Check whether the base URL begins with http:// or https://."
    return f"cannot connect to {refused.host}:{refused.port}: {reason}. {remedy}"


def _provider_message(error: Exception) -> str:
    """Return the provider's own message on one line, without secrets and litellm's chain of class names."""
    text = str(error).strip().rpartition("Exception - ")[2].removeprefix("litellm.") or type(error).__name__
    with contextlib.suppress(ValueError, KeyError, TypeError):
        text = str(json.loads(text[text.index("{") :])["error"]["message"])
    if re.fullmatch(r"Error code: \d+", text):  # the body is not that of OpenAI's errors
        text = next((str(body) for one in chain_of(error) if (body := getattr(one, "body", None))), text)
    line = " ".join(text.partition("Traceback (most recent call last)")[0].split())
    return shown(line)[:500]  # in this order: half a key would not be recognized


def retry_after(error: Exception) -> float | None:
    """Seconds of the header Retry-After, which is a number or an HTTP date; None without it."""
    of_response = getattr(getattr(error, "response", None), "headers", None)
    value = (getattr(error, "litellm_response_headers", None) or of_response or {}).get("retry-after")
    if not value:
        return None
    seconds = 0.0
    for seconds_of in (float, lambda date: parsedate_to_datetime(date).timestamp() - time.time()):
        with contextlib.suppress(ValueError, OverflowError):
            seconds = seconds or seconds_of(value)
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


# Servers of chat models

_SHORT_PROMPT, _BYTES_PER_TOKEN = 4_000, 5
"""Bytes of prompts that are not looked at: all of short ones, and what a token usually has at most."""
_ABOUT_FORMAT = ("response_format", "json", "schema", "grammar")
_WEAKER: dict[Structured, Structured] = {"json_schema": "json_object", "json_object": "text"}
"""The next weaker way of requesting JSON, for servers that reject one."""


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
            self._mode = structured_mode(self.options)
        return self._mode

    def learn(self, error: RequestRejected, rejected: Structured | None, sent: Iterable[str]) -> bool:
        """Ask for JSON in a weaker way from now on, or leave out the parameters that a rejection names.

        Returns whether the request is to be sent again. `rejected`: how it asked for JSON, if it did.
        """
        said = error.said
        if rejected in _WEAKER and any(word in said.lower() for word in _ABOUT_FORMAT):
            if self._mode == rejected:  # else another call has done so
                self._mode = _WEAKER[rejected]
            return True
        names = {name for name in sent if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said)}
        if new := sorted(names - self.refused):
            self.refused.update(new)
            _log.warning("%s refuses %s, so it is left out: %s", self.options.where, ", ".join(new), said)
        return bool(names)

    def observe(self, reply: Reply, messages: Sequence[Message]) -> None:
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
