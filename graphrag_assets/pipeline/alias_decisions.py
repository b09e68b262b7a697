"""Keeps the alias decisions of users: the table entity_aliases is input as well as output."""

import polars as pl

from graphrag_assets.pipeline.resolution import apply_aliases

USER_RULE = "user"
_LONGEST_CHAIN = 10


def with_decisions(proposals: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    """The aliases in force: rows of rule 'user', rejected rows, and the proposals that contradict neither.

    Chains of aliases are resolved. Circular aliases are left out.

    Args:
        proposals, stored: document_id (null: everywhere), alias_key, title_key, rule, accepted.
    """
    decided = decisions(stored).select(proposals.columns)
    open_proposals = proposals.join(decided, on=["document_id", "alias_key"], how="anti", nulls_equal=True)
    aliases = pl.concat([decided, open_proposals]).sort("document_id", "alias_key")
    followed = aliases
    for _ in range(_LONGEST_CHAIN):
        further = apply_aliases(followed, aliases, ["title_key"])
        if further.equals(followed):
            break
        followed = further
    else:
        # Aliases that still change are circular.
        moving = apply_aliases(followed, aliases, ["title_key"])["title_key"] != followed["title_key"]
        followed = followed.filter(~moving)
    # A rejected alias is a decision too; it keeps its original keys.
    rejected = aliases.filter(~pl.col("accepted"))
    in_force = followed.filter(pl.col("accepted") & (pl.col("alias_key") != pl.col("title_key")))
    return pl.concat([rejected, in_force]).sort("document_id", "alias_key")


def decisions(aliases: pl.DataFrame) -> pl.DataFrame:
    """The rows that people have decided on."""
    return aliases.filter((pl.col("rule") == USER_RULE) | ~pl.col("accepted"))
