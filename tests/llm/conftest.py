"""A local server that speaks the OpenAI protocol, and models that talk to it through litellm."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.embedding_client import EmbeddingModel
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.limits import Budget, Limits
from graphrag_assets.llm.model_options import ChatRequest, EmbeddingOptions, LimitOptions, ModelOptions, PriceOptions
from graphrag_assets.llm.structured_output import Salvaged
from tests.openai_server import OpenAIServer, running

R = TypeVar("R")
QUICK = {"backoff_seconds": 0.01, "circuit_failures": 100}
ONE_DOLLAR_PER_TOKEN = PriceOptions(1_000_000, 1_000_000)


class Entity(BaseModel):
    title: str
    type: str
    strength: int


class Extraction(BaseModel):
    entities: Salvaged[Entity]


class Lab:
    """One server, one ledger, and models on them with separate limits."""

    def __init__(self, server: OpenAIServer, folder: Path):
        self.server, self.folder = server, folder
        self.ledger = Ledger(folder / "ledger.db")

    def with_another_ledger(self) -> "Lab":
        """The same server with an empty ledger."""
        return Lab(self.server, self.folder / "another")

    def chat(self, budget: Budget | None = None, limits: dict[str, Any] | None = None, **options: Any) -> ChatModel:
        chosen = ModelOptions(**{"model": "openai/test-model", "base_url": self.server.url} | options)
        return ChatModel(chosen, self.ledger, Limits(LimitOptions(**QUICK | (limits or {}))), budget)

    def embedding(
        self, budget: Budget | None = None, limits: dict[str, Any] | None = None, **options: Any
    ) -> EmbeddingModel:
        chosen = EmbeddingOptions(**{"model": "openai/test-embedding", "base_url": self.server.url} | options)
        return EmbeddingModel(chosen, self.ledger, Limits(LimitOptions(**QUICK | (limits or {}))), budget)


def ask(text: str = "Ada met Charles.", model: type[BaseModel] | None = None, **more: Any) -> ChatRequest:
    """A request of one message."""
    return ChatRequest(
        **{"task": "extract", "messages": ({"role": "user", "content": text},), "response_model": model} | more
    )


def run(work: Coroutine[Any, Any, R]) -> R:
    """The result of a coroutine, in a new event loop."""
    return asyncio.run(work)


async def gather(ask_one: Callable[[ChatRequest], Coroutine[Any, Any, R]], *requests: ChatRequest) -> list[R]:
    """The answers to concurrent requests."""
    return await asyncio.gather(*(ask_one(request) for request in requests))


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    with running() as server:
        yield server


@pytest.fixture
def lab(openai_server: OpenAIServer, tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(openai_server, tmp_path)
    yield lab
    lab.ledger.close()
