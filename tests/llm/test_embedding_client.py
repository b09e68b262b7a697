"""Embeddings against a real server."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.llm import provider
from graphrag_assets.llm.backend import embedding_model
from graphrag_assets.llm.embedding_client import EmbeddingModel
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.model_errors import CircuitOpen, RequestRejected, RetriesExhausted
from graphrag_assets.llm.model_options import EmbeddingOptions
from graphrag_assets.settings import Settings
from graphrag_assets.text.words import encode
from tests.limits import limit_calls
from tests.llm.conftest import Lab, run
from tests.openai_content import embedding_of

pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")


def unit(vector: np.ndarray | list[float]) -> np.ndarray:
    return np.asarray(vector) / np.linalg.norm(vector)


@pytest.mark.parametrize("base64", [True, False])
def test_vectors_are_unit_rows_in_the_order_of_the_texts(lab: Lab, base64: bool) -> None:
    texts = [f"Text {n}" for n in range(10)]
    vectors = run(lab.embedding(base64=base64).embed(texts))

    assert vectors.dtype == np.float32
    assert np.allclose(vectors, [unit(embedding_of(text)) for text in texts], atol=1e-6)
    assert lab.server.embeddings[0].body["encoding_format"] == ("base64" if base64 else "float")


def test_both_formats_give_the_same_vectors(lab: Lab) -> None:
    other = lab.with_another_ledger()
    numbers = run(lab.embedding(base64=False).embed(["Ada"]))
    assert np.allclose(numbers, run(other.embedding().embed(["Ada"])), atol=1e-6)
    assert [request.body["encoding_format"] for request in lab.server.embeddings] == ["float", "base64"]


def test_base64_is_requested_only_by_openai_s_protocol(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def send(options: EmbeddingOptions, texts: list[str], encoding_format: str) -> tuple[list[Any], int]:
        asked.append((options.model, encoding_format))
        return [embedding_of(text) for text in texts], 1

    monkeypatch.setattr(provider, "send_embedding", send)
    for model in ("openai/e", "azure/e", "cohere/e", "voyage/e"):
        run(lab.embedding(model=model).embed([f"Ada for {model}"]))
    assert asked == [("openai/e", "base64"), ("azure/e", "base64"), ("cohere/e", "float"), ("voyage/e", "float")]


def test_equal_texts_are_requested_once(lab: Lab) -> None:
    model = lab.embedding()
    first = run(model.embed(["Ada", "Charles", "Ada"], task="embed units", batch="letters"))
    again = run(model.embed(["Charles", "Ada", "Ada", "Mary"]))

    assert [request.body["input"] for request in lab.server.embeddings] == [["Ada", "Charles"], ["Mary"]]
    assert np.array_equal(first[[1, 0, 0]], again[:3])
    assert model.usage.by_task["embed units"].calls == 1
    assert model.usage.by_task["embed"].ledger_hits == 2
    row = lab.ledger.frame().row(0, named=True)
    assert (row["kind"], row["task"], row["batch"], row["model"]) == (
        "embedding",
        "embed units",
        "letters",
        "test-embedding",
    )
    assert lab.ledger.frame()["prompt_tokens"].sum() == model.usage.total.prompt_tokens


def test_another_model_is_another_vector(lab: Lab) -> None:
    run(lab.embedding().embed(["Ada"]))
    run(lab.embedding(model="openai/other").embed(["Ada"]))
    assert len(lab.server.embeddings) == 2


def test_no_texts_give_no_rows_and_no_request(lab: Lab) -> None:
    assert run(lab.embedding().embed([])).shape == (0, 0)
    assert lab.server.requests == []


def test_an_empty_text_has_a_vector(lab: Lab) -> None:
    assert run(lab.embedding().embed(["", "Ada"])).shape == (2, 32)
    assert lab.server.embeddings[0].body["input"] == [" ", "Ada"]


def test_requests_keep_to_both_limits(lab: Lab) -> None:
    texts = [f"number {n} " * (2 if n < 50 else 10) for n in range(100)]
    run(lab.embedding(batch_size=16, batch_bytes=900).embed(texts))

    sent = [request.body["input"] for request in lab.server.embeddings]
    assert sorted(text for batch in sent for text in batch) == sorted(texts)
    assert max(len(batch) for batch in sent) == 16
    sizes = [sum(len(text.encode()) for text in batch) for batch in sent]
    assert 800 < max(sizes) <= 900


def test_a_long_text_is_the_mean_of_its_pieces_by_their_tokens(lab: Lab) -> None:
    text = "Ada wrote to Charles. " * 10
    [vector] = run(lab.embedding(item_tokens=20).embed([text]))

    pieces = [piece for request in lab.server.embeddings for piece in request.body["input"]]
    tokens = [len(encode(piece, "cl100k_base")) for piece in pieces]
    assert "".join(pieces) == text
    assert max(tokens) <= 20
    assert len(pieces) > 2
    mean = np.average([unit(embedding_of(piece)) for piece in pieces], axis=0, weights=tokens)
    assert np.allclose(vector, unit(mean), atol=1e-3)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


@given(st.text(st.characters(codec="utf-8"), max_size=300), st.integers(4, 30))
def test_pieces_are_the_text_again_and_fit(tmp_path_factory: pytest.TempPathFactory, text: str, limit: int) -> None:
    model = EmbeddingModel(
        EmbeddingOptions("openai/m", item_tokens=limit), Ledger(tmp_path_factory.getbasetemp() / "l.db")
    )
    pieces = model._split(text)
    assert "".join(piece.text for piece in pieces) == (text if text.strip() else " ")
    assert all(len(encode(piece.text, "cl100k_base")) <= limit for piece in pieces)


@pytest.fixture(params=["an address of one's own", "OpenAI's"])
def address(request: pytest.FixtureRequest, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Options that lead to the server by litellm's own HTTP handler, and by the openai client."""
    if request.param == "OpenAI's":
        monkeypatch.setenv("OPENAI_BASE_URL", lab.server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-environment")
        return {"base_url": None}
    return {}


@pytest.mark.parametrize(
    "fault", ["fewer-vectors", "wrong-dimensions", "429", "500", "closed", "cut", "malformed-body", "slow"]
)
def test_wrong_replies_and_passing_failures_are_retried(lab: Lab, address: dict[str, Any], fault: str) -> None:
    lab.server.fail_next(fault)
    model = lab.embedding(timeout=0.2 if fault == "slow" else 30, **address)
    texts = ["Charles"] if fault == "slow" else ["Ada", "Charles"]  # several are sent in halves
    vectors = run(model.embed(texts))

    assert np.allclose(vectors[-1], unit(embedding_of("Charles")), atol=1e-6)
    assert len(lab.server.embeddings) == 2  # no retries but ours
    assert model.usage.total.retries == 1


def test_retry_after_is_honored(lab: Lab, address: dict[str, Any]) -> None:
    lab.server.retry_after = 0.3
    lab.server.fail_next("429-retry-after")
    run(lab.embedding(**address).embed(["Ada"]))
    first, second = lab.server.embeddings
    assert second.at - first.at >= 0.3


@pytest.mark.parametrize(("status", "remedy"), [("401", "Check the API key"), ("404", "Check the model's name")])
def test_fatal_failures_stop_immediately(lab: Lab, address: dict[str, Any], status: str, remedy: str) -> None:
    lab.server.fail_next(status)
    with pytest.raises(CircuitOpen, match=remedy):
        run(lab.embedding(**address).embed(["Ada"]))
    assert len(lab.server.embeddings) == 1


@pytest.mark.parametrize(
    ("given", "in_environment", "sent"), [("mine", "other", "mine"), (None, "other", "other"), (None, None, "none")]
)
def test_the_key_is_the_option_or_that_of_the_environment(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, given: str | None, in_environment: str | None, sent: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if in_environment:
        monkeypatch.setenv("OPENAI_API_KEY", in_environment)
    run(lab.embedding(api_key=given).embed(["Ada"]))
    (request,) = lab.server.embeddings
    assert request.headers["authorization"] == f"Bearer {sent}"
    assert request.body["model"] == "test-embedding"
    assert set(request.body) == {"model", "input", "encoding_format"}


def test_vectors_of_another_size_than_before_are_an_error(lab: Lab) -> None:
    model = lab.embedding(limits={"max_retries": 2})
    run(model.embed(["Ada"]))
    lab.server.dimensions = 16
    with pytest.raises(RetriesExhausted, match=r"Vectors of \[16\] dimensions were returned, expected 32"):
        run(model.embed(["Charles"]))


def test_one_failing_request_keeps_the_vectors_of_the_others(lab: Lab) -> None:
    lab.server.fail_next("401")
    model = lab.embedding(batch_size=1, limits={"concurrency": 1})
    with pytest.raises(CircuitOpen, match="Check the API key"):
        run(model.embed(["Ada", "Charles", "Mary"]))
    assert len(lab.server.embeddings) == 1

    lab.server.fail_next(None, "401")
    model = lab.embedding(batch_size=1, limits={"concurrency": 1})
    with pytest.raises(CircuitOpen):
        run(model.embed(["Ada", "Charles", "Mary"]))
    assert lab.ledger.frame().height == 1


def test_a_server_that_rejects_base64_gets_floats_from_then_on(lab: Lab) -> None:
    lab.server.rejected_formats = {"base64"}
    model = lab.embedding()
    assert run(model.embed(["Ada"])).shape == (1, 32)
    run(model.embed(["Charles"]))
    assert [request.body["encoding_format"] for request in lab.server.embeddings] == ["base64", "float", "float"]


def test_identical_concurrent_requests_are_sent_once(lab: Lab) -> None:
    lab.server.latency = 0.05
    model = lab.embedding()

    async def all_at_once() -> list[np.ndarray]:
        return await asyncio.gather(*(model.embed(["Ada", "Charles"]) for _ in range(5)))

    assert len({vectors.tobytes() for vectors in run(all_at_once())}) == 1
    assert len(lab.server.embeddings) == 1


def test_texts_that_time_out_are_sent_in_halves_and_later_requests_keep_to_them(lab: Lab) -> None:
    lab.server.seconds_per_text = 0.05  # 16 texts in 0.8 s, 4 in 0.2 s
    model = lab.embedding(timeout=0.5, batch_size=16, limits={"concurrency": 1, "max_retries": 0})
    texts = [f"Text {n}" for n in range(20)]
    vectors = run(model.embed(texts))
    sent = [len(request.body["input"]) for request in lab.server.embeddings]
    assert sorted(sent) == [4, 8, 8, 16]
    assert np.allclose(vectors, [unit(embedding_of(text)) for text in texts], atol=1e-6)
    run(model.embed([f"Later {n}" for n in range(16)]))
    assert [len(request.body["input"]) for request in lab.server.embeddings[4:]] == [8, 8]
    assert model.usage.total.failures == 0


def test_one_text_that_times_out_is_an_error_that_names_the_timeout(lab: Lab) -> None:
    lab.server.seconds_per_text = 0.5
    model = lab.embedding(timeout=0.1, limits={"max_retries": 1})
    with pytest.raises(RetriesExhausted, match="GRAPHRAG_REQUEST_TIMEOUT"):
        run(model.embed(["one", "two"]))


def test_stored_vectors_of_a_model_that_had_the_name_before_are_replaced(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every later run failed: vectors of two sizes make no table, and the ledger gave the old ones again and again."""
    send = provider.send_embedding

    async def shorter(options: EmbeddingOptions, texts: list[str], encoding: str) -> tuple[list[Any], int]:
        vectors, billed = await send(options, texts, encoding)
        return [[1.0, 2.0]] * len(vectors), billed

    with monkeypatch.context() as patch:
        patch.setattr(provider, "send_embedding", shorter)
        assert run(lab.embedding().embed(["Ada", "Mary"])).shape == (2, 2)
    n_numbers = len(embedding_of("Ada"))
    assert run(lab.embedding().embed(["Ada", "Charles"])).shape == (2, n_numbers)  # a reply shows the size
    lab.server.requests.clear()
    vectors = run(lab.embedding().embed(["Ada", "Charles", "Mary"]))  # the ledger has both sizes: the model is asked
    assert np.allclose(vectors, [unit(embedding_of(text)) for text in ("Ada", "Charles", "Mary")], atol=1e-6)
    assert [request.body["input"] for request in lab.server.embeddings] == [["ready"], ["Mary"]]
    lab.server.requests.clear()
    run(lab.embedding().embed(["Ada", "Charles", "Mary"]))
    assert lab.server.requests == []


def test_the_timeout_of_the_settings_holds_for_embeddings(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.server.seconds_per_text = 0.6
    given = {"DATA": str(tmp_path), "EMBEDDING_MODEL": "openai/test-embedding", "EMBEDDING_BASE_URL": lab.server.url}
    for name, value in {**given, "REQUEST_TIMEOUT": "0.2"}.items():
        monkeypatch.setenv(f"GRAPHRAG_{name}", value)
    limit_calls(monkeypatch, max_retries=0)
    with pytest.raises(RetriesExhausted, match="GRAPHRAG_REQUEST_TIMEOUT"):
        run(embedding_model(Settings.load()).embed(["one"]))
    monkeypatch.setenv("GRAPHRAG_REQUEST_TIMEOUT", "20")
    assert run(embedding_model(Settings.load()).embed(["one"])).shape[0] == 1


def bad_texts(lab: Lab, is_bad: Callable[[str], bool], status: int, message: str) -> None:
    """Have the server refuse every request with such a text."""
    refusal = status, {}, json.dumps({"error": {"message": message}}).encode()
    lab.server.replace = lambda body: refusal if any(map(is_bad, body["input"])) else None


def test_a_text_that_the_server_does_not_take_is_named_and_the_others_have_vectors(lab: Lab) -> None:
    bad_texts(lab, lambda text: "PLUTO" in text, 500, "unsupported value: NaN")
    texts, errors = [*(f"number {n}" for n in range(40)), "about PLUTO"], dict[str, str]()
    vectors = run(lab.embedding(limits={"max_retries": 2}).embed(texts, errors=errors))
    assert np.isnan(vectors[40]).all()
    assert np.allclose(vectors[:40], [unit(embedding_of(text)) for text in texts[:40]], atol=1e-3)
    assert errors.keys() == {"about PLUTO"}
    assert "unsupported value: NaN" in errors["about PLUTO"]
    assert len(lab.server.embeddings) < 25
    with pytest.raises(RetriesExhausted, match="NaN"):
        run(lab.embedding(limits={"max_retries": 2}).embed(texts))


def test_a_text_that_is_too_long_for_the_server_is_sent_in_parts(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    message = "This model's maximum context length is 50 tokens."
    bad_texts(lab, lambda text: len(encode(text, "cl100k_base")) > 50, 400, message)
    long, errors = "Ada wrote to Charles. " * 30, dict[str, str]()
    [one, vector] = run(lab.embedding().embed(["Ada", long], errors=errors))
    assert errors == {}
    assert np.allclose(one, unit(embedding_of("Ada")), atol=1e-3)
    parts = {text for request in lab.server.embeddings for text in request.body["input"] if text in long}
    accepted = [text for text in parts if 1 < len(encode(text, "cl100k_base")) <= 50]
    assert len(accepted) >= 2
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    assert "GRAPHRAG_EMBEDDING_MAX_TOKENS" in caplog.text
    assert run(lab.embedding().embed([long])).shape == (1, 32)  # a question too


def test_requests_that_are_rejected_for_any_text_are_an_error(lab: Lab) -> None:
    bad_texts(lab, lambda text: True, 400, "Unknown parameter.")
    with pytest.raises(RequestRejected, match="Unknown parameter"):
        run(lab.embedding().embed([f"number {n}" for n in range(64)], errors={}))
    assert len(lab.server.embeddings) < 15
