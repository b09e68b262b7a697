"""Hashed embeddings: the same text has the same vector anywhere, and like texts have like vectors."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.embedded.hashed_embeddings import DIMENSIONS, embed
from tests.conftest import SAMPLE_INPUT

HOTPOT = Path(__file__).resolve().parents[2] / "../shared/data/hotpotqa-100"


def similarity(one: str, other: str) -> float:
    vectors = embed([one, other])
    return float(vectors[0] @ vectors[1])


def test_vectors_are_unit_rows_of_float32() -> None:
    vectors = embed(["The ship sailed.", "Ein Schiff", "船は出航した", "1866"])
    assert vectors.shape == (4, DIMENSIONS)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(4), abs=1e-6)


def test_texts_without_terms_are_zero_and_no_texts_are_no_rows() -> None:
    assert not embed(["", " — …"]).any()
    assert embed([]).shape == (0, DIMENSIONS)


@given(st.lists(st.text(max_size=80), min_size=1, max_size=20), st.integers(0, 20))
def test_a_text_has_the_same_vector_to_the_last_bit_in_any_batch_and_order(texts: list[str], cut: int) -> None:
    whole = embed(texts)
    assert np.array_equal(whole, np.vstack([embed(texts[:cut]), embed(texts[cut:])]))
    assert np.array_equal(whole[::-1], embed(texts[::-1]))


def test_more_texts_than_one_block_holds_keep_their_order() -> None:
    texts = [f"unit {number % 7}" for number in range(5000)]
    vectors = embed(texts)
    assert np.array_equal(vectors[4998], vectors[4998 % 7])


def test_content_words_count_more_than_stop_words() -> None:
    assert similarity("What was it that was in the cable?", "the cable") > 0.8
    assert similarity("What was it that was in the cable?", "What was it that was in the garden?") < 0.3


def test_forms_of_a_word_resemble_each_other() -> None:
    assert similarity("insulation", "insulated") > similarity("insulation", "telegraph") + 0.1


def test_word_order_makes_a_small_difference() -> None:
    assert 0.9 < similarity("great eastern ship", "eastern great ship") < 0.9999


def test_case_does_not_change_the_vector_much() -> None:
    assert similarity("Cyrus Field crossed the ocean", "cyrus field crossed the ocean") > 0.95


@pytest.mark.skipif(not HOTPOT.is_dir(), reason="the optional data set hotpotqa-100 is not there")
def test_supporting_passages_of_hotpotqa_are_found() -> None:
    corpus = json.loads((HOTPOT / "corpus.json").read_text())
    questions = json.loads((HOTPOT / "questions.json").read_text())
    titles = list(corpus)
    passages = embed([f"{title}. {''.join(corpus[title])}" for title in titles])
    nearest = np.argsort(-(embed([q["question"] for q in questions]) @ passages.T), axis=1, kind="stable")[:, :5]
    recalls = [
        np.mean([title in {titles[i] for i in row} for title in {title for title, _ in question["supporting_facts"]}])
        for row, question in zip(nearest, questions, strict=True)
    ]
    assert np.mean(recalls) > 0.68


def test_few_texts_and_many_have_the_same_vectors_to_the_last_bit(sample_texts: list[str]) -> None:
    assert len(sample_texts) > 50
    many = embed(sample_texts)
    assert np.array_equal(many, np.vstack([embed([text]) for text in sample_texts]))


@pytest.fixture
def sample_texts() -> list[str]:
    texts = [file.read_text() for file in sorted(SAMPLE_INPUT.rglob("*.md"))]
    return [text[at : at + 400] for text in texts for at in range(0, min(len(text), 2_000), 400)]
