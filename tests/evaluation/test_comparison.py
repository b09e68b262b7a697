"""A publication that searches find less in is named."""

import json

import dagster as dg
import duckdb
import pytest

from tests.conftest import QUIET, repository
from tests.evaluation.conftest import QUESTIONS

NAMES = ["Abel", "Boyd", "Cole", "Dale", "Earl", "Finn", "Glen", "Hugh", "Ivan", "Jude", "Kurt", "Lyle"]
CAPTAINS = {f"notes/{name}.txt": f"Captain {name} Ashton commanded the ship {name}star." for name in NAMES}
CAPTAINS_FOUND = [
    {"question": f"Who commanded the {name}star?", "document": f"{name}.txt", "quote": f"Captain {name}"}
    for name in NAMES
]


@pytest.fixture
def captains(start_with):
    """Twelve documents with a question each, and one that is not indexed yet."""
    project = start_with(CAPTAINS)
    (project.root / "questions.jsonl").write_text("\n".join(map(json.dumps, CAPTAINS_FOUND)), encoding="utf-8")
    project.write("notes/more.txt", "A storm rose.")
    return project


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
    with duckdb.connect(str((captains.root / "index" / "graphrag.duckdb").resolve())) as connection:
        hidden = "SELECT human_readable_id FROM text_units WHERE human_readable_id > 3"
        connection.execute(f"DELETE FROM search.postings WHERE kind = 'text_unit' AND number IN ({hidden})")
        connection.execute(f"DELETE FROM search.passage_subjects WHERE text_unit IN ({hidden})")
    found = evaluation(captains)
    assert not found.passed
    assert found.severity is dg.AssetCheckSeverity.WARN
    assert found.metadata["compared_with"].value == "publication 1"
    assert found.metadata["recall@5/BM25"].value == pytest.approx(1 / 3, abs=1e-4)
    assert found.metadata["recall@5_before/BM25"].value == 1
    assert "| BM25 | Who commanded the" in found.metadata["lost"].value


@pytest.mark.extended
def test_questions_whose_passages_were_edited_away_are_named_and_not_compared(indexed):
    indexed.write("one/a.txt", "Captain Halpin commanded the Great Eastern.")
    indexed.index_all()
    found = evaluation(indexed)
    assert found.passed
    assert found.metadata["questions"].value == 1  # of b.txt
    assert any(QUESTIONS[0]["question"] in one for one in found.metadata["not_measured"].value)
