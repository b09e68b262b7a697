"""Decisions on names as aliases: what the rules propose, changed by what people and judges have decided.

What a decision does is in derived rows only.
"""

from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase

import polars as pl

from graphrag_assets.pipeline.resolution import UNTYPED, apply_aliases
from graphrag_assets.store.decisions import Decision
from graphrag_assets.text.words import title_key, without_qualifier

DECISION, SPLIT = "decision", "split"
"""Rules of the rows of entity_aliases that follow from decisions."""
_LONGEST_CHAIN = 10
_SCOPE = ["document_id", "alias_key"]
Named = Callable[[Collection[str]], pl.DataFrame]
"""Where names are mentioned: document_id, source, title, key, type and n, a row per document, key and type."""


def decided_aliases(proposals: pl.DataFrame, decided: Sequence[Decision], read_named: Named) -> pl.DataFrame:
    """Return the aliases in force: those that the rules propose (rows of entity_aliases), changed by decisions."""
    accepted = [(None, one.name, one.other, DECISION) for one in decided if one.kind == "accept"]
    rows = pl.DataFrame(accepted, proposals.schema, orient="row").unique("alias_key", keep="first", maintain_order=True)
    names = rows["alias_key"].implode()
    apart = {(one.name, one.other) for one in decided if one.kind == "reject"}
    splits: dict[str, list[Decision]] = {}
    for one in decided:
        if one.kind == "split":
            splits.setdefault(one.name, []).append(one)
    proposals = proposals.filter(~pl.col("alias_key").is_in(names))
    qualified = proposals.filter(pl.col("title_key").is_in(list(splits)))["alias_key"]
    apart |= {(key, without_qualifier(key)) for key in qualified if without_qualifier(key) != key}
    apart |= {(one.name, one.other) for several in splits.values() for one in several if one.other}
    aliases = _kept_apart(proposals, rows, apart)
    for name, several in splits.items():
        aliases = _split(aliases, name, several, read_named)
    return aliases


def _in_force(proposals: pl.DataFrame, decided: pl.DataFrame) -> pl.DataFrame:
    """Return the decided rows, and the proposals that contradict none.

    Chains of aliases are resolved. Circular aliases are left out, proposals before decisions.
    """
    aliases = pl.concat([decided, proposals]).sort(_SCOPE)
    followed = aliases
    for _ in range(_LONGEST_CHAIN):
        further = apply_aliases(followed, aliases, ["title_key"])
        if further.equals(followed):
            break
        followed = further
    else:
        # Aliases that still change are circular.
        moving = apply_aliases(followed, aliases, ["title_key"])["title_key"] != followed["title_key"]
        circular = proposals.join(followed.filter(moving), on=_SCOPE, how="semi", nulls_equal=True)
        if circular.height and decided.height:
            return _in_force(proposals.join(circular, on=_SCOPE, how="anti", nulls_equal=True), decided)
        followed = followed.filter(~moving)
    return followed.filter(pl.col("alias_key") != pl.col("title_key")).sort(_SCOPE)


def _kept_apart(proposals: pl.DataFrame, decided: pl.DataFrame, apart: set[tuple[str, str]]) -> pl.DataFrame:
    """Return the aliases in force, without the proposals by which two names `apart` would be one, also over others."""
    pairs = pl.DataFrame(
        [pair for one, other in apart for pair in ((one, other), (other, one))],
        {"alias_key": pl.String, "title_key": pl.String},
        orient="row",
    )
    proposals = proposals.join(pairs, on=["alias_key", "title_key"], how="anti")
    while True:
        aliases = _in_force(proposals, decided)
        together = aliases.join(pairs, on=["alias_key", "title_key"], how="semi")
        everywhere = aliases.filter(pl.col("document_id").is_null())
        roots = dict(everywhere.select("alias_key", "title_key").iter_rows())
        one_root = [max(pair) for pair in apart if roots.get(pair[0], pair[0]) == roots.get(pair[1], pair[1])]
        leading = {*together["alias_key"], *one_root}
        fewer = proposals.filter(~pl.col("alias_key").is_in(list(leading)))
        if fewer.height == proposals.height:  # what is left follows from decisions
            return aliases
        proposals = fewer


def _split(aliases: pl.DataFrame, name: str, splits: Sequence[Decision], read_named: Named) -> pl.DataFrame:
    """`aliases` with the names that stand for `name` leading to its things, each in its documents."""
    leading = aliases.filter(pl.col("title_key") == name)["alias_key"]
    named = read_named({name, *leading}).sort(pl.all())
    resolved = apply_aliases(named.with_columns(stands_for="key"), aliases, ["stands_for"])
    mentions = resolved.filter(pl.col("stands_for") == name)
    things = _things(mentions, name, splits).filter(pl.col("title_key") != name)
    rows = (
        mentions.select("document_id", alias_key="key")
        .unique()
        .join(things, on="document_id")
        .select(*_SCOPE, "title_key", rule=pl.lit(SPLIT))
        .cast(aliases.schema)
    )
    rows = apply_aliases(rows, aliases, ["title_key"])  # a thing may have been accepted as another
    rows = rows.filter(pl.col("alias_key") != pl.col("title_key"))
    return pl.concat([aliases.join(rows, on=_SCOPE, how="anti"), rows]).sort(_SCOPE)


def _things(named: pl.DataFrame, name: str, splits: Sequence[Decision]) -> pl.DataFrame:
    """document_id, title_key: what `name` is in each document; the first split by its key counts."""
    by_patterns = [one for one in splits if one.documents]
    if not by_patterns and splits[0].split_by == "type":
        types = (
            named.filter(~pl.col("type").str.to_uppercase().is_in(UNTYPED))
            .group_by("document_id", "type")
            .agg(pl.col("n").sum())
            .sort("document_id", pl.col("n").neg(), "type")
            .group_by("document_id", maintain_order=True)
            .agg(pl.col("type").first())
        )
        return types.select(
            "document_id", title_key=pl.format("{} ({})", pl.lit(name), pl.col("type").str.to_lowercase())
        )
    rows = [
        (document, _thing(name, source, title, by_patterns))
        for document, source, title in named.select("document_id", "source", "title").unique().iter_rows()
    ]
    return pl.DataFrame(rows, {"document_id": pl.String, "title_key": pl.String}, orient="row")


def _thing(name: str, source: str, title: str, splits: Sequence[Decision]) -> str:
    if not splits:
        return title_key(f"{name} ({title})")
    return next((one.other for one in splits if any(matches(source, each) for each in one.documents)), name)


def matches(source: str, pattern: str) -> bool:
    """Whether the source of a document is what a pattern says, or is the pattern itself."""
    return source == pattern or fnmatchcase(source, pattern)


def are_apart(one: str, other: str, splits: Collection[str]) -> bool:
    """Whether two names are things of one split name: "mercury (planet)" and "mercury"."""
    return (name := without_qualifier(one)) == without_qualifier(other) and name in splits
