"""Requests of one question, at most: DRIFT, and global search with dynamic selection, over an index of 50,000 tokens.

    python -m benchmarks.question_requests
    python -m benchmarks.question_requests --tokens 250000

The test server indexes and answers. It rates every report as relevant, so that all are rated and read, and raises new
questions at every step of DRIFT. Exits with status 1 if a question takes more requests than it may.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.index_with_model import write_corpus
from graphrag_assets.query import GraphRAG
from graphrag_assets.query.results import Answer
from tests.model_index import ModelIndex
from tests.openai_content import content_for, task_of
from tests.openai_server import OpenAIServer, running
from tests.query.modeled import ratings_by

QUESTION = "What went wrong with the cables, and what was learned from it?"
MOST = {"drift": 25, "global, dynamic": 60}
ASKED: dict[str, Callable[[GraphRAG], Answer]] = {
    "drift": lambda rag: rag.drift(QUESTION),
    "drift, linking by model": lambda rag: rag.drift(QUESTION, linking="model"),
    "global, dynamic": lambda rag: rag.global_(QUESTION, dynamic=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=50_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running() as server:
        write_corpus(Path(folder) / "input", options.tokens, max(options.tokens // 3_000, 1), 1)
        chunks = {"CHUNKING": "tokens", "CHUNK_SIZE": "1200"}
        index = ModelIndex(Path(folder) / "data", server.url, Path(folder) / "input", chunks)
        index.run()
        os.environ.update(index.environment)
        table = Table("", "requests", "chat", "of these ratings", "embeddings", "at most")
        server.content = _relevant_and_curious()
        with GraphRAG() as rag:
            reports = rag.sql("SELECT count(*), count(*) FILTER (level = 0) FROM community_reports").row(0)
            table.title = f"{options.tokens:,} tokens, {reports[0]} reports, {reports[1]} of them on the top level"
            used = {name: _requests(server, ask, rag, table, name) for name, ask in ASKED.items()}
    Console().print(table)
    sys.exit(any(used[name] > most for name, most in MOST.items()))


def _requests(server: OpenAIServer, ask: Callable[[GraphRAG], Answer], rag: GraphRAG, table: Table, name: str) -> int:
    server.requests.clear()
    ask(rag)
    ratings = sum(request.task == "CommunityRatings" for request in server.chats)
    sent = len(server.requests), len(server.chats), ratings, len(server.embeddings)
    table.add_row(name, *map(str, sent), str(MOST.get(name, "")))
    return sent[0]


def _relevant_and_curious() -> Callable[[dict[str, Any]], str]:
    ratings, numbers = ratings_by(lambda report: 3), count()

    def content(body: dict[str, Any]) -> str:
        match task_of(body):
            case "CommunityRatings":
                return json.dumps(ratings(body))
            case "DriftAnswer":
                row = re.search(r"-----(\w+)-----\n.*\n(\d+)\|", str(body["messages"][-1]["content"]))
                cited = f"[Data: {row[1]} ({row[2]})]" if row else ""
                asked = [{"question": f"What is {Random(next(numbers)).getrandbits(99):x}?"} for _ in range(8)]
                return json.dumps({"points": [{"description": f"A point. {cited}", "score": 60}], "follow_ups": asked})
        return content_for(body)

    return content


if __name__ == "__main__":
    main()
