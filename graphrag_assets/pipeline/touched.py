"""The part of the graph that a change touches: which names are merged again, and from which mentions.

An entity depends on the mentions of its name, a relationship on those of its pair and on both ends: their titles, how
often they are named, and whether they are rare concepts. So what is merged again are the names of changed mentions and
their relationships. Of the neighbors, title and number of sentences are read where they are stored, and only their
degrees can differ. The combined degrees of all others of their relationships are updated in place where they are
stored: a hub has thousands.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

import polars as pl

from graphrag_assets.contracts.records import UNKNOWN
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.merging import Graph
from graphrag_assets.pipeline.resolution import apply_aliases

_ENDS = ["source_key", "target_key"]
_ALIAS = ["document_id", "alias_key", "title_key", "accepted"]

Read = Callable[[pl.Series], pl.DataFrame]
"""Mentions that have one of these keys, not yet replaced by aliases."""


class Part(NamedTuple):
    """`keys`: of the entities to merge again. What `merge` makes these and their relationships from.

    mentions: theirs, and without descriptions those of neighbors that are not `known`. pairs: of which an end is one of
    these. known: neighbors that are stored: title_key, title, n_sentences.
    """

    keys: set[str]
    mentions: pl.DataFrame
    pairs: pl.DataFrame
    known: pl.DataFrame

    @property
    def ids(self) -> list[str]:
        """The ids of the entities to merge again, whether or not they exist."""
        return _ids(self.keys)


def touched_keys(changed: Collection[str], before: pl.DataFrame, aliases: pl.DataFrame) -> set[str]:
    """The names, after aliases, of mentions with a `changed` key or another alias than `before`."""
    moved = [one.join(other, on=_ALIAS, how="anti", nulls_equal=True) for one, other in _both_ways(before, aliases)]
    raw = {*changed, *(key for rows in moved for key in rows["alias_key"])}
    stand_for = pl.concat([before.select(_ALIAS), aliases.select(_ALIAS)]).filter(pl.col("alias_key").is_in(list(raw)))
    return (raw | set(stand_for["title_key"])) - {""}


def _both_ways(before: pl.DataFrame, after: pl.DataFrame) -> list[tuple[pl.DataFrame, pl.DataFrame]]:
    return [(before, after), (after, before)]


def part_of(
    keys: set[str],
    aliases: pl.DataFrame,
    read_mentions: Read,
    read_undescribed: Read,
    read_pairs: Read,
    read_known: Read,
) -> Part:
    """What to merge for the entities `keys`.

    An end that no mention declares exists by its relationships alone. It is merged again with its neighbors, as one of
    these may have become a rare concept, and all its relationships are read wherever it is a neighbor.

    Args:
        read_undescribed: reads mentions with empty descriptions.
        read_known: reads title_key, title, type and n_sentences of stored entities by their ids. Those that are not
            among `keys` must be as merging everything would make them, but for their degree.
    """

    def mentions_of(wanted: set[str], read: Read = read_undescribed) -> pl.DataFrame:
        return _resolved_in(wanted, read(_raw(wanted, aliases)), aliases, ["title_key"])

    def pairs_of(wanted: set[str]) -> pl.DataFrame:
        return _resolved_in(wanted, read_pairs(_raw(wanted, aliases)), aliases, _ENDS)

    def neighbors(pairs: pl.DataFrame) -> tuple[set[str], pl.DataFrame, pl.DataFrame]:
        """The names of the other ends: those that nothing declares, the known, and mentions of the rest."""
        names = _names(pairs, aliases, _ENDS) - keys
        known = read_known(pl.Series("id", _ids(names), dtype=pl.String)).filter(pl.col("type") != UNKNOWN)
        unknown = names - set(known["title_key"])
        mentions = mentions_of(unknown)
        return unknown - _names(mentions, aliases, ["title_key"]), known.drop("type"), mentions

    pairs = pairs_of(keys)
    undeclared, known, of_neighbors = neighbors(pairs)
    if undeclared:
        keys = keys | undeclared
        further, _, _ = neighbors(pairs_of(keys))
        pairs = pairs_of(keys | further)
        _, known, of_neighbors = neighbors(pairs)
    return Part(keys, pl.concat([mentions_of(keys, read_mentions), of_neighbors]), pairs, known)


def _ids(keys: Collection[str]) -> list[str]:
    """The ids of entities, whether or not they exist, sorted."""
    return sorted(stable_id("entity", key) for key in keys)


def _raw(keys: set[str], aliases: pl.DataFrame) -> pl.Series:
    """The keys of mentions that may stand for `keys`."""
    leading = aliases.filter(pl.col("accepted") & pl.col("title_key").is_in(list(keys)))["alias_key"]
    return pl.Series("key", sorted(keys | set(leading)), dtype=pl.String)


def _resolved_in(keys: set[str], rows: pl.DataFrame, aliases: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """The rows, as stored, of which a column stands for one of `keys`."""
    resolved = apply_aliases(rows, aliases, columns)
    is_in = resolved.select(pl.any_horizontal(pl.col(columns).is_in(list(keys)))).to_series()
    return rows.filter(is_in)


def _names(rows: pl.DataFrame, aliases: pl.DataFrame, columns: list[str]) -> set[str]:
    resolved = apply_aliases(rows, aliases, columns)
    return {name for column in columns for name in resolved[column].unique()} - {""}


class Replacement(NamedTuple):
    """A part of the graph that replaces the rows of some ids.

    moved: entities that stay and whose degree differs, so that the combined degree of any of their relationships may.
    """

    graph: Graph
    entity_ids: pl.Series
    relationship_ids: pl.Series
    moved: pl.Series | None = None


class Stored(NamedTuple):
    """Reads stored rows by ids of entities. Few are needed whole, and whole rows take the longest to read.

    entities: their rows. degrees: id, degree. ends: id, source_id, target_id of the relationships with such an end.
    """

    entities: Read
    degrees: Read
    ends: Read


def replacement(part: Part, merged: Graph, stored: Stored) -> Replacement:
    """The rows to write: those of the part, and neighbors whose degree has changed.

    `merged` is the graph of the part's mentions.
    """
    ids = pl.Series("id", part.ids, dtype=pl.String)
    touches = pl.any_horizontal(pl.col("source_id", "target_id").is_in(ids.implode()))
    now, before = merged.relationships.filter(touches), stored.ends(ids)
    difference = (
        pl.concat([_ends(now, 1), _ends(before, -1)])
        .group_by("id")
        .agg(pl.col("difference").sum())
        .join(ids.to_frame(), on="id", how="anti")
    )
    neighbors = _moved(stored.degrees(difference["id"]), difference)
    entities = merged.entities.filter(pl.col("id").is_in(ids.implode()))
    degree = pl.concat([entities.select("id", "degree"), neighbors])
    now = _with_combined_degree(now, degree)
    difference = difference.filter(pl.col("difference") != 0)
    changed_neighbors = _moved(stored.entities(difference["id"]), difference)
    degree_before = stored.degrees(ids).rename({"degree": "before"})
    moved = entities.join(degree_before, on="id").filter(pl.col("degree") != pl.col("before"))["id"]
    entities = pl.concat([entities, changed_neighbors.select(entities.columns)])
    return Replacement(
        Graph(entities.sort("id"), now.sort("id")),
        pl.concat([ids, difference["id"]]),
        pl.concat([now["id"], before["id"]]).unique(),
        pl.concat([moved, difference["id"]]),
    )


def _moved(entities: pl.DataFrame, difference: pl.DataFrame) -> pl.DataFrame:
    """`entities` with their degrees changed by the `difference` (id, difference)."""
    joined = entities.join(difference, on="id", how="left", maintain_order="left")
    return joined.with_columns(pl.col("degree") + pl.col("difference")).drop("difference")


def replacement_in_range(part: Part, merged: Graph, end: str | None, stored: Stored) -> Replacement:
    """The rows to write when all names are merged range by range, in order: those of the part.

    A relationship belongs to the range of its later name: then the degrees of both ends are known.

    Args:
        end: the first name of the next range; None: there is none.
    """
    named = pl.concat([merged.entities["title_key"], part.pairs["source_key"], part.pairs["target_key"]]).unique()
    later = [stable_id("entity", key) for key in named if end is not None and key >= end and key not in part.keys]
    ids = pl.Series("id", part.ids, dtype=pl.String)
    ends = pl.col("source_id", "target_id")
    belongs = pl.any_horizontal(ends.is_in(ids.implode())) & ~pl.any_horizontal(ends.is_in(later))
    now, before = merged.relationships.filter(belongs), stored.ends(ids).filter(belongs)
    entities = merged.entities.filter(pl.col("id").is_in(ids.implode()))
    others = pl.concat([now["source_id"], now["target_id"]]).rename("id").unique()
    others = others.filter(~others.is_in(ids.implode()))
    degree = pl.concat([entities.select("id", "degree"), stored.degrees(others)])
    now = _with_combined_degree(now, degree)
    graph = Graph(entities.sort("id"), now.sort("id"))
    return Replacement(graph, ids, pl.concat([now["id"], before["id"]]).unique())


def _with_combined_degree(relationships: pl.DataFrame, degree: pl.DataFrame) -> pl.DataFrame:
    """The relationships with the combined degree of their ends; `degree`: id, degree of all ends."""
    of_source = degree.select(source_id="id", of_source="degree")
    of_target = degree.select(target_id="id", of_target="degree")
    return (
        relationships.join(of_source, on="source_id", how="left", maintain_order="left")
        .join(of_target, on="target_id", how="left", maintain_order="left")
        .with_columns(combined_degree=pl.col("of_source") + pl.col("of_target"))
        .select(relationships.columns)
    )


def _ends(relationships: pl.DataFrame, count: int) -> pl.DataFrame:
    ends = pl.concat([relationships["source_id"], relationships["target_id"]]).rename("id")
    return pl.DataFrame({"id": ends}).with_columns(difference=pl.lit(count, pl.Int64))
