"""One format of references, for answers and for reports."""

import time

import polars as pl
import pytest

from graphrag_assets.pipeline.community_reports import TABLES, references_in
from graphrag_assets.query.citations import references
from graphrag_assets.text.references import Checked, without_references

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
    "[Sources (3), Claims 2]": [("Sources", 3), ("Claims", 2)],
    "(Data: Sources (3, 4))": [("Sources", 3), ("Sources", 4)],
    "【Data: entity 5】": [("Entities", 5)],
}


@pytest.mark.parametrize("block", WRITTEN)
def test_answers_and_reports_read_the_same_references(block):
    text = f"She broke it {block}."
    assert list(dict.fromkeys((found.table, found.number) for found in references(text))) == WRITTEN[block]
    in_report = references_in(pl.DataFrame({"id": ["r"], "full_content": [text]})).filter(~pl.col("is_marked"))
    assert in_report.rows() == [("r", TABLES[table], number, False) for table, number in WRITTEN[block]]
    assert without_references(text) == "She broke it."


def test_what_a_report_cites_and_cannot_be_read_is_a_reference_that_leads_nowhere():
    content = "A [Data: Ships (7); the letter]. B [unresolved: Entities (999)]. C [Data: Entities (5)]."
    rows = references_in(pl.DataFrame({"id": ["r"], "full_content": [content]})).rows()
    assert rows == [
        ("r", "Ships", 7, True),
        ("r", "the letter", None, True),
        ("r", "entities", 5, False),
        ("r", "entities", 999, True),
    ]


@pytest.mark.parametrize(
    "text", ["[Sources (5)" + " " * 100_000, "(Data: " * 20_000, "[Sources 5, " * 20_000, "(claims 1 " * 20_000]
)
def test_what_only_begins_like_references_is_read_in_linear_time(text):
    started = time.process_time()
    assert references(text) == []
    assert Checked.text(text, {})[1] == []
    assert time.process_time() - started < 2
