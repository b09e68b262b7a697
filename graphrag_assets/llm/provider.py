"""The only module that knows litellm: loading it, sending one request, reading its answers, errors and prices."""

import contextlib
import functools
import gc
import importlib
import json
import logging
import os
import time
import uuid
import warnings
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from graphrag_assets.llm.model_errors import without_secrets
from graphrag_assets.llm.model_options import ChatOptions, EmbeddingOptions, Structured
from graphrag_assets.text import tokenizer

# litellm serialises every reply to log it, and its types know vectors only as lists.
_BASE64_WARNING = r"Pydantic serializer warnings:\s+PydanticSerializationUnexpectedValue\(Expected `list\[float\]`"


@functools.cache
def litellm() -> Any:
    """litellm, imported on the first use (seconds), silent and without network.

    `DEFAULT_MAX_RETRIES` and `num_retries` are 0 because the retries are ours: a client below that retries by
    itself is neither limited nor counted. OpenAI's protocol goes over litellm's own HTTP handler, which costs
    about a third less CPU per call than the openai client.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("DEFAULT_MAX_RETRIES", "0")
    os.environ.setdefault("EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER", "true")
    with _uncollected():
        module: Any = importlib.import_module("litellm")
        main: Any = importlib.import_module("litellm.main")
        main.encoding = tokenizer()  # else it loads one of its own with the first call
    module.telemetry = False
    module.suppress_debug_info = True
    module.drop_params = True
    module.num_retries = 0
    module.DEFAULT_MAX_RETRIES = 0
    module.disable_end_user_cost_tracking = True
    warnings.filterwarnings("ignore", _BASE64_WARNING, UserWarning)
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return module


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection: an import makes a million objects that stay, and every one is looked at again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()  # nor looked at by the collections of the hours that follow
    finally:
        if enabled:
            gc.enable()


# What a program around this one may have told litellm to do with every call.
_LISTENERS = (
    "callbacks",
    "input_callback",
    "success_callback",
    "failure_callback",
    "_async_input_callback",
    "_async_success_callback",
    "_async_failure_callback",
    "cache",
    "custom_provider_map",
    "max_budget",
    "model_fallbacks",
)


def _is_listened_to() -> bool:
    return any(getattr(litellm(), name, None) for name in _LISTENERS)


async def _chat(options: ChatOptions, **parameters: Any) -> Any:
    """litellm's answer to a chat request.

    OpenAI's protocol to a server of one's own is prepared at once and not in a thread, and goes without what
    litellm's decorator does around a call (caches, callbacks, budgets, prices): these take half of its CPU. Other
    providers may have to log in somewhere before, which takes its time.
    """
    asked = dict(**_addressed(options), **parameters)  # an address among the parameters is an error
    log = _log(asked) if _is_own_server(options) and not _is_listened_to() else None
    if log is None:
        with _unlogged():
            return await litellm().acompletion(**asked)
    try:
        return await litellm().completion(
            **asked, acompletion=True, litellm_logging_obj=log, litellm_call_id=log.litellm_call_id
        )
    except Exception as error:
        raise litellm().exception_type(
            model=options.model,
            original_exception=error,
            custom_llm_provider="openai",
            completion_kwargs={},
            extra_kwargs={},
        ) from error


def _log(asked: dict[str, Any]) -> Any | None:
    """The record that litellm keeps of a call, as its decorator makes it; None if it cannot be made."""
    try:
        from litellm.litellm_core_utils.litellm_logging import Logging

        return Logging(
            model=asked["model"],
            messages=asked["messages"],
            stream=False,
            call_type="acompletion",
            start_time=datetime.now(),
            litellm_call_id=str(uuid.uuid4()),
            function_id="",
        )
    except (ImportError, TypeError):  # a later litellm: slower, nothing else
        return None


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """Without litellm's logging of successes, unless somebody listens: it costs half a millisecond per call."""
    if _is_listened_to():
        yield
        return
    try:
        from litellm._internal_context import is_internal_call
    except ImportError:  # a later litellm: slower, nothing else
        yield
        return
    token = is_internal_call.set(True)
    try:
        yield
    finally:
        is_internal_call.reset(token)


@dataclass(frozen=True)
class Reply:
    """A provider's answer to one request."""

    text: str
    finish_reason: str
    refusal: str | None
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None


@dataclass(frozen=True)
class Failure:
    """Why a request failed: what to do about it, and what the provider said."""

    kind: str  # "retry", "unconnected", "limited" (429), "fatal" (every call will fail), "rejected", "refused"
    status: int | None
    message: str
    retry_after: float | None = None


async def send_chat(options: ChatOptions, messages: list[Any], parameters: dict[str, Any]) -> Reply:
    """One chat request, not streamed. Raises whatever litellm raises; `failure` tells what it means."""
    response = await _chat(options, messages=messages, **parameters)
    if not response.choices:
        return Reply("", "stop", None, *_tokens(response), None)
    choice, tokens = response.choices[0], _tokens(response)
    message, cost = choice.message, _cost(response, options.model)
    return Reply(message.content or "", choice.finish_reason or "stop", _refusal(message), *tokens, cost)


def _cost(response: Any, model: str) -> float | None:
    """US dollars by litellm's table, which knows of cached and tiered tokens; None if the model is not in it."""
    if known(model) is None:
        return None
    if (cost := response._hidden_params.get("response_cost")) is not None:
        return float(cost)
    try:
        return float(litellm().completion_cost(completion_response=response, model=model))
    except Exception:  # it raises bare ones, when an entry has no price; the caller has prices too
        return None


Chunks = AsyncIterator[Any]


async def open_stream(options: ChatOptions, messages: list[Any], parameters: dict[str, Any]) -> tuple[Any, Chunks]:
    """Begin a streamed answer: its first chunk, which shows that the server answers, and the chunks that follow."""
    with _unlogged():
        chunks: Chunks = await litellm().acompletion(
            **_addressed(options),
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            **parameters,
        )
        return await anext(chunks), chunks


async def pieces(first: Any, chunks: Chunks) -> AsyncIterator[tuple[str, Reply]]:
    """The text of each chunk, with the reply as known so far (without its text)."""
    reply = Reply("", "stop", None, 0, 0, None)
    async for chunk in _chain(first, chunks):
        if any(tokens := _tokens(chunk)):
            reply = replace(reply, prompt_tokens=tokens[0], completion_tokens=tokens[1])
        text = ""
        if chunk.choices:
            choice = chunk.choices[0]
            text = choice.delta.content or ""
            refusal = reply.refusal or _refusal(choice.delta)
            reply = replace(reply, finish_reason=choice.finish_reason or reply.finish_reason, refusal=refusal)
        yield text, reply


async def _chain(first: Any, rest: Chunks) -> Chunks:
    yield first
    async for chunk in rest:
        yield chunk


async def send_embedding(options: EmbeddingOptions, texts: list[str], encoding_format: str) -> tuple[list[Any], int]:
    """One embedding request: the vectors as they came (lists, or base64 strings) in the order of the texts, tokens."""
    extra: dict[str, Any] = {}
    if options.dimensions:  # litellm drops it for models of which it does not know that they take it
        extra = {"dimensions": options.dimensions, "allowed_openai_params": ["dimensions"]}
    address = _addressed(options)
    if _is_own_server(options):
        # As litellm calls vLLM, whose protocol is OpenAI's: by its own HTTP handler. The openai client, which it has
        # for OpenAI itself, takes 0.2 s to get ready and then makes an object of every number.
        address["model"] = f"hosted_vllm/{options.model.removeprefix('openai/')}"
    with _unlogged():
        response = await litellm().aembedding(**address, input=texts, encoding_format=encoding_format, **extra)
    rows = sorted(response.data, key=lambda row: row["index"])
    usage = response.usage
    return [row["embedding"] for row in rows], int(usage.prompt_tokens or usage.total_tokens or 0) if usage else 0


def _addressed(options: ChatOptions | EmbeddingOptions) -> dict[str, Any]:
    where = {"api_base": options.base_url, "api_key": options.api_key}
    if _is_own_server(options):  # it may want no key, but the client library insists on one
        where["api_key"] = options.api_key or os.environ.get("OPENAI_API_KEY") or "none"
    known = {name: value for name, value in where.items() if value}
    return {"model": options.model, "timeout": options.timeout, "num_retries": 0, "max_retries": 0, **known}


def _is_own_server(options: ChatOptions | EmbeddingOptions) -> bool:
    """Whether OpenAI's protocol is spoken to somebody else than OpenAI."""
    return bool(options.base_url) and options.model.startswith("openai/")


def speaks_openai(model: str) -> bool:
    """Whether the model is asked in OpenAI's own protocol, not in one that litellm translates to."""
    return provider_of(model)[0] in ("openai", "azure")


def _refusal(message: Any) -> str | None:
    fields = getattr(message, "provider_specific_fields", None) or {}
    refusal: str | None = getattr(message, "refusal", None) or fields.get("refusal")
    return refusal


def _tokens(response: Any) -> tuple[int, int]:
    usage = getattr(response, "usage", None)
    if usage is None:
        return 0, 0
    return int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0)


_FATAL = {401, 402, 403, 404}
_RETRIED = {200, 408, 409, 425, 429}  # 200: a body that could not be read
_EXHAUSTED = ("insufficient_quota", "exceeded your current quota", "billing_hard_limit")


def failure(error: Exception, *secrets: str | None) -> Failure:
    """What an exception of a request means."""
    status = getattr(error, "status_code", None)
    status = int(status) if isinstance(status, int | str) and str(status).isdigit() else None
    if unconnected := _unconnected(error):  # litellm tells it as a 500
        return Failure("unconnected", None, without_secrets(unconnected, *secrets))
    message = without_secrets(_said(error), *secrets)
    name = type(error).__name__
    if "ContentPolicy" in name:
        return Failure("refused", status, message)
    if status == 429 and any(words in message for words in _EXHAUSTED):
        return Failure("fatal", status, message)
    if status == 429:
        return Failure("limited", status, message, retry_after(error))
    if status in _FATAL or "LLM Provider NOT provided" in message or isinstance(error, ImportError):
        return Failure("fatal", status, message)
    if status is None and isinstance(error, TimeoutError | OSError):
        return Failure("retry", None, message)
    if status is not None and (status in _RETRIED or status >= 500):
        return Failure("retry", status, message, retry_after(error))
    if status is None and name in ("APIConnectionError", "APIError", "MidStreamFallbackError"):
        return Failure("retry", None, message)
    return Failure("rejected", status, message)


def _unconnected(error: BaseException | None) -> str | None:
    """Why there is no connection, and the cure; None if that is not what went wrong."""
    from aiohttp import ClientConnectorError

    while error is not None and not isinstance(error, ClientConnectorError):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    reason = error.strerror or error.os_error
    return f"cannot connect to {error.host}:{error.port}: {reason}. Check that the server runs, and the base URL."


def _said(error: Exception) -> str:
    """The provider's own words on one line, without litellm's chain of class names."""
    text = str(error).strip().rpartition("Exception - ")[2].removeprefix("litellm.") or type(error).__name__
    with contextlib.suppress(ValueError, KeyError, TypeError):
        text = str(json.loads(text[text.index("{") :])["error"]["message"])
    return " ".join(text.split())[:500]


def retry_after(error: Exception) -> float | None:
    """Seconds that the server asks to wait, by its header Retry-After: a number or an HTTP date."""
    headers = getattr(error, "litellm_response_headers", None)
    if headers is None:
        headers = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after") if headers else None
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def provider_of(model: str) -> tuple[str, str]:
    """(provider, model at that provider) of a litellm name, read without importing litellm."""
    provider, slash, name = model.partition("/")
    return (provider, name) if slash else ("", model)


def first_way(options: ChatOptions) -> Structured:
    """How to ask a model for JSON first; see `ChatOptions.structured`."""
    if options.structured != "auto":
        return options.structured
    module = litellm()
    if not known(options.model):
        return "json_schema"
    if module.supports_response_schema(model=options.model):
        return "json_schema"
    return "json_object" if "response_format" in (module.get_supported_openai_params(options.model) or ()) else "text"


_strangers: set[str] = set()


def introduce(model: str, mode: str) -> None:
    """Enter a model that litellm does not know as free in its table: it searches for a likeness on every call."""
    if known(model) is None and model not in _strangers:
        _strangers.add(model)
        provider, name = provider_of(model)
        entry = {"litellm_provider": provider, "mode": mode, "input_cost_per_token": 0, "output_cost_per_token": 0}
        litellm().register_model({name: entry, model: entry})


def known(model: str) -> dict[str, Any] | None:
    """litellm's entry for the model in its table of prices and abilities."""
    if model in _strangers:
        return None
    table = litellm().model_cost
    entry: dict[str, Any] | None = table.get(model) or table.get(provider_of(model)[1])
    return entry


async def close_clients() -> None:
    """Close litellm's connections of the running event loop."""
    if litellm.cache_info().currsize:
        await litellm().close_litellm_async_clients()
