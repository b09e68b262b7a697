"""Reports of what changed alone are those of everything."""

import random

import pytest
from polars.testing import assert_frame_equal

from graphrag_assets.indexing import report_inputs, reports
from graphrag_assets.indexing.checks import failed_blocking_checks
from graphrag_assets.indexing.reports import update_reports
from tests.comparison import assert_reports, index_all
from tests.store.test_publication_by_difference import edit, first_documents


def communities_looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen: list[int] = []
    write = reports.community_reports

    def counted(inputs, *given, **more):
        seen.append(inputs.communities.height)
        return write(inputs, *given, **more)

    monkeypatch.setattr(reports, "community_reports", counted)
    return seen


@pytest.mark.extended
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
def test_after_any_edits_reports_and_citations_are_those_of_everything(start_with, monkeypatch, seed) -> None:
    draw = random.Random(seed)
    index = first_documents(start_with, draw)
    seen = communities_looked_at(monkeypatch)
    present = []
    for _ in range(5):
        edit(index, draw)
        index_all(index)
        present.append(index.working.read("SELECT count(*) FROM communities").item())
        assert_reports(index)
    assert any(0 < looked < all_of_them for looked, all_of_them in zip(seen, present, strict=True))


def test_nothing_is_looked_at_without_a_change(start_with, monkeypatch) -> None:
    index = first_documents(start_with, random.Random(0))
    seen = communities_looked_at(monkeypatch)
    kept = update_reports(index, index.models(), "again")
    assert seen == [0]
    assert kept.n_kept == index.working.read("SELECT count(*) FROM community_reports").item() > 0


def test_reports_changed_past_the_stages_fail_the_check_and_are_written_again(start_with) -> None:
    index = first_documents(start_with, random.Random(0))
    with index.working.transaction() as connection:
        connection.execute("UPDATE entities SET description = 'Something else.'")
    assert "reports_are_current" in [check.name for check in failed_blocking_checks(index)]
    update_reports(index, index.models(), "again")
    assert failed_blocking_checks(index) == []
    assert_reports(index)


def test_reports_written_in_parts_equal_those_written_in_one(start_with, monkeypatch) -> None:
    index = first_documents(start_with, random.Random(0))
    tables = "community_reports", "citations"
    at_once = index.working.read_tables(*tables)
    with index.working.transaction() as connection:  # one is gone, and one is of a community that is
        connection.execute("UPDATE community_reports SET community = -7, id = 'gone' WHERE community = 1")
    monkeypatch.setattr(report_inputs, "ENTITIES_PER_PART", 3)
    seen = communities_looked_at(monkeypatch)
    updated = update_reports(index, index.models(), "parts", rewrite=True)
    assert len(seen) > 3
    assert updated.n_kept == 0
    for before, after in zip(at_once, index.working.read_tables(*tables), strict=True):
        assert_frame_equal(after, before)
