"""References `[Data: Entities (5, 7); Relationships (23)]` in reports: checked, and as rows that can be joined.

A reference to a row that its report was not written from is removed, and counted.
"""

import re
from collections import defaultdict
from dataclasses import replace

import polars as pl

from graphrag_assets.contracts.records import Finding, ReportMaterial, ReportRecord
from graphrag_assets.text.references import BLOCK, MARK, Checked, Given, rows_cited_in, unread_in

TABLES = {
    "Entities": "entities",
    "Relationships": "relationships",
    "Claims": "covariates",
    "Reports": "community_reports",
    "Sources": "text_units",
}
"""The index's table by its name in references."""

_SCHEMA = {"report_id": pl.String, "table_name": pl.String, "human_readable_id": pl.Int64, "is_marked": pl.Boolean}
_LARGEST = 2**63 - 1  # of a number that a column can hold: no row has a larger one
_SECTION = re.compile(r"-----(\w+)-----")
_ROW = re.compile(r"(\d+),")


def checked_report(record: ReportRecord, material: ReportMaterial) -> tuple[ReportRecord, list[str]]:
    """The report with its references in canonical form, and those that it loses: to rows it was not written from."""
    given, removed = _citable(material), dict[str, None]()

    def checked(text: str) -> str:
        checked, lost = Checked.text(text, given, remove=True)
        removed.update(dict.fromkeys(lost))
        return checked

    known = replace(
        record,
        summary=checked(record.summary),
        findings=[Finding(checked(one.summary), checked(one.explanation)) for one in record.findings],
        rating_explanation=checked(record.rating_explanation),
    )
    return known, list(removed)


def _citable(material: ReportMaterial) -> Given:
    """The rows that a report may cite: its evidence, the rows of its context, and those that reports in it cite."""
    citable: dict[str, dict[int, set[int]]] = defaultdict(dict)
    for row in material.rows:
        citable[row.section][row.number] = set()
    section = ""
    for line in material.context.split("\n"):
        if heading := _SECTION.fullmatch(line):
            section = heading[1]
        elif number := _ROW.match(line):
            citable[section][int(number[1])] = set()
            if section == "Reports":
                for table, cited in _rows_in(line):
                    citable[table][cited] = set()
    return citable


def _rows_in(text: str) -> list[tuple[str, int]]:
    return [row for block in BLOCK.finditer(text) for row in rows_cited_in(block["rows"])]


def references_in(reports: pl.DataFrame) -> pl.DataFrame:
    """Each distinct reference in the reports (id, full_content).

    Returns:
        report_id; table_name, or the text of a reference to no table; human_readable_id (null: it cannot be read);
        is_marked (it leads nowhere: it is marked in the report, or cannot be read).
    """
    cited: dict[tuple[str, str, int | None, bool], None] = {}
    for report_id, content in reports.select("id", "full_content").iter_rows():
        for pattern in (BLOCK, MARK):
            for block in pattern.finditer(content or ""):
                for table, number in rows_cited_in(block["rows"]):
                    is_row = table in TABLES and number <= _LARGEST
                    known = number if number <= _LARGEST else None
                    cited[report_id, TABLES.get(table, table), known, pattern is MARK or not is_row] = None
                if unread := unread_in(block["rows"]):
                    cited[report_id, unread, None, True] = None
    return pl.DataFrame(list(cited), schema=_SCHEMA, orient="row")
