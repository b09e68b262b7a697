"""Which of several sentences says best what they all say: the summariser of the embedded default.

Degree centrality of LexRank (Erkan and Radev, 2004, JAIR 22): a sentence is central when it is similar to many
of its group. The sum of similarities to all others is the similarity to the group's sum, so the cost is linear.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from graphrag_assets.models.offline.definitions import is_subject, says_what_it_is

_WORD = r"\b\w\w+\b"
_PAIRS_AT_ONCE = 100_000
_TEXTS_AT_ONCE = 20_000


def centrality(texts: Sequence[str], groups: Sequence[int]) -> np.ndarray:
    """Mean similarity (TF-IDF cosine, 0 to 1) of each text to the texts of its group, itself included.

    The weights are those of scikit-learn's TfidfVectorizer with `sublinear_tf`: (1 + ln occurrences of the word)
    · (1 + ln((1 + texts) / (1 + texts with it))), scaled to length 1. To import it takes a second.

    Args:
        texts: n texts; equal texts are vectorised once.
        groups: n group numbers, 0 to g - 1.

    Returns:
        float64 array of length n.
    """
    if not len(texts):
        return np.zeros(0)
    from scipy.sparse import csr_matrix

    distinct = pl.Series("text", list(texts), dtype=pl.String)
    unique = distinct.unique(maintain_order=True)
    position = dict(zip(unique, range(len(unique)), strict=True))
    rows = np.fromiter((position[t] for t in texts), dtype=np.int64, count=len(texts))
    group = np.asarray(groups, dtype=np.int64)
    weights = _word_weights(unique)
    shape = (len(unique), weights["word"].n_unique())
    vectors = csr_matrix((weights["weight"], (weights["text"], weights["word"])), shape)

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


def _word_weights(texts: pl.Series) -> pl.DataFrame:
    """text, word (both as numbers from 0), weight: the vectors of the texts."""
    words = pl.col("word").str.to_lowercase().str.extract_all(_WORD)
    counts = pl.concat(
        part.select("text", words)
        .explode("word", empty_as_null=False)
        .select("text", pl.col("word").hash())
        .group_by("text", "word")
        .len()
        for part in texts.to_frame("word").with_row_index("text").iter_slices(_TEXTS_AT_ONCE)
    )
    counts = counts.with_columns(pl.col("word").rank("dense") - 1).sort("text", "word")  # a sum depends on the order
    rarity = 1 + ((1 + len(texts)) / (1 + pl.len().over("word"))).log()
    weights = counts.select("text", "word", weight=(1 + pl.col("len").log()) * rarity)
    return weights.with_columns(pl.col("weight") / (pl.col("weight") ** 2).sum().over("text").sqrt())


def summarise(descriptions: pl.DataFrame, max_sentences: int = 3, max_characters: int = 700) -> pl.DataFrame:
    """One description per key, to a length: one that says what it is, then the most central others.

    Args:
        descriptions: columns key, title, description, n (how often it was given). Descriptions whose subject the
            title is are preferred.

    Returns:
        columns key, description; one row per key, sorted by key.
    """
    distinct = (
        descriptions.filter(pl.col("description").str.len_chars() > 0)
        .group_by("key", "description")
        .agg(pl.col("n").sum(), pl.col("title").min())
        .sort("key", "description")
    )
    several = distinct.filter(pl.len().over("key") > 1).with_columns(
        group=pl.col("key").rank("dense").cast(pl.Int64) - 1
    )
    description, title = pl.col("description"), pl.col("title")
    ranked = several.with_columns(
        score=pl.Series(centrality(several["description"].to_list(), several["group"].to_list()))
        * (1 + pl.col("n").log1p() / 4)
        * pl.when(is_subject(description, title)).then(2.0).otherwise(1.0),
        defines=says_what_it_is(description, title),
    )
    first = pl.struct(~pl.col("defines"), -pl.col("score").round(6), "description").rank("ordinal").over("key") == 1
    ranked = ranked.sort("key", ~first, pl.col("score").round(6).neg(), "description")
    # The first is always kept; further ones as long as they fit.
    length = pl.col("description").str.len_chars().cum_sum().over("key")
    place = pl.int_range(pl.len()).over("key")
    chosen = ranked.filter((place == 0) | ((place < max_sentences) & (length <= max_characters)))
    joined = chosen.group_by("key", maintain_order=True).agg(pl.col("description").str.join(" "))
    single = distinct.join(joined, on="key", how="anti").select("key", "description")
    return pl.concat([single, joined]).sort("key")
