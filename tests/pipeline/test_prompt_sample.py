"""The sample that prompts are tuned on: varied, with a share of each batch, the same for the same seed."""

import numpy as np
import polars as pl
import pytest

from graphrag_assets.extras.tuning.sample import varied_sample

SIZES = {"ships": 26, "plants": 12, "coins": 2}  # coins are 5 %


@pytest.fixture(scope="module")
def domains() -> pl.DataFrame:
    """Unit vectors around three directions, of 40 text units in one batch."""
    chance, rows = np.random.default_rng(1), []
    for place, (domain, size) in enumerate(SIZES.items()):
        for number in range(size):
            vector = np.eye(16)[place] + chance.normal(0, 0.15, 16)
            rows.append((f"{domain}-{number}", "all", (vector / np.linalg.norm(vector)).astype(np.float32)))
    return pl.DataFrame(rows, {"id": pl.String, "batch": pl.String, "vector": pl.List(pl.Float32)}, orient="row")


def found(ids: list[str]) -> set[str]:
    return {unit.partition("-")[0] for unit in ids}


def test_all_domains_are_in_a_sample_of_15_of_which_a_random_one_misses_the_smallest_in_a_third_of_the_seeds(domains):
    assert all(found(varied_sample(domains, 15, seed).ids) == set(SIZES) for seed in range(30))
    at_random = [np.random.default_rng(seed).choice(domains["id"], 15, replace=False) for seed in range(200)]
    assert sum("coins" not in found(list(ids)) for ids in at_random) > 200 / 3


def test_same_seed_same_sample_whatever_the_order_of_the_rows(domains):
    shuffled = domains.sample(fraction=1.0, shuffle=True, seed=3)
    assert varied_sample(shuffled, 15, 7) == varied_sample(domains, 15, 7)
    assert varied_sample(domains, 15, 8) != varied_sample(domains, 15, 7)


def test_without_vectors_a_sample_is_at_random_with_the_same_shares(domains):
    units = domains.with_columns(vector=pl.lit(None, pl.List(pl.Float32)), batch=pl.col("id").str.extract("^([a-z]+)"))
    sample = varied_sample(units, 13, 1)
    assert found(sample.ids) == set(SIZES)
    assert (len(set(sample.ids)), len(sample.held_out)) == (13, 10)
    assert varied_sample(units.sample(fraction=1.0, shuffle=True, seed=3), 13, 1) == sample
    assert varied_sample(units, 13, 2) != sample


def test_text_units_whose_vector_failed_are_left_out_of_the_sample(domains):
    failed = pl.when(pl.col("id") != "coins-0").then("vector")
    sample = varied_sample(domains.with_columns(vector=failed), 30, 1)
    assert "coins-0" not in [*sample.ids, *sample.held_out]
    assert len(sample.ids) == 30


def test_held_out_text_units_are_others_and_a_quarter_at_most(domains):
    sample = varied_sample(domains, 15, 1)
    assert len(sample.held_out) == 10
    assert not set(sample.ids) & set(sample.held_out)
    small = varied_sample(domains.head(9), 15, 1)
    assert (len(small.ids), len(small.held_out)) == (7, 2)
    one = varied_sample(domains.head(1), 15, 1)
    assert (one.ids, one.held_out) == (["ships-0"], [])


def test_batches_have_shares_by_size_and_one_each(domains):
    batches = pl.Series(["large"] * 30 + ["small"] * 9 + ["tiny"])
    sample = varied_sample(domains.with_columns(batch=batches), 13, 1)
    of = dict(zip(domains["id"], batches, strict=True))
    counts = pl.Series([of[unit] for unit in sample.ids]).value_counts()
    # one each, and ten by size: 29/37, 8/37 and 0/37 of ten
    assert dict(counts.iter_rows()) == {"large": 9, "small": 3, "tiny": 1}
