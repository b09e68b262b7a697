"""The aliases after a change: families of changed names are resolved again, and the documents that this concerns.

The short forms of a document depend on its own names, on what these stand for, and on who bears a surname. So a change
concerns the changed documents, those that name something which stands for another name or has another type, and those
with a surname that has other bearers.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

import polars as pl

from graphrag_assets.pipeline.document_aliases import document_aliases, short_forms
from graphrag_assets.pipeline.resolution import alias_table, family, resolve_names

LAST_WORD = "split_part(title_key, ' ', -1)"
Read = Callable[[str, Collection[str]], pl.DataFrame]
"""The rows of which a column, or an SQL expression, has one of these values."""


class UpdatedAliases(NamedTuple):
    """`aliases`: the table entity_aliases. `names`: the rows of resolved_names of these `families`."""

    aliases: pl.DataFrame
    names: pl.DataFrame
    families: pl.Series


def update_aliases(
    changed_keys: Collection[str],
    changed_documents: Collection[str],
    stored: pl.DataFrame,
    read_mentions: Read,
    read_names: Read,
) -> UpdatedAliases:
    """The aliases that `propose_aliases` finds in all mentions.

    Args:
        changed_keys, changed_documents: of mentions that have come or gone since `stored`.
        stored: the table entity_aliases without decisions of people.
        read_mentions: the present mentions: document_id, title, title_key, type.
        read_names: the stored rows of resolved_names.
    """
    families = sorted({family(key) for key in changed_keys if key})
    before = read_names("family", families)
    now = resolve_names(read_mentions("title_key", {*before["title_key"], *changed_keys}))
    renamed = _differing(before.drop("rule"), now.drop("rule"))["title_key"]
    rebound = _differing(short_forms(before), short_forms(now))["short"].unique()
    short = pl.concat([now, read_names("stands_for", rebound)]).filter(pl.col("stands_for").is_in(rebound.implode()))
    concerned = read_mentions("title_key", {*renamed, *short["title_key"]})["document_id"]
    documents = {*changed_documents, *concerned}
    mentions = read_mentions("document_id", documents)
    known = pl.concat([now, read_names("title_key", set(mentions["title_key"]) - set(now["title_key"]))])
    single = known.filter(~pl.col("stands_for").str.contains(" "))
    people = single.filter(type="PERSON")["stands_for"].unique()
    stated = pl.format("({})", single["stands_for"].unique())
    others = read_names(LAST_WORD, [*people, *pl.select(stated).to_series()])
    others = others.filter(~pl.col("family").is_in(families))
    fresh = alias_table(now, document_aliases(mentions, known, short_forms(pl.concat([now, others]))))
    in_document = pl.col("document_id").is_not_null()
    outdated = pl.when(in_document).then(pl.col("document_id").is_in(list(documents)))
    kept = stored.filter(~outdated.otherwise(pl.col("alias_key").is_in(before["title_key"].implode())))
    aliases = pl.concat([kept, fresh]).sort("document_id", "alias_key", nulls_last=False)
    return UpdatedAliases(aliases, now, pl.Series("family", families, dtype=pl.String))


def _differing(before: pl.DataFrame, now: pl.DataFrame) -> pl.DataFrame:
    """The rows that only one of them has."""
    both = before.columns
    return pl.concat([before.join(now, on=both, how="anti"), now.join(before, on=both, how="anti")])
