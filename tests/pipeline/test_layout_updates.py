"""The map after a change: places stay, what is new comes close to what it belongs to."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_assets.pipeline.clustering import cluster
from graphrag_assets.pipeline.layout import layout
from graphrag_assets.pipeline.layout_updates import PLACED_SHARE, update_layout
from tests.pipeline.test_layout import Edges, graph, graphs, planted

SEED = 5
FRAMES = planted(6, 20)
MAP = layout(*FRAMES, seed=SEED)
NOTHING = MAP.clear()


def with_edges(*edges: tuple[str, str, float]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """FRAMES with more relationships, whose new ends are new entities in the community of the other end."""
    entities, members, relationships = FRAMES
    more = pl.DataFrame(edges, schema=relationships.schema, orient="row")
    new = sorted({end for edge in edges for end in edge[:2]} - set(entities["id"]))
    entities = pl.concat([entities, pl.DataFrame({"id": new, "degree": [1] * len(new)})]).sort("id")
    of = dict(members.filter(pl.col("level") == 0).select("entity_id", "cluster").iter_rows())
    homes = {name: next((of[b] for a, b, _ in edges if a == name and b in of), f"new {name[0]}") for name in new}
    rows = [{"level": 0, "entity_id": name, "cluster": home} for name, home in homes.items()]
    added = pl.DataFrame(rows, schema={"level": members.schema["level"], "entity_id": pl.String, "cluster": pl.String})
    return entities, pl.concat([members, added], how="diagonal"), pl.concat([relationships, more])


def places(frame: pl.DataFrame) -> dict[str, np.ndarray]:
    return {name: np.array([x, y]) for name, x, y in frame.iter_rows()}


def home(name: str, members: pl.DataFrame = FRAMES[1]) -> list[str]:
    """The others of an entity's community."""
    level0 = members.filter(pl.col("level") == 0)
    (own,) = level0.filter(pl.col("entity_id") == name)["cluster"]
    return level0.filter((pl.col("cluster") == own) & (pl.col("entity_id") != name))["entity_id"].to_list()


def reach(names: list[str], found: dict[str, np.ndarray]) -> tuple[np.ndarray, float]:
    points = np.array([found[name] for name in names])
    center = np.median(points, axis=0)
    return center, float(np.hypot(*(points - center).T).max())


def test_without_a_change_every_place_stays():
    found = update_layout(*FRAMES, SEED, MAP, 3)
    assert_frame_equal(found.frame, MAP, check_exact=True)
    assert found.n_placed == 3


def test_the_first_map_is_laid_out_from_scratch():
    assert_frame_equal(update_layout(*FRAMES, SEED, NOTHING, 0).frame, MAP, check_exact=True)


def test_a_new_entity_comes_into_the_disc_of_its_community_and_nothing_else_moves():
    frames = with_edges(("new", "e0003", 1.0), ("new", "e0004", 1.0))
    found = update_layout(*frames, SEED, MAP, 0)
    assert found.n_placed == 1
    assert_frame_equal(found.frame.filter(pl.col("id") != "new"), MAP, check_exact=True)
    by_name = places(found.frame)
    center, radius = reach(home("e0003"), by_name)
    assert np.hypot(*(by_name["new"] - center)) <= 1.2 * radius


def test_what_is_gone_leaves_the_others_where_they_are():
    entities, members, relationships = FRAMES
    gone = pl.col("id") == "e0003"
    kept = (
        entities.filter(~gone),
        members.filter(pl.col("entity_id") != "e0003"),
        relationships.filter((pl.col("source_id") != "e0003") & (pl.col("target_id") != "e0003")),
    )
    assert_frame_equal(update_layout(*kept, SEED, MAP, 0).frame, MAP.filter(~gone), check_exact=True)


def test_a_new_community_fills_a_gap_of_the_map():
    frames = with_edges(("na", "nb", 1.0), ("nb", "nc", 1.0))
    found = update_layout(*frames, SEED, MAP, 0)
    assert found.n_placed == 3
    by_name = places(found.frame)
    center, radius = reach(["na", "nb", "nc"], by_name)
    others = np.array([point for name, point in by_name.items() if not name.startswith("n")])
    assert np.hypot(*(others - center).T).min() > radius
    assert np.abs(found.frame.select("x", "y").to_numpy()).max() <= 1


def test_an_entity_whose_community_is_elsewhere_moves_there():
    entities, members, relationships = FRAMES
    far = max(
        (name for name in entities["id"] if name not in home("e0003")),
        key=lambda name: np.hypot(*(places(MAP)[name] - places(MAP)["e0003"])),
    )
    (target,) = members.filter((pl.col("level") == 0) & (pl.col("entity_id") == far))["cluster"]
    moved = members.with_columns(
        cluster=pl.when(pl.col("entity_id") == "e0003").then(pl.lit(target)).otherwise("cluster")
    )
    found = update_layout(entities, moved, relationships, SEED, MAP, 0)
    assert found.n_placed == 1
    by_name = places(found.frame)
    center, radius = reach(home(far), by_name)
    assert np.hypot(*(by_name["e0003"] - center)) <= 1.5 * radius


def test_after_many_new_entities_the_map_is_laid_out_from_scratch():
    frames = with_edges(("new", "e0003", 1.0))
    most = int(PLACED_SHARE * frames[0].height)
    assert update_layout(*frames, SEED, MAP, most - 1).n_placed == most
    found = update_layout(*frames, SEED, MAP, most)
    assert found.n_placed == 0
    assert_frame_equal(found.frame, layout(*frames, seed=SEED), check_exact=True)


@pytest.mark.extended
@given(st.lists(graphs(), min_size=2, max_size=4))
def test_every_entity_has_a_place_of_its_own_after_any_changes(drawn: list[tuple[int, Edges]]) -> None:
    found, n_placed = NOTHING, 0
    for size, edges in drawn:
        # The planted graph makes the changes small enough for places to be kept.
        entities, _, relationships = graph(120 + size, [*FRAMES[2].rows(), *shifted(edges)])
        found, n_placed = update_layout(
            entities, cluster(entities["id"], relationships), relationships, SEED, found, n_placed
        )
        points = found.select("x", "y").to_numpy()
        assert found["id"].to_list() == entities["id"].to_list()
        assert np.isfinite(points).all()
        assert np.abs(points).max() <= 1
        assert len(np.unique(points, axis=0)) == len(points)


def shifted(edges: Edges) -> Edges:
    """Among the last entities: every second end is one of the planted graph."""
    return [
        (f"e{int(a[1:]) + 120:04d}", b if n % 2 else f"e{int(b[1:]) + 120:04d}", w) for n, (a, b, w) in enumerate(edges)
    ]
