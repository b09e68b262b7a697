"""Communities and reports after edits: what an edit reads, and that updating again changes nothing."""

import random
from pathlib import Path

import pytest

from graphrag_assets.assets import reports
from graphrag_assets.assets.checks import failed_blocking_checks
from graphrag_assets.assets.communities import update_communities
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.knowledge_graph import knowledge_graph
from graphrag_assets.assets.scan import scan
from graphrag_assets.pipeline import incremental_leiden
from tests.comparison import index_all, modularity
from tests.store.test_publications_after_edits import edit, first_documents


@pytest.fixture(autouse=True)
def any_change_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental_leiden, "FRESH_SHARE", 10.0)


@pytest.mark.extended
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
def test_after_any_edits_updating_again_changes_nothing(start_with, seed: int) -> None:
    draw = random.Random(seed)
    index = first_documents(start_with, draw)
    for _ in range(8):
        edit(index, draw)
        for batch in scan(index).due:
            index_batch(index, batch, index.models(batch), "test")
        knowledge_graph(index, index.models(), "test")
        clustering = update_communities(index, "test").more["communities"]
        assert clustering["modularity"] == pytest.approx(modularity(index), abs=0.01)
        again = update_communities(index, "test")
        written = {name: change for name, change in again.changes.items() if change.inserted or change.deleted}
        assert (again.more["communities"]["clustered_from_scratch"], written) == (0, {})
        assert [
            check.name for check in failed_blocking_checks(index) if check.asset in ("communities", "community_members")
        ] == []


def test_a_sentence_about_a_hub_reads_no_reports_of_its_neighbors(start_with, monkeypatch: pytest.MonkeyPatch) -> None:
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
    write = reports.community_reports

    def counted_reports(inputs, *given, **more):
        seen["reports"] = seen.get("reports", 0) + inputs.communities.height
        return write(inputs, *given, **more)

    monkeypatch.setattr(reports, "community_reports", counted_reports)
    file = Path(index.settings.input_folder) / "0/0.md"
    file.write_text(file.read_text() + "Quentin Zorn went home.")
    index_all(index)
    communities = index.working.read("SELECT count(*) FROM communities").item()
    assert 0 < seen["reports"] < communities / 2
