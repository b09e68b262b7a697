"""A chat answerer on the test server, for searches by a model over real HTTP."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.limits import Limits
from graphrag_assets.llm.model_options import LimitOptions, ModelOptions, PriceOptions
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.tasks.answer_questions import ChatAnswerer
from tests.openai_server import OpenAIServer

MODEL = "openai/test-model"
ONE_DOLLAR_PER_TOKEN = PriceOptions(1_000_000, 1_000_000)


def chat_answerer(server: OpenAIServer, folder: Path, model: str = MODEL, **limits: Any) -> ChatAnswerer:
    """An answerer with a ledger in `folder` and separate limits."""
    options = ModelOptions(model, base_url=server.url, prices=ONE_DOLLAR_PER_TOKEN, timeout=30)
    quick = LimitOptions(**{"backoff_seconds": 0.01, "max_retries": 2, "circuit_failures": 100} | limits)
    return ChatAnswerer(ChatModel(options, Ledger(folder / "ledger.db"), Limits(quick)), Prompts(), model)


def user_message(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def says(**by_task: Any) -> Callable[[dict[str, Any]], str]:
    """Content by the name of the answer's schema (MapAnswer, DriftAnswer, …), `text` for answers without one.

    A value is the content, or a function of the request's body that returns it; values other than texts become JSON.
    """

    def content(body: dict[str, Any]) -> str:
        schema = (body.get("response_format") or {}).get("json_schema", {}).get("name", "text")
        said = by_task[schema]
        said = said(body) if callable(said) else said
        return said if isinstance(said, str) else json.dumps(said)

    return content


def question_of(body: dict[str, Any]) -> str:
    """The question that a request is about."""
    return user_message(body).rpartition("Question: ")[2].strip()


def ratings_by(rate: Callable[[str], int]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The ratings of the reports in a request."""

    def ratings(body: dict[str, Any]) -> dict[str, Any]:
        _, *reports = re.split(r"^\[\d+\] ", user_message(body), flags=re.MULTILINE)
        return {"ratings": [{"id": number, "rating": rate(report)} for number, report in enumerate(reports, 1)]}

    return ratings
