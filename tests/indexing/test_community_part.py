"""The communities of the part that a change reaches are those of reading everything."""

import random
from pathlib import Path

import pytest

from graphrag_assets.indexing import community_part, reports
from graphrag_assets.indexing import merge_graph as merge_graph_stage
from graphrag_assets.indexing.checks import failed_blocking_checks
from graphrag_assets.indexing.communities import update_communities
from graphrag_assets.indexing.index_batch import index_batch
from graphrag_assets.indexing.merge_graph import merge_graph
from graphrag_assets.indexing.scan import scan
from graphrag_assets.pipeline import incremental_leiden
from graphrag_assets.store.change_log import remove_mark
from tests.comparison import index_all, modularity
from tests.store.test_publication_by_difference import edit, first_documents

ASSETS = ("communities", "community_members", "community_history", "entity_positions")


@pytest.fixture(autouse=True)
def any_change_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (incremental_leiden, community_part):
        monkeypatch.setattr(module, "FRESH_SHARE", 10.0)


@pytest.mark.extended
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
def test_after_any_edits_reading_everything_changes_nothing(start_with, seed: int) -> None:
    draw = random.Random(seed)
    index = first_documents(start_with, draw)
    n_parts = 0
    for _ in range(8):
        edit(index, draw)
        for batch in scan(index).due:
            index_batch(index, batch, index.models(batch), "test")
        merge_graph(index, index.models(), "test")
        clustering = update_communities(index, "test").clustering
        n_entities = index.working.read("SELECT count(*) FROM entities").item()
        n_parts += clustering.members["entity_id"].n_unique() < n_entities
        assert clustering.modularity == pytest.approx(modularity(index), abs=0.01)
        with index.working.transaction() as connection:
            remove_mark(connection, "detect_communities")
        again = update_communities(index, "test")
        written = {name: change for name, change in again.updated.changes.items() if change.inserted or change.deleted}
        assert (again.clustering.fresh, written) == (False, {})
        assert failed_blocking_checks(index, ASSETS) == []
    assert n_parts >= 4


def test_an_edit_reads_the_communities_that_it_reaches(start_with, monkeypatch: pytest.MonkeyPatch) -> None:
    index = first_documents(start_with, random.Random(0))
    seen: list[int] = []
    recluster_part = community_part.recluster_part

    def counted(ids, *given):
        seen.append(len(ids))
        return recluster_part(ids, *given)

    monkeypatch.setattr(community_part, "recluster_part", counted)
    file = Path(index.settings.input_folder) / "0/0.md"
    file.write_text(file.read_text() + " Xaver Quint met Yves Quorn.")
    index_all(index)
    everything = index.working.read("SELECT count(*) FROM entities").item()
    assert 0 < max(seen) < everything


def test_a_sentence_about_a_hub_reads_neither_its_neighbors_nor_their_reports(
    start_with, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = (
        "Ada Brook",
        "Bela Crane",
        "Carl Dorn",
        "Dora Eland",
        "Egon Falk",
        "Frida Gold",
        "Greg Hart",
        "Hedda Ibsen",
    )
    families = [(name, name.replace(" ", "x "), f"{name}son") for name in names]
    documents = {
        f"{n}/{n}.md": f"{one} met {two}. {two} met {three}. {three} met {one}. " * 4 + f"{one} met Quentin Zorn. " * 2
        for n, (one, two, three) in enumerate(families)
    }
    index = start_with(documents).index
    degree = index.working.read("SELECT degree FROM entities WHERE title = 'Quentin Zorn'").item()
    assert degree == len(families)
    seen: dict[str, int] = {}
    recluster_part, read_part = community_part.recluster_part, reports.read_part
    part_of = merge_graph_stage.part_of

    def counted_nodes(ids, *given):
        seen["nodes"] = max(len(ids), seen.get("nodes", 0))
        return recluster_part(ids, *given)

    def counted_reports(own, communities):
        seen["reports"] = seen.get("reports", 0) + len(communities)
        return read_part(own, communities)

    def counted_mentions(keys, aliases, read_mentions, read_undescribed, *given):
        def read(names):
            found = read_undescribed(names)
            seen["mentions"] = seen.get("mentions", 0) + found.height
            return found

        return part_of(keys, aliases, read_mentions, read, *given)

    monkeypatch.setattr(merge_graph_stage, "part_of", counted_mentions)
    monkeypatch.setattr(community_part, "recluster_part", counted_nodes)
    monkeypatch.setattr(reports, "read_part", counted_reports)
    file = Path(index.settings.input_folder) / "0/0.md"
    file.write_text(file.read_text() + "Quentin Zorn went home.")
    index_all(index)
    entities, communities = index.working.read("SELECT (SELECT count(*) FROM entities), count(*) FROM communities").row(
        0
    )
    assert seen["mentions"] == 0
    assert 0 < seen["nodes"] < entities / 2
    assert 0 < seen["reports"] < communities / 2
