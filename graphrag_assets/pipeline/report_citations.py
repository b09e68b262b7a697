"""References `[Data: Entities (5, 7); Relationships (23)]` in reports, as rows that can be checked and joined."""

import polars as pl

TABLES = {
    "entities": "entities",
    "relationships": "relationships",
    "claims": "covariates",
    "reports": "community_reports",
    "sources": "text_units",
}


def report_citations(reports: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """Each distinct reference in the reports (id, full_content), `resolved` by the numbers of what can be cited."""
    return resolved(references_in(reports), numbers)


def references_in(reports: pl.DataFrame) -> pl.DataFrame:
    """Each distinct reference in the reports (id, full_content): report_id, table_name, human_readable_id."""
    name = pl.col("part").str.extract(r"^([A-Za-z]+)").str.to_lowercase()
    table = name.replace_strict(TABLES, default=None)
    return (
        reports.select(report_id="id", block=pl.col("full_content").str.extract_all(r"\[Data: [^\]]*\]"))
        .explode("block")
        .select("report_id", part=pl.col("block").str.extract_all(r"[A-Za-z]+ \([^)]*\)"))
        .explode("part")
        .select("report_id", table_name=table, human_readable_id=pl.col("part").str.extract_all(r"\d+"))
        .explode("human_readable_id")
        .drop_nulls()
        .with_columns(pl.col("human_readable_id").cast(pl.Int64))
        .unique()
    )


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
