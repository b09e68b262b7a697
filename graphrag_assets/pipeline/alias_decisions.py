"""Decisions on names as aliases: what the rules propose, changed by what people and judges have decided.

What a decision does is in derived rows only.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase

import polars as pl

from graphrag_assets.pipeline.resolution import UNTYPED
from graphrag_assets.store.decisions import Decision
from graphrag_assets.text.words import title_key, without_qualifier

DECISION, SPLIT = "decision", "split"
"""Rules of the rows of entity_aliases that follow from decisions."""
Named = Callable[[Collection[str]], pl.DataFrame]
"""Where names are mentioned: document_id, source, title, key, type and n, a row per document, key and type."""
Aliases = dict[tuple[str | None, str], tuple[str, str]]
"""By document (None: every one) and name, the name that it stands for, and the rule."""


def decided_aliases(proposals: pl.DataFrame, decided: Sequence[Decision], read_named: Named) -> pl.DataFrame:
    """Return the aliases in force: those that the rules propose (rows of entity_aliases), changed by decisions."""
    accepted: Aliases = {(None, one.name): (one.other, DECISION) for one in reversed(decided) if one.kind == "accept"}
    proposed: Aliases = {
        (document, alias): (key, rule)
        for document, alias, key, rule in proposals.iter_rows()
        if (None, alias) not in accepted
    }
    apart = {(one.name, one.other) for one in decided if one.kind == "reject"}
    splits: dict[str, list[Decision]] = defaultdict(list)
    for one in decided:
        if one.kind == "split":
            splits[one.name].append(one)
            apart |= {(one.name, one.other)} if one.other else set()
    apart |= {(alias, without_qualifier(alias)) for (_, alias), (key, _) in proposed.items() if key in splits}
    aliases = _kept_apart(proposed, accepted, {(one, other) for one, other in apart if one != other})
    for name, several in splits.items():
        aliases |= _split(aliases, name, several, read_named)
    rows = [(*scope, *meaning) for scope, meaning in aliases.items()]
    return pl.DataFrame(rows, proposals.schema, orient="row").sort("document_id", "alias_key")


def _meaning(aliases: Aliases, document: str | None, name: str) -> str:
    """Return what a name stands for in a document, whose own aliases go before general ones."""
    meaning, _ = aliases.get((document, name)) or aliases.get((None, name)) or (name, "")
    return meaning


def _end(aliases: Aliases, document: str | None, name: str) -> str | None:
    """Return the end of a chain of aliases; None: it is circular."""
    passed = set[str]()
    while (meaning := _meaning(aliases, document, name)) != name:
        if meaning in passed:
            return None
        passed.add(meaning)
        name = meaning
    return name


def _in_force(proposals: Aliases, decided: Aliases) -> Aliases:
    """Return the decided aliases, and the proposals that contradict none, without chains.

    Circular aliases are left out, proposals before decisions.
    """
    aliases = decided | proposals
    resolved = {(document, name): _end(aliases, document, name) for document, name in aliases}
    circular = {scope for scope, name in resolved.items() if name is None}
    if decided and not circular.isdisjoint(proposals):
        return _in_force({scope: one for scope, one in proposals.items() if scope not in circular}, decided)
    return {scope: (name, aliases[scope][1]) for scope, name in resolved.items() if name is not None}


def _kept_apart(proposals: Aliases, decided: Aliases, apart: set[tuple[str, str]]) -> Aliases:
    """Return the aliases in force, without the proposals by which two names `apart` would be one, also over others."""
    pairs = apart | {(other, one) for one, other in apart}
    proposals = {scope: one for scope, one in proposals.items() if (scope[1], one[0]) not in pairs}
    while True:
        aliases = _in_force(proposals, decided)
        leading = {name for (_, name), (meaning, _) in aliases.items() if (name, meaning) in pairs}
        leading |= {max(pair) for pair in apart if _meaning(aliases, None, pair[0]) == _meaning(aliases, None, pair[1])}
        fewer = {scope: one for scope, one in proposals.items() if scope[1] not in leading}
        if len(fewer) == len(proposals):  # what is left follows from decisions
            return aliases
        proposals = fewer


def _split(aliases: Aliases, name: str, splits: Sequence[Decision], read_named: Named) -> Aliases:
    """Return the aliases that lead from the names that stand for `name` to its things, each in its documents."""
    leading = {alias for (_, alias), (meaning, _) in aliases.items() if meaning == name}
    named = read_named({name, *leading}).sort(pl.all())
    scopes = list(named.select("document_id", "key").iter_rows())
    is_meant = pl.Series([_meaning(aliases, *scope) == name for scope in scopes], dtype=pl.Boolean)
    things = _things(named.filter(is_meant), name, splits)
    leading_on: Aliases = {}
    for document, key in named.filter(is_meant).select("document_id", "key").iter_rows():
        thing = things.get(document, name)
        meaning = _meaning(aliases, document, thing)  # it may have been accepted as another
        if thing != name and meaning != key:
            leading_on[document, key] = (meaning, SPLIT)
    return leading_on


def _things(named: pl.DataFrame, name: str, splits: Sequence[Decision]) -> dict[str, str]:
    """Return what `name` is, by document; the first split by its key counts."""
    by_patterns = [one for one in splits if one.documents]
    if not by_patterns and splits[0].split_by == "type":
        types = (
            named.filter(~pl.col("type").str.to_uppercase().is_in(UNTYPED))
            .group_by("document_id", "type")
            .agg(pl.col("n").sum())
            .sort("document_id", pl.col("n").neg(), "type")
            .unique("document_id", keep="first", maintain_order=True)
        )
        return {
            document: f"{name} ({kind.lower()})" for document, kind in types.select("document_id", "type").iter_rows()
        }
    rows = named.select("document_id", "source", "title").iter_rows()
    return {document: _thing(name, source, title, by_patterns) for document, source, title in rows}


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
