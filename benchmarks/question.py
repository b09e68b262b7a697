"""One question: its own time, statements, requests and memory, per search method, on an index of 50,000 tokens.

    python -m benchmarks.question
    python -m benchmarks.question --tokens 250000

The test server indexes and answers. It rates every report as relevant, so that all are rated and read, and raises new
questions at every step of DRIFT. Each question is asked twice: the first time counts its requests; the second time all
answers come from the ledger, so that the time is that of the search alone. Exits with status 1 above a bar.
"""

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.index_with_model import write_corpus
from graphrag_assets.query import GraphRAG
from graphrag_assets.store.publication_reader import Reader
from tests.model_index import ModelIndex
from tests.openai_content import content_for, task_of
from tests.openai_server import OpenAIServer, running
from tests.query.modeled import ratings_by

QUESTIONS = (
    "Who commanded the Great Eastern in 1865?",
    "Why did the cable of 1858 fail?",
    "What did Cyrus Field do in London?",
    "Who made the cable for the Atlantic Telegraph Company?",
    "What happened at Valentia in July 1866?",
)
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "local": ("local", {}),
    "global": ("global", {}),
    "basic": ("basic", {}),
    "drift": ("drift", {}),
    "global, dynamic": ("global", {"dynamic": True}),
}
MOST_MILLISECONDS = {50_000: {"local": 90, "global": 70, "basic": 30}, 250_000: {"local": 110, "global": 100}}
MOST_REQUESTS = {"drift": 25, "global, dynamic": 60}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=50_000)
    options = parser.parse_args()
    bars = MOST_MILLISECONDS.get(options.tokens, {})
    table = Table("method", "own ms, median", "at most", "longest", "statements", "requests", "at most", "MB")
    passed = True
    with tempfile.TemporaryDirectory() as folder, running() as server:
        write_corpus(Path(folder) / "input", options.tokens, max(options.tokens // 3_000, 1), 1)
        chunks = {"CHUNKING": "tokens", "CHUNK_SIZE": "1200"}
        index = ModelIndex(Path(folder) / "data", server.url, Path(folder) / "input", chunks)
        index.run()
        os.environ.update(index.environment)
        server.content = _relevant_and_curious()
        statements = _counted_statements()
        with GraphRAG() as rag:
            reports = rag.sql("SELECT count(*) FROM community_reports").item()
            table.title = f"{options.tokens:,} tokens, {reports} reports, {len(QUESTIONS)} questions"
            for name, (method, more) in METHODS.items():
                requests, milliseconds, most_statements = _measured(rag, server, statements, method, more)
                median = statistics.median(milliseconds)
                passed = passed and median <= bars.get(name, median) and requests <= MOST_REQUESTS.get(name, requests)
                numbers = [median, bars.get(name, ""), max(milliseconds), most_statements, requests]
                numbers += [MOST_REQUESTS.get(name, ""), psutil.Process().memory_info().rss / 1e6]
                table.add_row(name, *(f"{one:.0f}" if one != "" else "" for one in numbers))
    Console().print(table)
    sys.exit(not passed)


def _measured(
    rag: GraphRAG, server: OpenAIServer, statements: list[str], method: Any, options: dict[str, Any]
) -> tuple[int, list[float], int]:
    """The most requests of a question, the milliseconds of each without its calls, and the most statements."""
    requests, milliseconds, most_statements = 0, list[float](), 0
    for question in QUESTIONS:
        server.requests.clear()
        rag.search(method, question, **options)
        requests = max(requests, len(server.requests))
        statements.clear()
        started = time.perf_counter()
        rag.search(method, question, **options)
        milliseconds.append(1000 * (time.perf_counter() - started))
        most_statements = max(most_statements, len(statements))
    return requests, milliseconds, most_statements


def _counted_statements() -> list[str]:
    """A list to which every reader adds the statements that it runs."""
    statements = list[str]()
    for name in ("rows", "numbers", "query"):
        plain = getattr(Reader, name)

        def counting(self: Reader, query: str, *values: Any, plain: Any = plain) -> Any:
            statements.append(query)
            return plain(self, query, *values)

        setattr(Reader, name, counting)
    return statements


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
