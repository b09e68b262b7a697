"""Decides on names: what may be decided, and what a decision replaces."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Literal

from graphrag_assets.assets.index import Index
from graphrag_assets.errors import InputError
from graphrag_assets.pipeline.alias_decisions import are_apart, matches
from graphrag_assets.store.decisions import Decision, Key, changing_decisions, read_decisions
from graphrag_assets.text.words import title_key

_NAMES = """
SELECT title_key FROM entities UNION SELECT title_key FROM entity_mentions
UNION SELECT source_key FROM relationship_mentions UNION SELECT target_key FROM relationship_mentions
"""


def accept(index: Index, name: str, other: str) -> Decision:
    """Decide that `name` stands for `other`.

    Raises:
        InputError: a name is mentioned nowhere, or another decision contradicts.
    """
    key, other_key = _keys(index, name, other)
    return _decide(index, Decision("accept", key, other_key))


def reject(index: Index, name: str, other: str) -> Decision:
    """Decide that two names are two things. Raises as `accept`."""
    key, other_key = _keys(index, name, other)
    return _decide(index, Decision("reject", key, other_key))


def split(
    index: Index, name: str, by: Literal["type", "documents"], patterns: Sequence[str] = (), other: str = ""
) -> Decision:
    """Decide that `name` stands for a thing per type, or per document, or is `other` in documents of these sources.

    Raises as `accept`.
    """
    (key,) = _keys(index, name)
    if bool(patterns) != bool(other) or (other and by == "type"):
        raise InputError("--documents and --as go together, with --by documents: where the name is what other thing.")
    if other and title_key(other) in ("", key):
        raise InputError(f"{other!r} is not another name. Say what it is in these documents: '{name} (planet)'.")
    sources = index.working.read("SELECT DISTINCT source FROM documents")["source"]
    for pattern in patterns:
        if not any(matches(source, pattern) for source in sources):
            raise InputError(f"No document has a source that matches {pattern!r}, such as {sources.first()!r} does.")
    return _decide(index, Decision("split", key, title_key(other), by, tuple(patterns)))


def undo(index: Index, *names: str) -> list[Decision]:
    """Take back the decisions on a pair, or on one name, or for none the newest one; returns them.

    Raises:
        InputError: there is none.
    """
    keys = [title_key(name) for name in names]
    if not all(keys):
        raise InputError("A name is empty. `graphrag-assets resolve undo` without one takes back the newest decision.")
    with changing_decisions(index.settings.index_folder) as decisions:
        if not keys:
            gone = sorted(decisions.values(), key=lambda one: one.decided_at)[-1:]
        elif len(keys) == 1:
            gone = [one for one in decisions.values() if keys[0] in (one.name, one.other)]
        else:
            gone = [one for one in decisions.values() if {one.name, one.other} == set(keys)]
        if not gone:
            raise InputError("There is no such decision. `graphrag-assets resolve list --decided` shows all.")
        for one in gone:
            del decisions[one.key]
    return gone


def record(index: Index, decisions: Sequence[Decision]) -> list[Decision]:
    """Record decisions of a judge but those that contradict earlier ones; returns the recorded ones.

    Of a name that stands for a third one already, the other name stands for that one, too.
    """
    recorded = []
    with changing_decisions(index.settings.index_folder) as earlier:
        for one in decisions:
            stands_for = _accepted(earlier)
            if one.kind == "accept" and one.key not in earlier and one.name in stands_for:
                one = replace(one, name=_chain(one.other, stands_for)[-1], other=stands_for[one.name])
            if one.key not in earlier and _contradiction(one, earlier) is None:
                earlier[one.key] = _dated(one)
                recorded.append(earlier[one.key])
    return recorded


def _decide(index: Index, decision: Decision) -> Decision:
    with changing_decisions(index.settings.index_folder) as decisions:
        others = {key: one for key, one in decisions.items() if key != decision.key}
        if wrong := _contradiction(decision, others):
            raise InputError(wrong)
        decisions[decision.key] = _dated(decision)
    return decision


def _dated(decision: Decision) -> Decision:
    reason = " ".join(decision.reason.split())
    return replace(decision, reason=reason, decided_at=datetime.now(UTC).isoformat(timespec="microseconds"))


def _contradiction(decision: Decision, decisions: Mapping[Key, Decision]) -> str | None:
    """Why a decision cannot stand beside the others; None if it can."""
    name, other, others = decision.name, decision.other, decisions.values()
    stands_for = _accepted(decisions)
    splits = [one for one in others if one.kind == "split"]
    match decision.kind:
        case "accept":
            if name in stands_for:
                now = stands_for[name]
                return f"{name!r} stands for {now!r} already. Undo that first, or accept {now!r}."
            if name in _chain(other, stands_for):
                return f"{other!r} stands for {name!r} already."
            split = {one.name for one in splits}
            things = {(one.other, one.name) for one in splits}
            if name in split or (name, other) in things or are_apart(name, other, split):
                return f"{name if name in split else other!r} is split. Undo that first."
            then = stands_for | {name: other}
            for one in others:
                if one.kind == "reject" and _chain(one.name, then)[-1] == _chain(one.other, then)[-1]:
                    return f"{one.name!r} and {one.other!r} would be one thing, which is rejected. Undo that first."
        case "reject":
            if _chain(name, stands_for)[-1] == _chain(other, stands_for)[-1]:
                return f"{name!r} and {other!r} are one thing by decisions on other pairs. Undo one of these first."
        case "split":
            if name in stands_for or stands_for.get(other) == name:
                which = name if name in stands_for else other
                return f"{which!r} stands for {stands_for[which]!r}. Undo that first."
            same = [one for one in splits if one.name == name]
            if any(one.split_by != decision.split_by or not (one.documents and decision.documents) for one in same):
                return f"{name!r} is split in another way already. Undo that first."
    return None


def _accepted(decisions: Mapping[Key, Decision]) -> dict[str, str]:
    """Return what each name stands for by the decisions."""
    return {one.name: one.other for one in decisions.values() if one.kind == "accept"}


def _chain(name: str, stands_for: Mapping[str, str]) -> list[str]:
    """Return the names that a name stands for, from itself on."""
    chain = [name]
    while (following := stands_for.get(chain[-1])) and following not in chain:
        chain.append(following)
    return chain


def _keys(index: Index, *names: str) -> list[str]:
    """Return the normalized names, all mentioned or decided on, no two the same."""
    keys = [title_key(name) for name in names]
    if len(set(keys)) < len(keys):
        raise InputError("Both names are the same.")
    names_here = set(index.working.read(_NAMES)["title_key"]) if index.working.path.exists() else set[str]()
    names_here |= {key for one in read_decisions(index.settings.index_folder) for key in (one.name, one.other)}
    for name, key in zip(names, keys, strict=True):
        if key not in names_here or not key:
            near = get_close_matches(key, sorted(names_here), 3)
            hint = f" Similar: {', '.join(near)}." if near else " Run `graphrag-assets index` first."
            raise InputError(f"Nothing in the index is called {name!r}.{hint}")
    return keys
