"""One format of references, for answers and for reports."""

import polars as pl
import pytest

from graphrag_assets.pipeline.report_citations import TABLES, references_in
from graphrag_assets.query.citations import references
from graphrag_assets.references import without_references

WRITTEN = {
    "[Data: Entities (5, 7, +more)]": [("Entities", 5), ("Entities", 7)],
    "[data: Entity (5)]": [("Entities", 5)],
    "[Data:Entities(5)]": [("Entities", 5)],
    "[Data: Entities (5-8)]": [("Entities", 5), ("Entities", 6), ("Entities", 7), ("Entities", 8)],
    "[Data: Text Units (3) and Reports (1)]": [("Sources", 3), ("Reports", 1)],
    "[Data: Covariates (2); Community Reports (4)]": [("Claims", 2), ("Reports", 4)],
    "[Data: Sources (3.1, 3.4–6, 5.2-7.1)]": [("Sources", 3), ("Sources", 5), ("Sources", 7)],
    "[Data: Entities (1–900)]": [("Entities", 1), ("Entities", 900)],
    "[Data: ()]": [],
}


@pytest.mark.parametrize("block", WRITTEN)
def test_answers_and_reports_read_the_same_references(block):
    text = f"She broke it {block}."
    assert list(dict.fromkeys((found.table, found.number) for found in references(text))) == WRITTEN[block]
    in_report = references_in(pl.DataFrame({"id": ["r"], "full_content": [text]}))
    assert in_report.rows() == [("r", TABLES[table], number) for table, number in WRITTEN[block]]
    assert without_references(text) == "She broke it."


def test_a_report_may_cite_a_number_that_no_column_holds():
    reports = pl.DataFrame({"id": ["r", "s"], "full_content": [f"[Data: Sources ({10**30}, 4)]", None]})
    assert references_in(reports).rows() == [("r", "text_units", 4)]


def test_a_long_run_of_white_space_is_read_in_linear_time():
    text = f"A.{' ' * 300_000}B. [Data: Sources (1)]"
    assert len(references(text)) == 1
    assert without_references(text) == text.removesuffix(" [Data: Sources (1)]")
