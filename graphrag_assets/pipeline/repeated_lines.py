"""Lines that most documents repeat, such as notices and signatures: they make neither names nor relationships.

Which lines these are is judged by a sample of documents, so that it rarely changes.
"""

from collections.abc import Collection

import polars as pl

from graphrag_assets.embedded import EXTRACTOR

SAMPLE = 32
"""Number of documents in the sample."""
_FEWEST = 3
_EMBEDDED = pl.col("extractor").str.starts_with(EXTRACTOR)


def repeated_lines(described: pl.DataFrame, n_documents: int) -> list[str]:
    """The descriptions that more than half of the documents have, and at least three, sorted.

    Documents that have nothing else do not count: they are copies of each other.

    Args:
        described: document_id, description of mentions by the embedded default in the sample.
        n_documents: in the sample.
    """
    lines = described.unique()
    least = max(_FEWEST, n_documents // 2 + 1)

    def frequent(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.group_by("description").len().filter(pl.col("len") >= least).select("description")

    common = frequent(lines)
    with_more = lines.join(common, on="description", how="anti")["document_id"].unique()
    return frequent(lines.filter(pl.col("document_id").is_in(with_more.implode())))["description"].sort().to_list()


def without_lines(mentions: pl.DataFrame, lines: Collection[str], counted: str) -> pl.DataFrame:
    """The mentions without those of which the only sentence is one of `lines`; `counted`: their number of sentences."""
    if not lines:
        return mentions
    only = _EMBEDDED & (pl.col(counted) == 1) & pl.col("description").is_in(list(lines))
    return mentions.filter(~only)
