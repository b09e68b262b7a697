"""The job evaluate and the check retrieval_quality."""

import dagster as dg
import pytest

from graphrag_assets.extras.evaluation.results import Verdict, record_verdicts, results

TEXT = (
    "Captain James Anderson commanded the Great Eastern of the Telegraph Company in 1865. "
    "Samuel Canning sailed with James Anderson to Valentia for the Telegraph Company."
)


@pytest.fixture
def indexed(start_with):
    return start_with({"one/a.txt": TEXT, "two/b.txt": "Daniel Gooch owned the Great Eastern with Samuel Canning."})


@pytest.mark.extended
def test_the_job_shows_recall_and_a_picture_with_the_publication(indexed):
    indexed.run("evaluate", ops={"measure": {"config": {"generated": 10}}})
    (found,) = indexed.instance.fetch_observations(dg.AssetKey("publication"), limit=1).records
    metadata = found.asset_observation.metadata
    assert 0 < metadata["recall@5/local"].value <= 1
    assert metadata["recall"].value.startswith("![recall@5 by publication](data:image/svg+xml,")
    assert "| BM25 |" in metadata["retrieval"].value


def evaluation(project) -> dg.AssetCheckEvaluation:
    job = project.run("refresh_graph")
    (found,) = [e for e in job.get_asset_check_evaluations() if e.check_name == "retrieval_quality"]
    return found


@pytest.mark.extended
def test_the_check_shows_what_the_gate_found_of_the_current_publication(indexed):
    assert evaluation(indexed).metadata["compared_with"].value == "no earlier publication"
    with results(indexed.root / "index") as connection:
        verdicts = [
            Verdict("links", "kept", 1.0, 0.9, 0.001, True, []),
            Verdict("BM25", "recall@5", 0.8, 0.8, 1.0, False, []),
        ]
        record_verdicts(connection, 1, 1, verdicts)
    found = evaluation(indexed)
    assert not found.passed
    assert found.severity is dg.AssetCheckSeverity.WARN
    assert "| kept by links | 100.0 | 90.0 | 0.0010 | 0 |" in found.metadata["measures"].value
