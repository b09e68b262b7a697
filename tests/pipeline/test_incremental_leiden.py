"""Reclustering after a change: invariants for any change of any graph, and known answers on small graphs."""

import math
import random
from itertools import chain, combinations, pairwise
from typing import NamedTuple

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_assets.pipeline.clustering import (
    ClusterOptions,
    disconnected_communities,
)
from graphrag_assets.pipeline.incremental_leiden import (
    MODULARITY_LOSS,
    WEIGHT_TOLERANCE,
    Reclustered,
    recluster,
)
from tests.pipeline.test_clustering import cluster, groups, node

Pair = tuple[int, int]
SMALL = ClusterOptions(max_cluster_size=4)
NOTHING = pl.DataFrame(schema={"level": pl.Int64, "cluster": pl.String, "entity_id": pl.String})


class Graph(NamedTuple):
    """Nodes by number, and the weight of each undirected edge, smaller end first."""

    nodes: frozenset[int]
    edges: dict[Pair, float]

    @property
    def ids(self) -> pl.Series:
        return pl.Series("id", [node(number) for number in sorted(self.nodes)], dtype=pl.String)

    @property
    def relationships(self) -> pl.DataFrame:
        return pl.DataFrame(
            [(node(a), node(b), weight) for (a, b), weight in self.edges.items()],
            schema={"source_id": pl.String, "target_id": pl.String, "weight": pl.Float64},
            orient="row",
        )

    def changed(self, gone: set[int] = frozenset(), edges: dict[Pair, float] | None = None) -> "Graph":
        """Without the nodes `gone` and with `edges` replaced; weight 0 deletes an edge."""
        merged = {**self.edges, **(edges or {})}
        nodes = (self.nodes | set(chain.from_iterable(edges or {}))) - gone
        return Graph(nodes, {pair: w for pair, w in merged.items() if w > 0 and nodes.issuperset(pair)})


def graph_of(edges: dict[Pair, float], size: int = 0) -> Graph:
    return Graph(frozenset(range(size)) | set(chain.from_iterable(edges)), edges)


def clique(nodes: range) -> dict[Pair, float]:
    return dict.fromkeys(combinations(nodes, 2), 1.0)


def first(graph: Graph, options: ClusterOptions | None = None) -> Reclustered:
    return recluster(graph.ids, graph.relationships, NOTHING, graph.relationships.clear(), options)


def then(
    before: Reclustered,
    graph: Graph,
    options: ClusterOptions | None = None,
    tolerated_loss: float = MODULARITY_LOSS,
) -> Reclustered:
    return recluster(
        graph.ids, graph.relationships, before.members, before.edges, options, tolerated_loss=tolerated_loss
    )


def communities(members: pl.DataFrame) -> dict[tuple[int, frozenset[str]], str]:
    """Level and entities of each community, at the level where it arises, and its key."""
    born = members.filter(pl.col("level") == pl.col("born_level"))
    rows = born.group_by("level", "cluster").agg("entity_id").iter_rows()
    return {(level, frozenset(names)): cluster for level, cluster, names in rows}


def named(*numbers: int) -> frozenset[str]:
    return frozenset(map(node, numbers))


@st.composite
def graphs(draw: st.DrawFn, start: int = 0) -> Graph:
    """Any graph from none to dense, in blocks of blocks, so that there are communities on several levels."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    size, block = draw(st.integers(1, 70)), draw(st.integers(1, 12))
    inside, near, far = (draw(st.sampled_from(chances)) for chances in ((0.3, 0.6, 1.0), (0.0, 0.1, 0.3), (0.0, 0.03)))
    edges = {
        (a, b): rng.choice([1.0, 1.0, 2.0, 5.0])
        for a, b in combinations(range(start, start + size), 2)
        if rng.random()
        < (inside if a // block == b // block else near if a // (4 * block) == b // (4 * block) else far)
    }
    return Graph(frozenset(range(start, start + size)), edges)


@st.composite
def changes_of(draw: st.DrawFn, graph: Graph) -> Graph:
    """`graph` with some edges deleted, added or reweighted, and some nodes deleted and added."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    start = min(graph.nodes)
    edges = {pair: rng.choice([0.0, 0.0, 1.05, 3.0]) for pair in sorted(graph.edges) if rng.random() < 0.05}
    for _ in range(draw(st.integers(0, 6))):
        a, b = sorted(rng.sample(range(start, start + 75), 2))
        edges[a, b] = 1.0
    gone = set(rng.sample(sorted(graph.nodes), min(draw(st.integers(0, 3)), len(graph.nodes) - 1)))
    return graph.changed(gone, edges)


@st.composite
def histories(draw: st.DrawFn) -> list[Graph]:
    """A graph, and its state after each of one to three changes."""
    found = [draw(graphs())]
    for _ in range(draw(st.integers(1, 3))):
        found.append(draw(changes_of(found[-1])))
    return found


def replay(
    history: list[Graph], options: ClusterOptions = SMALL, tolerated_loss: float = math.inf
) -> list[Reclustered]:
    """The results for each graph in turn; only the first is fresh unless a loss of modularity is not tolerated."""
    results = [first(history[0], options)]
    for graph in history[1:]:
        results.append(then(results[-1], graph, options, tolerated_loss))
    return results


def check_partition(members: pl.DataFrame, graph: Graph, largest: int) -> None:
    """Complete per level, nested, connected; split where too large, and only there."""
    assert members.select("level", "entity_id").is_duplicated().sum() == 0
    levels = range(members["level"].max() + 1)
    assert members.height == len(levels) * len(graph.nodes)
    assert set(members["entity_id"]) == set(graph.ids)
    by_key = {key: (level, names) for (level, names), key in communities(members).items()}
    assert len(by_key) == members["cluster"].n_unique()
    whole = members.select(pl.col("cluster").alias("community"), "entity_id")
    assert disconnected_communities(whole, graph.relationships).is_empty()
    born = members.filter(pl.col("level") == pl.col("born_level"))
    for key, level, parent in born.select("cluster", "level", "parent").unique().iter_rows():
        assert (parent is None) == (level == 0)
        if parent is not None:
            parent_level, parent_names = by_key[parent]
            assert (parent_level, len(parent_names) > largest) == (level - 1, True)
            assert by_key[key][1] < parent_names
    parents = set(born["parent"].drop_nulls())
    for key, (level, _) in by_key.items():
        seen = members.filter(pl.col("cluster") == key)["level"].unique().sort().to_list()
        assert seen == ([level] if key in parents else list(range(level, len(levels))))
    lone = {name for name in groups(members) if len(name) == 1}
    linked = {node(end) for pair in graph.edges for end in pair}
    assert not linked & set(chain.from_iterable(lone))


@given(histories(), st.integers(2, 10))
def test_communities_are_a_connected_nested_partition_after_any_changes(history: list[Graph], largest: int) -> None:
    for graph, result in zip(history, replay(history, ClusterOptions(max_cluster_size=largest)), strict=True):
        check_partition(result.members, graph, largest)


@given(histories(), st.randoms(use_true_random=False))
def test_order_of_rows_and_names_of_communities_do_not_matter(history: list[Graph], rng: random.Random) -> None:
    before = replay(history[:-1])[-1]
    graph = history[-1]
    seed = rng.randrange(99)
    number = before.members["cluster"].unique().shuffle(seed=seed)
    renamed = before.members.select(
        "level", pl.col("cluster").replace_strict(number, pl.Series(range(len(number)))), "entity_id"
    )
    swapped = graph.relationships.rename({"source_id": "target_id", "target_id": "source_id"})
    shuffled = recluster(
        graph.ids.shuffle(seed=seed),
        swapped.sample(fraction=1, shuffle=True, seed=seed),
        renamed.sample(fraction=1, shuffle=True, seed=seed),
        before.edges.sample(fraction=1, shuffle=True, seed=seed),
        SMALL,
        tolerated_loss=math.inf,
    )
    expected = then(before, graph, SMALL, math.inf)
    assert_frame_equal(shuffled.members, expected.members)
    assert_frame_equal(shuffled.edges, expected.edges)
    assert shuffled[2:] == expected[2:]


@given(st.data())
def test_communities_that_no_change_can_reach_stay_as_they_are(data: st.DataObject) -> None:
    left, right = data.draw(graphs()), data.draw(graphs(start=100))
    before = first(Graph(left.nodes | right.nodes, left.edges | right.edges), SMALL)
    left = data.draw(changes_of(left))
    after = then(before, Graph(left.nodes | right.nodes, left.edges | right.edges), SMALL, math.inf)
    of_right = set(right.ids)
    kept, found = (
        {place for place in communities(result.members) if place[1] <= of_right} for result in (before, after)
    )
    assert kept == found or after.is_fresh


def test_a_fresh_run_takes_its_place_when_modularity_is_below_it() -> None:
    graph = graph_of(clique(range(5)) | clique(range(5, 10)) | {(0, 5): 1.0})
    everything = pl.DataFrame(
        {"level": 0, "cluster": "a", "entity_id": graph.ids}, schema_overrides={"level": pl.Int64}
    )
    after = recluster(graph.ids, graph.relationships, everything, graph.relationships)
    assert after.is_fresh
    assert groups(after.members) == {named(*range(5)), named(*range(5, 10))}
    assert after.modularity == pytest.approx(20 / 21 - 2 * (21 / 42) ** 2)


def test_new_entity_joins_its_neighbors_and_nothing_else_moves() -> None:
    graph = graph_of(clique(range(5)) | clique(range(5, 10)) | {(0, 5): 1.0})
    found = then(first(graph), graph.changed(edges={(6, 10): 1.0, (7, 10): 1.0}))
    assert not found.is_fresh
    assert groups(found.members) == {named(*range(5)), named(*range(5, 11))}
    lonely = graph.changed()._replace(nodes=graph.nodes | {77})
    assert groups(then(first(graph), lonely).members) == {named(*range(5)), named(*range(5, 10)), named(77)}


def test_a_changed_weight_moves_an_entity() -> None:
    graph = graph_of(clique(range(5)) | clique(range(5, 10)) | {(0, 10): 1.0, (1, 10): 1.0, (5, 10): 0.5})
    assert groups(first(graph).members) == {named(*range(5), 10), named(*range(5, 10))}
    found = then(first(graph), graph.changed(edges={(5, 10): 3.0}), tolerated_loss=math.inf)
    assert groups(found.members) == {named(*range(5)), named(*range(5, 11))}


def test_deleted_entities_leave_their_communities() -> None:
    graph = graph_of(clique(range(6)) | clique(range(6, 12)) | {(0, 6): 1.0})
    found = then(first(graph), graph.changed(gone={0, 7, 8}))
    assert groups(found.members) == {named(*range(1, 6)), named(6, 9, 10, 11)}
    nothing = then(first(graph), graph.changed(gone=set(graph.nodes)))
    assert nothing.members.is_empty()
    assert nothing.edges.is_empty()
    assert groups(then(nothing, graph).members) == {named(*range(6)), named(*range(6, 12))}


def test_small_changes_of_a_weight_do_not_count_until_they_add_up() -> None:
    graph = graph_of(clique(range(4)) | clique(range(4, 8)) | {(0, 4): 1.0})
    step = 1 + 0.6 * WEIGHT_TOLERANCE
    first_time, second_time = graph.changed(edges={(0, 4): step}), graph.changed(edges={(0, 4): step**2})
    before = first(graph)
    once = then(before, first_time)
    assert_frame_equal(once.edges, before.edges)
    assert_frame_equal(once.members, before.members)
    twice = then(once, second_time)
    assert twice.edges.filter(source_id=node(0), target_id=node(4))["weight"].to_list() == [step**2]


def test_after_a_small_change_of_a_large_graph_nearly_all_communities_are_the_same() -> None:
    rng = random.Random(3)
    pairs = [(a, b) for a, b in combinations(range(1200), 2) if rng.random() < (0.15 if a // 30 == b // 30 else 0.004)]
    graph = graph_of(dict.fromkeys(pairs, 1.0), size=1200)
    removed = dict.fromkeys(rng.sample(pairs, 4), 0.0)
    added = dict.fromkeys(((rng.randrange(600), rng.randrange(600, 1200)) for _ in range(4)), 1.0)
    before, after = first(graph), graph.changed(edges=removed | added)
    found = then(before, after)
    assert not found.is_fresh
    places = communities(before.members).keys()
    kept, kept_from_scratch = (
        len(places & communities(members).keys()) / len(places)
        for members in (found.members, cluster(after.ids, after.relationships))
    )
    assert kept > 0.95 > 0.8 > kept_from_scratch
    assert found.modularity > 0.999 * found.fresh_modularity


@example({(0, 1): 1.0, (1, 2): 1.0, (2, 3): 1.0}, [[0] * 4 + [None] * 8, [0, 1, 0, 1] + [None] * 8])
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda pair: pair[0] < pair[1]),
        st.sampled_from([1.0, 2.0, 3.0]),
        max_size=25,
    ),
    st.lists(st.lists(st.none() | st.integers(0, 4), min_size=12, max_size=12), min_size=1, max_size=3),
)
def test_any_partition_of_others_becomes_nested_and_connected_and_then_stays(edges, levels):
    """An imported partition may lack entities at any level, and its communities need not be connected or nested."""
    graph = graph_of(edges, 12)
    rows = [
        (level, f"{level}-{label}", node(number))
        for level, labels in enumerate(levels)
        for number, label in enumerate(labels)
        if label is not None
    ]
    given = pl.DataFrame(rows, NOTHING.schema, orient="row")
    keep = {"tolerated_loss": math.inf, "keep_divisions": True}
    found = recluster(graph.ids, graph.relationships, given, graph.relationships, SMALL, **keep)
    per_level = [
        dict(of.select("entity_id", "cluster").iter_rows())
        for _, of in found.members.group_by("level", maintain_order=True)
    ]
    for above, below in pairwise(per_level):
        assert above.keys() == below.keys()
        assert len({(below[one], above[one]) for one in below}) == len(set(below.values()))
    assert disconnected_communities(found.members.rename({"cluster": "community"}), graph.relationships).is_empty()
    again = recluster(graph.ids, graph.relationships, found.members, found.edges, SMALL, **keep)
    assert_frame_equal(again.members, found.members)
