"""Counts for Prometheus: requests, searches, tokens and dollars."""

import contextlib
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from graphrag_assets.query import Answer


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "graphrag_requests", "Requests by path and status", ("path", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "graphrag_search_seconds", "Seconds of searches, ended or not", ("method",), registry=self.registry
        )
        self._running = Gauge("graphrag_searches_running", "Searches in progress", registry=self.registry)
        self._tokens = Counter("graphrag_model_tokens", "Tokens of chat models", ("kind",), registry=self.registry)
        self._dollars = Counter("graphrag_model_usd", "US dollars for chat models", registry=self.registry)
        self._publication = Gauge(
            "graphrag_publication", "Number of the publication last answered from", registry=self.registry
        )

    @contextlib.contextmanager
    def running(self, method: str) -> Iterator[None]:
        """Count a search in progress and its seconds."""
        with self._running.track_inprogress(), self._seconds.labels(method).time():
            yield

    def count(self, answer: Answer) -> None:
        """Count what an answer has cost."""
        used = answer.total_usage
        self._tokens.labels("prompt").inc(used.prompt_tokens)
        self._tokens.labels("completion").inc(used.completion_tokens)
        self._dollars.inc(used.cost)
        self._publication.set(answer.publication)

    def text(self) -> bytes:
        """All counts in Prometheus' text format."""
        return generate_latest(self.registry)
