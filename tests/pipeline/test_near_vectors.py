"""Similar vectors are found without comparing all."""

import numpy as np

from graphrag_assets.pipeline.near_vectors import MIN_COSINE, NearVectors


def test_nearly_all_similar_vectors_are_found_and_no_others():
    random = np.random.default_rng(1)
    vectors = random.standard_normal((2_000, 64), dtype=np.float32)
    vectors[1_000:1_100] = vectors[:100] + 0.3 * random.standard_normal((100, 64), dtype=np.float32)
    near = NearVectors(len(vectors))
    for start in range(0, len(vectors), 300):
        part = vectors[start : start + 300]
        near.add(np.arange(start, start + len(part), dtype=np.int32) + 10, part)
    found = {(a - 10, b - 10) for a, b, _ in near.pairs().iter_rows()}
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    twins = {(i, i + 1_000) for i in range(100)}
    assert len(found & twins) >= 95
    assert all(cosine[pair] >= MIN_COSINE - 0.1 for pair in found)


def test_without_vectors_there_are_no_pairs():
    assert NearVectors(3).pairs().is_empty()
