"""Communities over re-indexing: those unaffected by an edit keep their ids, members and reports."""

import random

import dagster as dg
import pytest

from graphrag_assets.assets.communities import update_communities

PEOPLE = 800
FIRST = ["Ada", "Ben", "Clara", "David", "Emil", "Fanny", "Georg", "Hilda", "Ivan", "Jane", "Karl", "Lotte"]
SYLLABLES = ["ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu"]
VERBS = ["met", "wrote to", "visited", "argued with", "worked for", "traveled with"]


def person(number: int) -> str:
    surname = "".join(SYLLABLES[int(digit)] for digit in f"{number % PEOPLE:03}")
    return f"{FIRST[number % len(FIRST)]} {surname.title()}stein"


def documents() -> dict[str, list[str]]:
    """200 documents as sentences about a ring of people, each about those near its place and a few others.

    The graph has no clear borders: many partitions are equally good.
    """
    rng = random.Random(1)

    def somebody(place: int) -> str:
        return person(rng.randrange(PEOPLE) if rng.random() < 0.03 else round(rng.gauss(place, 6)))

    return {
        f"batch-{number % 4}/document-{number:03}.txt": [
            f"{somebody(4 * number)} {rng.choice(VERBS)} {somebody(4 * number)} before the long winter."
            for _ in range(14)
        ]
        for number in range(200)
    }


@pytest.fixture
def small(start_with):
    return start_with({path: " ".join(sentences) for path, sentences in list(documents().items())[:24]})


def communities(project) -> dict[str, tuple]:
    rows = project.index.working.read("SELECT id, community, level, entity_ids, parent FROM communities").iter_rows()
    return {row[0]: (*row[1:3], tuple(row[3]), row[4]) for row in rows}


def metadata(project, asset: str) -> dict[str, object]:
    event = project.instance.get_latest_materialization_event(dg.AssetKey(asset))
    return {name: value.value for name, value in event.asset_materialization.metadata.items()}


@pytest.mark.long
def test_edit_of_one_sentence_keeps_nearly_all_communities_and_reports(project):
    texts = documents()
    for path, sentences in texts.items():
        project.write(path, " ".join(sentences))
    project.run_all()
    before = communities(project)
    assert metadata(project, "communities")["clustered_from_scratch"] == 1
    path = "batch-2/document-042.txt"
    edited = [*texts[path][:3], f"{person(170)} met {person(600)} on the way home.", *texts[path][4:]]
    project.write(path, " ".join(edited))
    project.run_all("batch-2")
    after = communities(project)
    reported = metadata(project, "communities")
    assert reported["clustered_from_scratch"] == 0
    assert 0 < reported["entities_free_to_move"] < 30
    assert reported["modularity"] >= 0.99 * reported["modularity_of_fresh_run"]
    assert len(before.keys() & after.keys()) >= 0.98 * len(before)
    assert len(set(before.items()) & set(after.items())) >= 0.95 * len(before)
    reports = metadata(project, "community_reports")
    assert 0 < reports["reports_written"] <= 0.05 * len(after)
    kept = len(set(before.items()) & set(after.items()))
    update_communities(project.index, "run", from_scratch=True)
    assert len(set(before.items()) & set(communities(project).items())) < kept


@pytest.mark.extended
def test_new_document_keeps_the_communities_of_the_others(small):
    before = communities(small)
    small.write("batch-9/new.txt", "Xaver Quint met Yves Quorn in Quebec. Yves Quorn wrote to Xaver Quint in Quebec.")
    small.index_all("batch-9")
    after = communities(small)
    assert before.items() <= after.items()
    assert 1 <= len(after) - len(before) <= 2
    (small.input / "batch-9" / "new.txt").unlink()
    small.index_all("batch-9")
    assert communities(small) == before


def test_forced_fresh_run_replaces_the_partition_and_starts_the_next(small):
    def cluster(from_scratch: bool = False):
        result = update_communities(small.index, "run", from_scratch)
        return (
            result.more["communities"],
            result.changes,
            small.index.working.read("FROM community_members ORDER BY ALL"),
        )

    assert not cluster()[0]["clustered_from_scratch"]
    forced, _, members = cluster(from_scratch=True)
    assert forced["clustered_from_scratch"]
    again, changes, same_members = cluster()
    assert again["entities_free_to_move"] == 0
    assert same_members.equals(members)
    assert all((change.inserted, change.deleted) == (0, 0) for change in changes.values())
