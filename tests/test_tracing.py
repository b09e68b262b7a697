"""Spans of indexing and questions, at a collector that decodes OTLP, and inside the spans of an application."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from graphrag_assets.query import Answerer, Evidence, GraphRAG, Reply
from graphrag_assets.runtime import tracing

from .conftest import Project
from .openai_content import FILLER
from .openai_server import running

KEY, TEXT = (
    "sk-planted-key-of-the-trace-tests",
    f"Ada Lovelace met Charles Babbage in London. She wrote to Mary Somerville.{FILLER}",
)
QUESTION = "Whom did Ada Lovelace meet?"


class Collector:
    """Spans that arrived at /v1/traces, and the bodies of the requests."""

    def __init__(self) -> None:
        self.bodies, self.spans = list[bytes](), list[Any]()
        self.services = set[str]()

    def add(self, body: bytes) -> None:
        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = [a.value.string_value for a in resource.resource.attributes if a.key == "service.name"]
            self.services.update(names)
            self.spans += [one for scope in resource.scope_spans for one in scope.spans]

    def named(self, name: str) -> list[Any]:
        return [one for one in self.spans if one.name == name]

    def above(self, span: Any) -> list[str]:
        """The names of the spans around one, the nearest first."""
        by_id, names = {one.span_id: one for one in self.spans}, []
        while span := by_id.get(span.parent_span_id):
            names.append(span.name)
        return names


def attributes(span: Any) -> dict[str, Any]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}


@pytest.fixture
def collector() -> Iterator[tuple[Collector, str]]:
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            found.add(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield found, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.extended
def test_stages_and_model_calls_reach_a_collector(tmp_path: Path, collector: tuple[Collector, str]) -> None:
    found, endpoint = collector
    for batch in ("a", "b"):
        (tmp_path / "input" / batch).mkdir(parents=True)
        (tmp_path / "input" / batch / "one.txt").write_text(f"{TEXT} Batch {batch}.")
    with running() as server:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHRAG_")} | {
            "GRAPHRAG_DATA": str(tmp_path),
            "GRAPHRAG_CHAT_MODEL": "openai/gpt-4.1-mini",
            "GRAPHRAG_EMBEDDING_MODEL": "openai/text-embedding-3-small",
            "GRAPHRAG_CHAT_BASE_URL": server.url,
            "GRAPHRAG_EMBEDDING_BASE_URL": server.url,
            "OPENAI_API_KEY": KEY,
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        }
        run = [sys.executable, "-m", "graphrag_assets", "index"]
        done = subprocess.run(run, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        n_chats, n_embeddings = len(server.chats), len(server.embeddings)
    assert found.services == {"graphrag_assets"}
    stages = {"index_batch", "knowledge_graph", "detect_communities", "write_community_reports", "embed_texts"}
    assert stages | {"find_candidates", "publication"} <= {one.name for one in found.spans}
    assert {attributes(one)["graphrag.batch"] for one in found.named("index_batch")} == {"a", "b"}

    chats, embeddings = found.named("chat gpt-4.1-mini"), found.named("embeddings text-embedding-3-small")
    assert sum(attributes(one)["graphrag.requests"] for one in chats) == n_chats
    assert sum(attributes(one)["graphrag.requests"] for one in embeddings) == n_embeddings
    by_task = {attributes(one)["graphrag.task"]: one for one in chats}
    assert found.above(by_task["extract_all"]) == ["index_batch", "graphrag-assets"]
    assert found.above(by_task["community_report"]) == ["write_community_reports", "graphrag-assets"]
    assert [attributes(one)["graphrag.command"] for one in found.named("graphrag-assets")] == ["index"]
    of_one = attributes(by_task["community_report"])
    assert (of_one["gen_ai.operation.name"], of_one["gen_ai.provider.name"]) == ("chat", "openai")
    assert (of_one["gen_ai.request.model"], of_one["server.address"]) == ("gpt-4.1-mini", "127.0.0.1")
    assert of_one["gen_ai.usage.input_tokens"] > 100
    assert of_one["gen_ai.usage.output_tokens"] > 0
    price = (0.4 * of_one["gen_ai.usage.input_tokens"] + 1.6 * of_one["gen_ai.usage.output_tokens"]) / 1e6
    assert of_one["graphrag.cost_usd"] == pytest.approx(price)
    everything = b"".join(found.bodies)
    for secret in (KEY, "Babbage", "Lovelace"):
        assert secret.encode() not in everything


class Failing(Answerer):
    async def arespond(self, *_: object) -> Reply:
        raise RuntimeError(f"failed at {QUESTION}")


class Quoting(Answerer):
    async def arespond(self, question: str, evidence: Evidence, *_: object) -> Reply:
        return Reply(evidence.passages[0].text)


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """The spans of this process, from here on: OpenTelemetry allows one provider."""
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    return kept


def test_spans_of_a_question_are_inside_those_of_the_application(
    exporter: InMemorySpanExporter, sample_index: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as environment:
        environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        tracing.start_tracing()  # leaves the provider of the application
    tracer = trace.get_tracer("application")

    async def both(rag: GraphRAG) -> None:
        with tracer.start_as_current_span("asynchronous"):
            await asyncio.gather(rag.aretrieve("cable"), rag.alocal("Who was Cyrus Field?"))

    with GraphRAG(sample_index.root / "index", Quoting()) as rag:
        with tracer.start_as_current_span("synchronous"):
            rag.basic("Who was Cyrus Field?")
        with tracer.start_as_current_span("streaming"):
            assert list(rag.stream("local", "Who was Cyrus Field?"))
        asyncio.run(both(rag))
    with GraphRAG(sample_index.root / "index", Failing()) as rag, pytest.raises(RuntimeError):
        rag.basic("Who was Cyrus Field?")
    spans = {one.context.span_id: one for one in exporter.get_finished_spans() if one.context}

    def parent(one: ReadableSpan) -> str:
        return spans[one.parent.span_id].name if one.parent else ""

    pairs = {(parent(one), one.name) for one in spans.values()}
    assert {
        ("synchronous", "search basic"),
        ("streaming", "search local"),
        ("asynchronous", "search local"),
        ("asynchronous", "search retrieve"),
        ("search basic", "build_context"),
        ("search basic", "response"),
        ("", "search basic"),
    } <= pairs
    failed = [one for one in spans.values() if not one.status.is_ok and one.status.status_code.name == "ERROR"]
    assert {one.name for one in failed} == {"search basic", "response"}
    assert {(one.attributes or {})["error.type"] for one in failed} == {"RuntimeError"}
    assert all(not one.events and not one.status.description for one in spans.values())
