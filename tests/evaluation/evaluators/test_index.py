"""Evaluators of the index: links and terms, stop words, reports, health."""

import pytest

from graphrag_assets.extras.evaluation.evaluators.health import health
from graphrag_assets.extras.evaluation.evaluators.index_rows import kept_share
from graphrag_assets.extras.evaluation.evaluators.reports import judged


def test_the_kept_share_is_of_text_units_that_both_have():
    assert kept_share({"a": 4, "b": 2, "gone": 3}, {"a": 3, "b": 5}, ["a", "b", "new"]) == pytest.approx(0.875)
    assert kept_share({"a": 0}, {"a": 3}, ["a"]) is None


def test_sentences_of_a_report_are_judged_by_the_texts_of_its_community():
    report = "# Cables\n\nThe Great Eastern sailed with Cyrus Field. [Data: Sources (1)]\n\nThere was Napoleon."
    assert judged(report, ["Cyrus Field sailed in the Great Eastern."]) == (2, 1, 1)


def test_health_of_the_sample(sample, changed):
    found = health(sample)
    assert found["names in text"] > 0.9
    assert 0 < found["singletons"] < 0.2
    assert 0.5 < found["largest component"] <= 1
    assert found["unsupported report sentences"] < 0.05

    def damage(connection):
        connection.execute("UPDATE entity_mentions SET title = 'Nowhere named' WHERE rowid % 2 = 0")
        connection.execute("UPDATE entities SET degree = 0")
        connection.execute("DELETE FROM relationships")
        connection.execute("UPDATE community_reports SET full_content = 'Yesterday, Zenobia met Xerxes.'")

    damaged = health(changed(damage))
    assert damaged["names in text"] < 0.6
    assert damaged["singletons"] == 1
    assert damaged["largest component"] < 0.01
    assert damaged["unsupported report sentences"] == damaged["uncited report sentences"] == 1
