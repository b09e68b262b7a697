"""Selects the most central of several sentences: the summarizer of the embedded default.

Degree centrality of LexRank (Erkan and Radev, 2004, JAIR 22): a sentence is central when it is similar to many
of its group. The sum of similarities to all others is the similarity to the group's sum, so the cost is linear.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from graphrag_assets.embedded.wording import is_subject, says_what_it_is

_WORD = r"\b\w\w+\b"
_TEXTS_AT_ONCE = 5_000


def centrality(texts: Sequence[str], groups: Sequence[int]) -> np.ndarray:
    """Mean similarity (TF-IDF cosine, 0 to 1) of each text to the texts of its group, itself included.

    The weights are those of scikit-learn's TfidfVectorizer with `sublinear_tf`, fitted to the group alone: (1 + ln
    occurrences of the word) · (1 + ln((1 + texts) / (1 + texts with it))), scaled to length 1. So a score does not
    depend on the rest of the corpus or on other texts of the same call: an edit reorders nothing that it does not
    concern.

    Args:
        texts: n texts.
        groups: n group numbers.

    Returns:
        float64 array of length n.
    """
    rows = pl.DataFrame({"group": groups, "text": texts}, schema={"group": pl.Int64, "text": pl.String})
    rows = rows.with_row_index("row").sort("group", "row")
    place = pl.int_range(pl.len()).min().over("group") // _TEXTS_AT_ONCE  # a group is never divided
    scores = np.zeros(len(rows))
    for part in rows.with_columns(part=place).partition_by("part", include_key=False):
        scored = _scored(part)
        scores[scored["row"]] = scored["score"]
    return np.round(scores, 9)


def _scored(texts: pl.DataFrame) -> pl.DataFrame:
    """row, score of the texts (columns row, group, text) of whole groups; no row for a text without a word."""
    sizes = texts.group_by("group").agg(size=pl.len().cast(pl.Float64))
    words = pl.col("text").str.to_lowercase().str.extract_all(_WORD)
    counts = (
        texts.select("row", "group", word=words)
        .explode("word", empty_as_null=False)
        .group_by("row", "group", "word")
        .len()
        .join(sizes, on="group")
        .sort("row", "word")  # a sum depends on the order
    )
    rarity = 1 + ((1 + pl.col("size")) / (1 + pl.len().over("group", "word"))).log()
    weighted = counts.with_columns(weight=(1 + pl.col("len").log()) * rarity)
    unit = weighted.with_columns(pl.col("weight") / (pl.col("weight") ** 2).sum().over("row").sqrt())
    products = unit.with_columns(product=pl.col("weight") * pl.col("weight").sum().over("group", "word"))
    return products.group_by("row", maintain_order=True).agg(score=pl.col("product").sum() / pl.col("size").first())


def summarize(descriptions: pl.DataFrame, max_sentences: int = 3, max_characters: int = 700) -> pl.DataFrame:
    """One description per key, to a length: one that says what it is, then the most central others.

    Args:
        descriptions: columns key, title, description, n (how often it was given), and perhaps dated. Descriptions
            whose subject the title is are preferred. After one that says what it is, they come by date, the newest
            first.

    Returns:
        columns key, description; one row per key, sorted by key.
    """
    dated = "dated" in descriptions.columns and descriptions["dated"].null_count() < descriptions.height
    distinct = (
        descriptions.filter(pl.col("description").str.len_chars() > 0)
        .group_by("key", "description")
        .agg(pl.col("n").sum(), pl.col("title").min(), *([pl.col("dated").max()] if dated else []))
        .sort("key", "description")
    )
    several = distinct.filter(pl.len().over("key") > 1).with_columns(group=pl.col("key").rank("dense").cast(pl.Int64))
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
    if dated:
        newest = -pl.col("dated").cast(pl.Int32)
        chosen = chosen.sort("key", (place > 0) | ~pl.col("defines"), newest, nulls_last=True, maintain_order=True)
    joined = chosen.group_by("key", maintain_order=True).agg(pl.col("description").str.join(" "))
    single = distinct.join(joined, on="key", how="anti").select("key", "description")
    return pl.concat([single, joined]).sort("key")
