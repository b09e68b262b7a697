"""Imported communities become nested, connected and level-complete."""

from collections import Counter

import igraph
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.extras.interop.hierarchy import hierarchy_of
from graphrag_assets.pipeline.incremental_leiden import recluster

N = 12
IDS = [f"e{n:02d}" for n in range(N)]
MEMBERS = pl.Schema({"community": pl.Int64, "level": pl.Int64, "entity": pl.String})


def frames(ties, levels):
    relationships = pl.DataFrame(
        {
            "source_id": [IDS[a] for a, _ in ties],
            "target_id": [IDS[b] for _, b in ties],
            "weight": [1.0 + n % 3 for n in range(len(ties))],
        },
        schema={"source_id": pl.String, "target_id": pl.String, "weight": pl.Float64},
    )
    rows = [
        (100 * level + community, level, IDS[entity])
        for level, labels in enumerate(levels)
        for entity, community in enumerate(labels)
        if community is not None
    ]
    members = pl.DataFrame(rows, schema=MEMBERS, orient="row")
    communities = members.select("community", "level").unique().sort("community")
    communities = communities.with_columns(id=pl.concat_str(pl.lit("c"), "community"))
    keys = pl.DataFrame({"id": IDS, "entity_id": IDS})
    return communities, members, keys, pl.DataFrame({"id": IDS}), relationships


ties = st.lists(
    st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda t: t[0] < t[1]), unique=True, max_size=25
)
labels = st.lists(st.none() | st.integers(0, 4), min_size=N, max_size=N)


@given(ties, st.lists(labels, min_size=1, max_size=3))
def test_communities_are_nested_connected_and_at_every_level(ties, levels):
    communities, members, keys, entities, relationships = frames(ties, levels)
    found = hierarchy_of(communities, members, keys, entities, relationships, Counter()).members
    per_level = {
        level: dict(rows.select("entity_id", "community").rows()) for (level,), rows in found.group_by("level")
    }
    graph = igraph.Graph(n=N, edges=ties)
    for level, label in per_level.items():
        assert set(label) == set(per_level[0])  # the same entities at every level
        for community in set(label.values()):
            nodes = [IDS.index(entity) for entity, of in label.items() if of == community]
            assert graph.induced_subgraph(nodes).is_connected()
            if level:
                assert len({per_level[level - 1][IDS[node]] for node in nodes}) == 1
    placed = set(members["entity"])
    assert placed <= set(per_level.get(0, {}))
    # Left out is only what no tie leads from to any community.
    for component in graph.connected_components():
        names = {IDS[node] for node in component}
        assert names <= set(per_level.get(0, {})) or not names & placed


@given(ties, st.lists(labels, min_size=1, max_size=3))
def test_clustering_finds_nothing_to_change(ties, levels):
    communities, members, keys, entities, relationships = frames(ties, levels)
    found = hierarchy_of(communities, members, keys, entities, relationships, Counter()).members
    previous = found.select("level", "entity_id", cluster=pl.col("community").cast(pl.String))

    def again(before, edges):
        return recluster(entities["id"], relationships, before, edges, tolerated_loss=float("inf"), keep_divisions=True)

    first = again(previous, relationships)
    second = again(first.members.select("level", "cluster", "entity_id"), first.edges)
    assert second.members.equals(first.members)
