"""Communities: invariants on any graph, known answers on graphs with a planted structure."""

import random
from itertools import combinations

import igraph
import leidenalg
import polars as pl

from graphrag_assets.pipeline.clustering import MEMBERS_SCHEMA, ClusterOptions
from graphrag_assets.pipeline.incremental_leiden import EDGES_SCHEMA, recluster

Edge = tuple[int, int, float]


def cluster(entity_ids: pl.Series, relationships: pl.DataFrame, options: ClusterOptions | None = None) -> pl.DataFrame:
    """The members of the communities of a graph that was never clustered before."""
    nothing = pl.DataFrame(schema=MEMBERS_SCHEMA), pl.DataFrame(schema=EDGES_SCHEMA)
    return recluster(entity_ids, relationships, *nothing, options).members


def node(number: int) -> str:
    return f"e{number:04d}"


def ids_of(size: int) -> pl.Series:
    return pl.Series("id", [node(i) for i in range(size)], dtype=pl.String)


def relationships_of(edges: list[Edge]) -> pl.DataFrame:
    return pl.DataFrame(
        [(f"r{i:05d}", node(a), node(b), weight) for i, (a, b, weight) in enumerate(edges)],
        schema={"id": pl.String, "source_id": pl.String, "target_id": pl.String, "weight": pl.Float64},
        orient="row",
    )


def groups(members: pl.DataFrame, level: int = 0) -> set[frozenset[str]]:
    rows = members.filter(pl.col("level") == level).group_by("cluster").agg("entity_id")
    return {frozenset(names) for names in rows["entity_id"].to_list()}


def deepest(members: pl.DataFrame) -> int:
    return max(members["level"].to_list())


def clique(nodes: range) -> list[Edge]:
    return [(a, b, 1.0) for a, b in combinations(nodes, 2)]


def nested_planted_graph(seed: int, blocks: int = 10, teams: int = 5, size: int = 8) -> tuple[int, list[Edge]]:
    """`blocks` of `teams` of `size` nodes: dense within a team, some edges in a block, few between blocks."""
    rng = random.Random(seed)
    total = blocks * teams * size
    edges: list[Edge] = []
    for a, b in combinations(range(total), 2):
        together = a // size == b // size
        same_block = a // (size * teams) == b // (size * teams)
        if rng.random() < (0.8 if together else 0.06 if same_block else 0.002):
            edges.append((a, b, float(rng.randint(1, 4))))
    return total, edges


def test_cliques_joined_by_single_edges_are_the_communities() -> None:
    edges = clique(range(0, 6)) + clique(range(6, 12)) + clique(range(12, 18))
    members = cluster(ids_of(18), relationships_of([*edges, (0, 6, 1.0), (7, 12, 1.0)]))
    assert groups(members, 0) == {frozenset(map(node, range(i, i + 6))) for i in (0, 6, 12)}
    assert deepest(members) == 0


def star(leaves: int) -> list[Edge]:
    return [(0, leaf, 1.0) for leaf in range(1, leaves + 1)]


def test_pairs_are_not_peeled_off_a_hub_level_by_level() -> None:
    # A weak tie between two leaves is a part of modularity above 0, by hand: 27 + 0.1 of 29.1 weight inside parts,
    # 2.2 of 58.2 ends in the pair: 27.1 / 29.1 - (2.2**2 + 56**2) / 58.2**2 = 0.004. It is 2 of 30 entities.
    members = cluster(ids_of(30), relationships_of([*star(29), (1, 2, 0.1)]))
    assert deepest(members) == 0
    pairs = [(leaf, leaf + 1, 0.02 * leaf) for leaf in range(1, 80, 2)]
    members = cluster(ids_of(366), relationships_of([*star(365), *pairs]))
    sizes = {
        level: members.filter(pl.col("level") == level)["cluster"].value_counts()["count"].max()
        for level in range(deepest(members) + 1)
    }
    assert all(sizes[level + 1] <= 0.9 * sizes[level] for level in range(deepest(members)))


def test_clique_is_cut_to_the_maximum() -> None:
    members = cluster(ids_of(60), relationships_of(clique(range(60))))
    assert groups(members, 0) == {frozenset(map(node, range(60)))}
    leaves = groups(members, deepest(members))
    assert deepest(members) == 1
    assert all(1 < len(names) <= 10 for names in leaves)


def test_planted_teams_come_out_and_no_leaf_is_too_large() -> None:
    size, edges = nested_planted_graph(seed=5)
    members = cluster(ids_of(size), relationships_of(edges))
    leaves = groups(members, deepest(members))
    assert max(map(len, leaves)) <= 10
    teams = {frozenset(map(node, range(i, i + 8))) for i in range(0, size, 8)}
    assert len(teams & leaves) > 0.8 * len(teams)


def test_modularity_is_that_of_the_reference_implementation() -> None:
    size, edges = nested_planted_graph(seed=11)
    graph = igraph.Graph(n=size, edges=[(a, b) for a, b, _ in edges])
    weights = [w for *_, w in edges]
    reference = leidenalg.find_partition(
        graph, leidenalg.ModularityVertexPartition, weights=weights, n_iterations=-1, seed=1
    )
    members = cluster(ids_of(size), relationships_of(edges)).filter(pl.col("level") == 0)
    ours = members["cluster"].rank("dense").to_numpy().astype(int) - 1
    assert graph.modularity(ours.tolist(), weights=weights) >= 0.99 * reference.modularity
