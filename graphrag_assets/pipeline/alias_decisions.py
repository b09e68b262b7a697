"""Aliases a person decided on stay: the table entity_aliases is data, not only a result."""

import polars as pl

USER_RULE = "user"


def with_decisions(proposals: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    """The aliases in force: rows of rule 'user', rejected rows, and the proposals that contradict neither.

    Args:
        proposals, stored: document_id (null: everywhere), alias_key, title_key, rule, accepted.
    """
    decided = stored.filter((pl.col("rule") == USER_RULE) | ~pl.col("accepted"))
    open_proposals = proposals.join(decided, on=["document_id", "alias_key"], how="anti", nulls_equal=True)
    return pl.concat([decided.select(proposals.columns), open_proposals]).sort("document_id", "alias_key")
