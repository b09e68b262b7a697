"""Paths of several hops: reached relationships, their order and score."""

import numpy as np
import pytest

from graphrag_assets.query.options import Filter
from graphrag_assets.query.paths import paths
from graphrag_assets.query.retrieval import word_scores
from graphrag_assets.query.scope import scope_of
from graphrag_assets.store.publication_reader import Reader
from tests.word_vectors import embed, embedded_question

from .conftest import AGAMEMNON, ENTITIES, GOOCH, HUDSON, NIAGARA, PENGUIN, RELATIONSHIPS, VALENTIA

QUESTION = embedded_question("Who bought the largest ship?")


def matching(reader: Reader) -> np.ndarray:
    """How well each entity matches the question: by the cosine, or by its share of the best BM25."""
    if reader.embedding:
        vectors = embed([f"{title}:{text}" for title, text in ENTITIES])
        return np.maximum(vectors @ QUESTION.vector, 0)
    scores = word_scores(reader, "entity", QUESTION, len(ENTITIES))
    return np.array([scores.get(number, 0.0) / max(scores.values()) for number in range(len(ENTITIES))])


def all_paths(start: list[int], hops: int, near: np.ndarray) -> dict[int, tuple[float, int]]:
    """By trying all paths: the relationships with the score of the best path that first meets them, and its hop."""
    heaviest = {e: max((w for s, t, w, _ in RELATIONSHIPS if e in (s, t)), default=1) for e in range(len(ENTITIES))}
    scores = dict.fromkeys(start, 1.0)
    found: dict[int, tuple[float, int]] = {}
    leaving = start
    for hop in range(1, hops + 1):
        steps: dict[int, float] = {}
        for number, (source, target, weight, _) in enumerate(RELATIONSHIPS):
            for here, there in ((source, target), (target, source)):
                if here in leaving:
                    score = scores[here] * (0.5 * weight / heaviest[here] + 0.5 * float(near[there]))
                    if found.get(number, (0.0, hop))[1] == hop:
                        found[number] = (max(found.get(number, (0.0, hop))[0], score), hop)
                    if there not in scores:
                        steps[there] = max(steps.get(there, 0.0), score)
        scores |= steps
        leaving = list(steps)
    return found


@pytest.mark.parametrize("start", [[HUDSON], [GOOCH], [AGAMEMNON, GOOCH], [PENGUIN]])
@pytest.mark.parametrize("hops", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["reader", "vector_reader"])
def test_paths_are_those_that_trying_all_of_them_finds(
    request: pytest.FixtureRequest, kind: str, start: list[int], hops: int
) -> None:
    reader: Reader = request.getfixturevalue(kind)
    similarities = dict(enumerate(matching(reader).tolist()))
    frame, reached = paths(reader, similarities, start, hops)
    expected = all_paths(start, hops, matching(reader))
    assert dict(frame.select("human_readable_id", "hop").iter_rows()) == {n: hop for n, (_, hop) in expected.items()}
    for number, score in frame.select("human_readable_id", "score").iter_rows():
        assert score == pytest.approx(expected[number][0], abs=1e-6)
    assert frame["score"].to_list() == sorted(frame["score"], reverse=True)
    ends = {e for n in expected for e in RELATIONSHIPS[n][:2]}
    assert set(reached) == ends - set(start)


def test_the_best_come_first_and_a_limit_keeps_them(reader: Reader) -> None:
    frame, reached = paths(reader, dict(enumerate(matching(reader))), [AGAMEMNON, GOOCH], 3)
    best, few = paths(reader, dict(enumerate(matching(reader))), [AGAMEMNON, GOOCH], 3, limit=2)
    assert best["human_readable_id"].to_list() == frame["human_readable_id"].to_list()[:2]
    assert set(few) <= set(reached)
    assert best["human_readable_id"][0] == 3  # Gooch to the Great Eastern: its only one, and near


def test_a_filter_ends_paths_where_its_text_ends(reader: Reader) -> None:
    scope = scope_of(reader, Filter(documents=("Document 0",)))
    frame, reached = paths(reader, {}, [HUDSON], 4, scope)
    assert set(reached) == {NIAGARA, AGAMEMNON, VALENTIA}
    assert set(frame["human_readable_id"]) == {0, 1, 2}
