"""References `[Data: Entities (5, 7); Relationships (23)]` in reports, as rows that can be checked and joined."""

import polars as pl

from graphrag_assets.references import BLOCK, rows_cited_in

TABLES = {
    "Entities": "entities",
    "Relationships": "relationships",
    "Claims": "covariates",
    "Reports": "community_reports",
    "Sources": "text_units",
}
"""The index's table by its name in references."""

_SCHEMA = {"report_id": pl.String, "table_name": pl.String, "human_readable_id": pl.Int64}
_LARGEST = 2**63 - 1  # of a number that a column can hold: no row has a larger one


def report_citations(reports: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """Each distinct reference in the reports (id, full_content), `resolved` by the numbers of what can be cited."""
    return resolved(references_in(reports), numbers)


def references_in(reports: pl.DataFrame) -> pl.DataFrame:
    """Each distinct reference in the reports (id, full_content): report_id, table_name, human_readable_id."""
    cited = {
        (report_id, TABLES[table], number): None
        for report_id, content in reports.select("id", "full_content").iter_rows()
        for block in BLOCK.finditer(content or "")
        for table, number in rows_cited_in(block["rows"])
        if table in TABLES and number <= _LARGEST
    }
    return pl.DataFrame(list(cited), schema=_SCHEMA, orient="row")


def resolved(references: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """The references with the rows that they cite.

    Args:
        references: `references_in` reports.
        numbers: table_name, id, human_readable_id of every row that can be cited.

    Returns:
        report_id, table_name, human_readable_id, cited_id (null when there is no such row), sorted.
    """
    known = numbers.select("table_name", pl.col("human_readable_id").cast(pl.Int64), cited_id="id")
    found = references.join(known, on=["table_name", "human_readable_id"], how="left")
    return found.sort("report_id", "table_name", "human_readable_id")
