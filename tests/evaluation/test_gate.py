"""A publication that searches find less in is named, and kept from readers where the user wants it."""

import json
import logging

import dagster as dg
import duckdb
import pytest

from graphrag_assets.extras.evaluation import gate
from graphrag_assets.settings import Settings
from tests.conftest import QUIET, repository
from tests.evaluation.conftest import QUESTIONS

NAMES = ["Abel", "Boyd", "Cole", "Dale", "Earl", "Finn", "Glen", "Hugh", "Ivan", "Jude", "Kurt", "Lyle"]
CAPTAINS = {f"notes/{name}.txt": f"Captain {name} Ashton commanded the ship {name}star." for name in NAMES}
CAPTAINS_FOUND = [
    {"question": f"Who commanded the {name}star?", "document": f"{name}.txt", "quote": f"Captain {name}"}
    for name in NAMES
]


@pytest.fixture
def captains(start_with, monkeypatch):
    """Twelve documents with a question each, and a second publication in which eight documents cannot be found."""
    project = start_with(CAPTAINS)
    (project.root / "questions.jsonl").write_text("\n".join(map(json.dumps, CAPTAINS_FOUND)), encoding="utf-8")
    judge = gate.check_candidate

    def damaged(settings: Settings, candidate):
        with duckdb.connect(str(candidate)) as connection:
            hidden = "SELECT human_readable_id FROM text_units WHERE human_readable_id > 3"
            connection.execute(f"DELETE FROM search.postings WHERE kind = 'text_unit' AND number IN ({hidden})")
            connection.execute(f"DELETE FROM search.passage_subjects WHERE text_unit IN ({hidden})")
        judge(settings, candidate)

    monkeypatch.setattr(gate, "check_candidate", damaged)
    project.write("notes/more.txt", "A storm rose.")
    return project


def published(project) -> str:
    return (project.root / "index" / "graphrag.duckdb").resolve().name


@pytest.mark.extended
def test_readers_keep_the_old_publication_if_the_user_wants_that(captains, monkeypatch, caplog):
    monkeypatch.setenv("GRAPHRAG_BLOCK_WORSE", "true")
    with pytest.raises(Exception, match=r"readers keep publication 1\. Worse than publication 1: recall@5 by BM25"):
        captains.index_all()
    assert published(captains) == "graphrag-1.duckdb"
    monkeypatch.setenv("GRAPHRAG_BLOCK_WORSE", "false")
    with caplog.at_level(logging.WARNING):
        captains.index_all()
    (said,) = [record.getMessage() for record in caplog.records if "Worse than publication 1" in record.getMessage()]
    assert "recall@5 by BM25 100.0 → 33.3" in said
    assert "8 questions lost: “Who commanded the" in said
    assert published(captains) == "graphrag-2.duckdb"


CHECK = dg.AssetCheckKey(dg.AssetKey("publication"), "retrieval_quality")


def evaluation(project) -> dg.AssetCheckEvaluation:
    """As *Execute* does for this check in the UI."""
    checks = repository().get_job("__ASSET_JOB").get_subset(asset_selection=frozenset(), asset_check_selection={CHECK})
    (found,) = checks.execute_in_process(instance=project.instance, run_config=QUIET).get_asset_check_evaluations()
    return found


@pytest.mark.extended
def test_the_check_compares_the_current_publication_with_the_one_before(captains):
    assert evaluation(captains).metadata["compared_with"].value == "nothing: no earlier publication"
    captains.index_all()
    found = evaluation(captains)
    assert not found.passed
    assert found.severity is dg.AssetCheckSeverity.WARN
    assert found.metadata["compared_with"].value == "publication 1"
    assert found.metadata["recall@5/BM25"].value == pytest.approx(1 / 3, abs=1e-4)
    assert "| BM25 | Who commanded the" in found.metadata["lost"].value


@pytest.mark.extended
def test_questions_whose_passages_were_edited_away_are_named_and_not_compared(indexed):
    indexed.write("one/a.txt", "Captain Halpin commanded the Great Eastern.")
    indexed.index_all()
    found = evaluation(indexed)
    assert found.passed
    assert found.metadata["questions"].value == 1  # of b.txt
    assert any(QUESTIONS[0]["question"] in one for one in found.metadata["not_measured"].value)
