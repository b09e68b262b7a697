"""`evaluate` in a terminal and in Dagster."""

import dagster as dg
import pytest

from tests.cli import run_command


def test_the_table_says_what_was_found_and_what_could_not_be_used(indexed):
    printed = run_command("evaluate", "--answers")
    assert "Not measured: questions.jsonl, line 4: the question has no gold passage." in printed
    assert "Not measured: “Where?”: there is no document 'gone.txt' in the publication." in printed
    assert "Publication 1: 2 questions" in printed
    rows = {line.split()[0]: line.split()[1:] for line in printed.replace("│", " ").splitlines() if line.strip()}
    found = ["100.0"] * 4  # recall@2, @5, @10, MRR
    assert rows["BM25"] == [*found, "–", "–"]
    for method in ("local", "basic"):
        assert rows[method][:6] == [*found, "100.0", "100.0"]  # and right, refused


@pytest.mark.extended
def test_the_job_records_the_numbers_with_the_publication(indexed):
    indexed.run("evaluate", ops={"measure": {"config": {"answers": True}}})
    (found,) = indexed.instance.fetch_observations(dg.AssetKey("publication"), limit=1).records
    metadata = {name: value.value for name, value in found.asset_observation.metadata.items()}
    assert metadata["recall@5/local"] == metadata["recall@5/BM25"] == metadata["right/basic"] == 1
    assert len(metadata["not_measured"]) == 2
