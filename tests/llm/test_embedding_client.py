"""Embeddings against a real server."""

import asyncio
import json
from collections.abc import Callable

import numpy as np
import pytest

from graphrag_assets.llm import provider
from graphrag_assets.llm.model_errors import RequestRejected, RetriesExhausted
from graphrag_assets.text.words import encode
from tests.llm.conftest import Lab, run
from tests.openai_content import embedding_of


def unit(vector: np.ndarray | list[float]) -> np.ndarray:
    return np.asarray(vector) / np.linalg.norm(vector)


def test_vectors_are_unit_rows_in_the_order_of_the_texts(lab: Lab) -> None:
    texts = [f"Text {n}" for n in range(10)]
    vectors = run(lab.embedding().embed(texts))

    assert vectors.dtype == np.float32
    assert np.allclose(vectors, [unit(embedding_of(text)) for text in texts], atol=1e-6)


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


def test_requests_keep_to_both_limits(lab: Lab) -> None:
    texts = [f"number {n} " * (2 if n < 50 else 10) for n in range(100)]
    run(lab.embedding(batch_size=16, batch_bytes=900).embed(texts))

    sent = [request.body["input"] for request in lab.server.embeddings]
    assert sorted(text for batch in sent for text in batch) == sorted(texts)
    assert max(len(batch) for batch in sent) == 16
    sizes = [sum(len(text.encode()) for text in batch) for batch in sent]
    assert 800 < max(sizes) <= 900


@pytest.mark.parametrize("text", ["Ada wrote to Charles. ", "Zoë 😀 鲸é", "\u0e33\u0301" * 9, "x" * 40])
def test_a_text_longer_than_the_model_takes_is_cut(lab: Lab, text: str) -> None:
    text *= 10
    [vector] = run(lab.embedding(item_tokens=20).embed([text]))
    ((sent,),) = (request.body["input"] for request in lab.server.embeddings)
    assert text.startswith(sent)
    assert 15 < len(encode(sent, "cl100k_base")) <= 20
    assert np.allclose(vector, unit(embedding_of(sent)), atol=1e-6)


@pytest.mark.parametrize(
    "fault", ["fewer-vectors", "wrong-dimensions", "429", "500", "closed", "cut", "malformed-body", "slow"]
)
def test_wrong_replies_and_passing_failures_are_retried(lab: Lab, fault: str) -> None:
    lab.server.fail_next(fault)
    model = lab.embedding(timeout=0.2 if fault == "slow" else 30)
    texts = ["Ada", "Charles"]
    vectors = run(model.embed(texts))

    assert np.allclose(vectors, [unit(embedding_of(text)) for text in texts], atol=1e-6)
    assert len(lab.server.embeddings) == 2  # no retries but ours
    assert model.usage.total.retries == 1


def test_identical_concurrent_requests_are_sent_once(lab: Lab) -> None:
    lab.server.latency = 0.05
    model = lab.embedding()

    async def all_at_once() -> list[np.ndarray]:
        return await asyncio.gather(*(model.embed(["Ada", "Charles"]) for _ in range(5)))

    assert len({vectors.tobytes() for vectors in run(all_at_once())}) == 1
    assert len(lab.server.embeddings) == 1


def test_texts_that_time_out_are_sent_one_by_one(lab: Lab) -> None:
    lab.server.seconds_per_text = 0.1
    model = lab.embedding(timeout=0.5, batch_size=16, limits={"concurrency": 1, "max_retries": 5})
    texts = [f"Text {n}" for n in range(16)]
    vectors = run(model.embed(texts))
    assert [len(request.body["input"]) for request in lab.server.embeddings] == [16, 16, *[1] * 16]
    assert np.allclose(vectors, [unit(embedding_of(text)) for text in texts], atol=1e-6)
    assert model.usage.total.failures == 0


def test_stored_vectors_of_a_model_that_had_the_name_before_are_replaced(lab: Lab) -> None:
    """Every later run failed: vectors of two sizes make no table, and the ledger gave the old ones again and again."""
    lab.server.dimensions = 16
    assert run(lab.embedding().embed(["Ada", "Mary"])).shape == (2, 16)
    lab.server.dimensions = 32
    assert run(lab.embedding().embed(["Ada", "Charles"])).shape == (2, 32)  # a reply shows the size
    lab.server.requests.clear()
    vectors = run(lab.embedding().embed(["Ada", "Charles", "Mary"]))  # the ledger has both sizes: the last one counts
    assert np.allclose(vectors, [unit(embedding_of(text)) for text in ("Ada", "Charles", "Mary")], atol=1e-6)
    assert [request.body["input"] for request in lab.server.embeddings] == [["Mary"]]
    lab.server.requests.clear()
    run(lab.embedding().embed(["Ada", "Charles", "Mary"]))
    assert lab.server.requests == []


def bad_texts(lab: Lab, is_bad: Callable[[str], bool], status: int, body: object) -> None:
    """Have the server refuse every request with such a text."""
    refusal = status, {}, json.dumps(body).encode()
    lab.server.replace = lambda request: refusal if any(map(is_bad, request["input"])) else None


@pytest.mark.parametrize("status", [400, 500])
def test_a_text_that_the_server_does_not_take_is_named_and_the_others_have_vectors(lab: Lab, status: int) -> None:
    bad_texts(lab, lambda text: "PLUTO" in text, status, {"error": {"message": "unsupported value: NaN"}})
    texts, errors = [*(f"number {n}" for n in range(10)), "about PLUTO"], dict[str, str]()
    vectors = run(lab.embedding(limits={"max_retries": 2}).embed(texts, errors=errors))
    assert np.isnan(vectors[10]).all()
    assert np.allclose(vectors[:10], [unit(embedding_of(text)) for text in texts[:10]], atol=1e-6)
    assert errors.keys() == {"about PLUTO"}
    assert "unsupported value: NaN" in errors["about PLUTO"]
    assert len(lab.server.embeddings) <= 2 + 10 + 3
    with pytest.raises((RetriesExhausted, RequestRejected), match="NaN"):  # a question
        run(lab.embedding(limits={"max_retries": 2}).embed(texts))


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "This model's maximum context length is 50 tokens."}},
        {"error": "Input validation error: `inputs` must have less than 50 tokens.", "error_type": "Validation"},
        {"detail": [{"loc": ["body", "input"], "msg": "The text is too long."}]},
    ],
)
def test_a_text_that_is_too_long_for_the_server_is_cut_until_it_takes_it(
    lab: Lab, caplog: pytest.LogCaptureFixture, body: object
) -> None:
    provider.warn_once.cache_clear()
    bad_texts(lab, lambda text: len(encode(text, "cl100k_base")) > 50, 413, body)
    long, errors = "Ada wrote to Charles. " * 30, dict[str, str]()
    [one, vector] = run(lab.embedding().embed(["Ada", long], errors=errors))
    assert errors == {}
    assert np.allclose(one, unit(embedding_of("Ada")), atol=1e-6)
    (sent,) = lab.server.embeddings[-1].body["input"]
    assert long.startswith(sent)
    assert 35 < len(encode(sent, "cl100k_base")) <= 50
    assert np.allclose(vector, unit(embedding_of(sent)), atol=1e-6)
    assert "GRAPHRAG_EMBEDDING_MAX_TOKENS" in caplog.text


def test_requests_that_are_rejected_for_any_text_are_an_error(lab: Lab) -> None:
    bad_texts(lab, lambda text: True, 400, {"error": {"message": "Unknown parameter."}})
    with pytest.raises(RequestRejected, match="Unknown parameter"):
        run(lab.embedding().embed([f"number {n}" for n in range(64)], errors={}))
    assert len(lab.server.embeddings) == 3  # together, one alone, and another text
