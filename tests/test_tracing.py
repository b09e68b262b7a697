"""Spans of indexing and questions, at a collector that decodes OTLP, and inside the spans of an application."""

import asyncio
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
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


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """The spans of this process, from here on: OpenTelemetry allows one provider."""
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    return kept


@pytest.mark.extended
def test_spans_of_a_command_reach_a_collector(tmp_path: Path) -> None:
    bodies = list[bytes]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}"}
        command = [sys.executable, "-m", "graphrag_assets", "status"]
        subprocess.run(command, env=os.environ | endpoint | {"GRAPHRAG_DATA": str(tmp_path)}, cwd=tmp_path, check=True)
        collector.shutdown()
    assert b"graphrag-assets" in b"".join(bodies)
    assert b"graphrag.command" in b"".join(bodies)


def test_stages_and_model_calls_are_spans_without_texts_and_keys(
    exporter: InMemorySpanExporter, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for batch in ("a", "b"):
        project.write(f"{batch}/one.txt", f"{TEXT} Batch {batch}.")
    exporter.clear()
    with running() as server:
        monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/gpt-4.1-mini")
        monkeypatch.setenv("GRAPHRAG_CHAT_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        project.run("update_index")
    spans = {one.context.span_id: one for one in exporter.get_finished_spans() if one.context}

    def named(name: str) -> list[dict[str, Any]]:
        return [dict(one.attributes or {}) for one in spans.values() if one.name == name]

    def above(task: str) -> list[str]:
        """The names of the spans around the calls of a task, the nearest first."""
        (one, *_), names = [one for one in spans.values() if (one.attributes or {}).get("graphrag.task") == task], []
        while one.parent:
            one = spans[one.parent.span_id]
            names.append(one.name)
        return names

    stages = {"batch_state", "knowledge_graph", "detect_communities", "write_community_reports", "embed_texts"}
    assert stages | {"publication"} <= {one.name for one in spans.values()}
    assert {batch["graphrag.batch"] for batch in named("index_batch")} == {"a", "b"}
    assert above("extract_all") == ["index_batch", "batch_state"]
    assert above("community_report") == ["write_community_reports"]
    calls = named("chat gpt-4.1-mini")
    assert sum(call["graphrag.requests"] for call in calls) == len(server.chats)
    (call, *_) = [call for call in calls if call["graphrag.task"] == "community_report"]
    assert (call["gen_ai.operation.name"], call["gen_ai.provider.name"]) == ("chat", "openai")
    assert (call["gen_ai.request.model"], call["server.address"]) == ("gpt-4.1-mini", "127.0.0.1")
    tokens = call["gen_ai.usage.input_tokens"], call["gen_ai.usage.output_tokens"]
    assert call["graphrag.cost_usd"] == pytest.approx((0.4 * tokens[0] + 1.6 * tokens[1]) / 1e6)
    assert min(tokens) > 0
    everything = "".join(one.to_json() for one in spans.values())
    assert not [secret for secret in (KEY, "Babbage", "Lovelace") if secret in everything]


class Failing(Answerer):
    async def arespond(self, *_: object) -> Reply:
        raise RuntimeError(f"failed at {QUESTION}")


class Quoting(Answerer):
    async def arespond(self, question: str, evidence: Evidence, *_: object) -> Reply:
        return Reply(evidence.passages[0].text)


def test_spans_of_a_question_are_inside_those_of_the_application(
    exporter: InMemorySpanExporter, sample_index: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter.clear()
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
