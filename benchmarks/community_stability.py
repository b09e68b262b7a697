"""How many communities outlive a change of the graph: dynamic frontier against a fresh run.

    python benchmarks/community_stability.py                                     # 20,000 nodes, half a minute
    python benchmarks/community_stability.py --nodes 100000 --edges 373000 --share 0.0001 --share 0.01

The graph has planted communities of power-law sizes and power-law degrees; a fifth of the edges leads anywhere. A
change takes the given share of all edges: a quarter of them vanishes, a quarter is new, a quarter is rewired (one end
elsewhere), a quarter gets another weight; new edges keep the share that stays within planted communities. All other
weights drift by up to 1 %, as a statistic over the corpus makes them do.

Per level of the hierarchy: `before` communities that arise there before the change; the share of them that are there
afterwards with the same members; the share whose id lives on; and, of those without a member at which an edge
changed, the share with the same members. "Explained" are communities that are the same or have such a member.
Seconds are those of a processor, for all levels; the frontier's include the fresh level 0 it is compared with.
Modularity is that of level 0 and, after the comma, of the deepest level.
"""

import argparse
import time
from typing import NamedTuple

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from graphrag_assets.pipeline.clustering import edge_arrays, modularity
from graphrag_assets.pipeline.community_identity import match_communities
from graphrag_assets.pipeline.incremental_leiden import recluster

INSIDE = 0.8
KINDS = ("same", "id kept", "same if\nuntouched")


class Planted(NamedTuple):
    """`community` of each node, and its `pull`, to which its number of edges is proportional."""

    community: np.ndarray
    pull: np.ndarray


class Edges(NamedTuple):
    """`ends` (m, 2), smaller first, distinct; `weights` (m)."""

    ends: np.ndarray
    weights: np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--edges", type=int, default=75_000)
    parser.add_argument("--share", type=float, action="append", help="share of edges that change; may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    planted = plant(rng, options.nodes)
    before = some_edges(rng, planted, options.edges)
    ids = pl.Series("id", [f"e{number:07}" for number in range(options.nodes)])
    first = recluster(ids, frame(ids, before), pl.DataFrame(), pl.DataFrame())
    console = Console(width=120)
    console.print(
        f"{options.nodes:,} nodes, {len(before.ends):,} edges, {first.members['cluster'].n_unique():,} communities"
    )
    for share in options.share or [0.001, 0.01, 0.05]:
        after = changed(rng, planted, before, share)
        relationships = frame(ids, after)
        touched = ids.gather(touched_nodes(before, after))
        started = time.process_time()
        found = recluster(ids, relationships, first.members, first.edges)
        middle = time.process_time()
        again = recluster(ids, relationships, first.members, first.edges, fresh=True)
        seconds = middle - started, time.process_time() - middle
        rows = compare(first.members, found.members, again.members, touched)
        reached = [f"{found.modularity:.4f}, {deepest(ids, found.members, relationships):.4f}"]
        reached += [f"{again.modularity:.4f}, {deepest(ids, again.members, relationships):.4f}"]
        console.print(f"\n{share:.2%} of edges, {len(touched):,} nodes touched, {found.n_free:,} free to move")
        for name, *values in zip(("frontier", "fresh"), reached, seconds, explained(rows), strict=True):
            console.print("{}: modularity {}; {:.1f} s; explained: {:.1%}".format(name, *values))
        console.print(shown(rows))


def plant(rng: np.random.Generator, nodes: int) -> Planted:
    """Communities of 10 to 400 nodes with sizes of exponent 2, pulls of exponent 2.5."""
    sizes: list[int] = []
    while sum(sizes) < nodes:
        sizes.append(int(min(400, 10 / (1 - rng.random()))))
    community = np.repeat(np.arange(len(sizes)), sizes)[:nodes]
    return Planted(community, np.minimum((1 - rng.random(nodes)) ** (-1 / 1.5), 300))


def some_edges(rng: np.random.Generator, planted: Planted, count: int) -> Edges:
    """`count` distinct edges by pull, INSIDE of them within communities, with geometric weights."""
    community, pull = planted
    order = np.argsort(community, kind="stable")  # nodes of a community are neighbors in the sums below
    sums = np.cumsum(pull[order])
    first = np.searchsorted(community[order], community)
    last = np.searchsorted(community[order], community, side="right") - 1
    floor = np.where(first > 0, sums[first - 1], 0.0)
    found = np.empty((0, 2), dtype=np.int64)
    while len(found) < count:
        a = order[np.searchsorted(sums, rng.random(count) * sums[-1])]
        inside = rng.random(count) < INSIDE
        low, high = np.where(inside, floor[a], 0.0), np.where(inside, sums[last[a]], sums[-1])
        b = order[np.searchsorted(sums, low + rng.random(count) * (high - low))]
        both = np.sort(np.column_stack([a, b])[a != b], axis=1)
        found = np.unique(np.concatenate([found, both]), axis=0)
    found = found[np.sort(rng.permutation(len(found))[:count])]
    return Edges(found, rng.geometric(0.5, count).astype(np.float64))


def changed(rng: np.random.Generator, planted: Planted, edges: Edges, share: float) -> Edges:
    """`edges` with a quarter of `share` each removed, added, rewired, reweighted; and all weights drifting."""
    quarter = max(1, round(len(edges.ends) * share / 4))
    gone, rewired, reweighted = np.split(rng.permutation(len(edges.ends))[: 3 * quarter], 3)
    weights = edges.weights.copy()
    weights[reweighted] *= rng.choice([0.25, 0.5, 2.0, 4.0], quarter)
    weights *= rng.uniform(0.99, 1.01, len(weights))
    added = some_edges(rng, planted, quarter)
    target = some_edges(rng, planted, quarter).ends  # as the new ends of rewired edges, one end each
    ends = edges.ends.copy()
    ends[rewired] = np.column_stack([ends[rewired, 0], target[:, 1]])
    kept = np.ones(len(ends), dtype=bool)
    kept[gone] = False
    ends = np.sort(np.concatenate([ends[kept], added.ends]), axis=1)
    weights = np.concatenate([weights[kept], added.weights])
    distinct, first = np.unique(ends, axis=0, return_index=True)
    proper = distinct[:, 0] != distinct[:, 1]
    return Edges(distinct[proper], weights[first][proper])


def touched_nodes(before: Edges, after: Edges) -> np.ndarray:
    """Ends of edges that are only in one of them, or whose weight differs by more than the drift."""
    known = {(a, b): weight for (a, b), weight in zip(before.ends.tolist(), before.weights.tolist(), strict=True)}
    ends = {(a, b): weight for (a, b), weight in zip(after.ends.tolist(), after.weights.tolist(), strict=True)}
    differing = [
        edge
        for edge in known.keys() | ends.keys()
        if abs(known.get(edge, 0) - ends.get(edge, 0)) > 0.02 * known.get(edge, 0)
    ]
    return np.unique(np.array(differing, dtype=np.int64))


def frame(ids: pl.Series, edges: Edges) -> pl.DataFrame:
    return pl.DataFrame(
        {"source_id": ids.gather(edges.ends[:, 0]), "target_id": ids.gather(edges.ends[:, 1]), "weight": edges.weights}
    )


def compare(before: pl.DataFrame, frontier: pl.DataFrame, fresh: pl.DataFrame, touched: pl.Series) -> pl.DataFrame:
    """level and touched of each community before, and for both runs same0, kept0, same1, kept1."""
    old = communities(before).with_columns(
        touched=pl.col("entity_ids").list.eval(pl.element().is_in(touched.implode())).list.any()
    )
    outcomes = [old.select("level", "touched")]
    for number, members in enumerate((frontier, fresh)):
        new = communities(members)
        ids = match_communities(old.select("id", "level", "entity_ids"), new.rename({"id": "key"})).ids["id"]
        same = pl.col("id").is_in(new["id"].implode()).alias(f"same{number}")
        outcomes.append(old.select(same, pl.col("id").is_in(ids.implode()).alias(f"kept{number}")))
    return pl.concat(outcomes, how="horizontal")


def explained(rows: pl.DataFrame) -> list[float]:
    """Of both runs, the share of communities that are the same or have a change of their own."""
    return [(rows[f"same{number}"] | rows["touched"]).sum() / rows.height for number in (0, 1)]


def shown(rows: pl.DataFrame) -> Table:
    """One line per level and one for all."""
    table = Table(title_justify="left")
    for name in ("level", "before", *(f"{kind}\n{run}" for run in ("frontier", "fresh") for kind in KINDS)):
        table.add_column(name, justify="right")
    columns = [
        pl.len(),
        *(
            value
            for number in (0, 1)
            for value in (
                pl.col(f"same{number}").mean(),
                pl.col(f"kept{number}").mean(),
                pl.col(f"same{number}").filter(~pl.col("touched")).mean().alias(f"untouched{number}"),
            )
        ),
    ]
    by_level = rows.group_by(pl.col("level").cast(pl.String)).agg(columns).sort("level")
    for level, count, *values in pl.concat([by_level, rows.select(pl.lit("all").alias("level"), *columns)]).iter_rows():
        table.add_row(level, f"{count:,}", *("" if value is None else f"{value:.1%}" for value in values))
    return table


def deepest(ids: pl.Series, members: pl.DataFrame, relationships: pl.DataFrame) -> float:
    """Modularity of the deepest level."""
    labels = members.filter(pl.col("level") == pl.col("level").max()).sort("entity_id")["cluster"].rank("dense")
    return modularity(labels.to_numpy().astype(np.int64) - 1, *edge_arrays(ids, relationships))


def communities(members: pl.DataFrame) -> pl.DataFrame:
    """id (a hash of level and members), level, entity_ids: one row per community, where it arises."""
    born = members.filter(pl.col("level") == pl.col("born_level"))
    return born.group_by(pl.col("cluster").alias("id")).agg(
        pl.col("level").first(), pl.col("entity_id").alias("entity_ids")
    )


if __name__ == "__main__":
    main()
