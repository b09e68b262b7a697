"""Which of several sentences says best what they all say: the summariser of the embedded default.

Degree centrality of LexRank (Erkan and Radev, 2004, JAIR 22): a sentence is central when it is similar to many
of its group. The sum of similarities to all others is the similarity to the group's sum, so the cost is linear.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

_FEATURES = 2**18
_PAIRS_AT_ONCE = 100_000


def centrality(texts: Sequence[str], groups: Sequence[int]) -> np.ndarray:
    """Mean similarity (TF-IDF cosine, 0 to 1) of each text to the texts of its group, itself included.

    Args:
        texts: n texts; equal texts are vectorised once.
        groups: n group numbers, 0 to g - 1.

    Returns:
        float64 array of length n.
    """
    if not len(texts):
        return np.zeros(0)
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    distinct = pl.Series("text", list(texts), dtype=pl.String)
    unique = distinct.unique(maintain_order=True)
    position = dict(zip(unique, range(len(unique)), strict=True))
    rows = np.fromiter((position[t] for t in texts), dtype=np.int64, count=len(texts))
    group = np.asarray(groups, dtype=np.int64)
    counts = HashingVectorizer(n_features=_FEATURES, alternate_sign=False, norm=None).transform(unique)
    vectors = TfidfTransformer(sublinear_tf=True).fit_transform(counts).tocsr()

    n_groups = int(group.max()) + 1
    members = csr_matrix((np.ones(len(rows)), (group, rows)), shape=(n_groups, len(unique)))
    sums = (members @ vectors).tocsr()
    sizes = np.bincount(group, minlength=n_groups)
    scores = np.empty(len(rows))
    for start in range(0, len(rows), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        products = vectors[rows[part]].multiply(sums[group[part]]).sum(axis=1)
        scores[part] = np.asarray(products).ravel() / sizes[group[part]]
    return np.round(scores, 9)


def summarise(descriptions: pl.DataFrame, max_sentences: int = 3, max_characters: int = 700) -> pl.DataFrame:
    """One description per key: the most central of its descriptions, to a length.

    Args:
        descriptions: columns key, title, description, n (how often it was given). Descriptions that name the
            title at their beginning are preferred: they tend to say what the thing is.

    Returns:
        columns key, description; one row per key, sorted by key.
    """
    distinct = (
        descriptions.filter(pl.col("description").str.len_chars() > 0)
        .group_by("key", "description")
        .agg(pl.col("n").sum(), pl.col("title").min())
        .sort("key", "description")
        .with_columns(group=pl.col("key").rank("dense").cast(pl.Int64) - 1)
    )
    # Room for an article or an honorific before the name.
    opening = pl.col("description").str.to_lowercase().str.slice(0, pl.col("title").str.len_chars() + 12)
    ranked = distinct.with_columns(
        score=pl.Series(centrality(distinct["description"].to_list(), distinct["group"].to_list()))
        * (1 + pl.col("n").log1p() / 4)
        * pl.when(opening.str.contains(pl.col("title").str.to_lowercase(), literal=True)).then(2.0).otherwise(1.0)
    ).sort("key", pl.col("score").round(6).neg(), "description")
    # The first is always kept; further ones as long as they fit.
    length = pl.col("description").str.len_chars().cum_sum().over("key")
    place = pl.int_range(pl.len()).over("key")
    chosen = ranked.filter((place == 0) | ((place < max_sentences) & (length <= max_characters)))
    return chosen.group_by("key", maintain_order=True).agg(pl.col("description").str.join(" "))
