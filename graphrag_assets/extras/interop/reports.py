"""Reports of an imported index: one per community, with citations renumbered."""

import re

import polars as pl

from graphrag_assets.extras.interop.source import Counts, fitting
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.community_reports import TABLES, references_in
from graphrag_assets.store import schema
from graphrag_assets.text.references import BLOCK, GROUP, numbers_in, table_named

_TEXTS = ("summary", "full_content", "rating_explanation", "full_content_json")

Numbers = dict[tuple[str, int], int]
"""The number here, by table and number in the imported index."""


def report_rows(reports: pl.DataFrame, communities: pl.DataFrame, numbers: Numbers, counts: Counts) -> pl.DataFrame:
    """Rows of community_reports without a fingerprint, which the next run adds; at most one for each community.

    Args:
        reports: as GraphRAG has them.
        communities: id, community (its number in the index), number (its number here).
        numbers: for the citations.
        counts: what is left out or changed is added.
    """
    has_content = pl.col("full_content").fill_null("").str.strip_chars() != ""
    of_known = pl.col("community").is_in(communities["community"].implode())
    reports = fitting(reports, has_content, "community_reports", "without content", counts)
    reports = fitting(reports, of_known, "community_reports", "of missing communities", counts)
    is_first = pl.col("community").is_first_distinct()
    reports = fitting(reports, is_first, "community_reports", "second report of a community", counts)
    reports = reports.with_columns(
        pl.col("title", "summary", "rating_explanation", "full_content_json").fill_null(""),
        pl.col("rank").fill_null(0.0),
        pl.col("findings").fill_null([]),
    )
    placed = renumbered(reports, numbers, counts).join(
        communities.rename({"id": "community_id"}), on="community", maintain_order="left"
    )
    ids = [stable_id("community_report", community) for community in placed["community_id"]]
    return placed.select(
        *("title", "summary", "full_content", "rank", "rating_explanation", "findings", "full_content_json"),
        pl.Series("id", ids, dtype=pl.String),
        community="number",
        human_readable_id="number",
        model=pl.lit(schema.IMPORTED),
    )


def renumbered(reports: pl.DataFrame, numbers: Numbers, counts: Counts) -> pl.DataFrame:
    """Return `reports` citing rows by their numbers here; numbers of missing rows are left out.

    Otherwise they would cite another row later. A citation without changed numbers is not touched.
    """

    def block(match: re.Match[str]) -> str:
        parts = [_renumbered_part(part, numbers) for part in GROUP.finditer(match["rows"])]
        if all(parts):  # text between the parts stays
            rows = GROUP.sub(lambda part: _renumbered_part(part, numbers), match["rows"])
            before, after = match.start("rows") - match.start(), match.end("rows") - match.start()
            return match[0][:before] + rows + match[0][after:]
        left = "; ".join(filter(None, parts))
        return f"{match['space']}[Data: {left}]" if left else ""

    def text(value: str) -> str:
        return BLOCK.sub(block, value)

    findings = [
        [{name: text(value or "") for name, value in finding.items()} for finding in of_report]
        for of_report in reports["findings"]
    ]
    changed = reports.with_columns(
        *(pl.Series(name, [text(value) for value in reports[name]], dtype=pl.String) for name in _TEXTS),
        pl.Series("findings", findings, dtype=reports.schema["findings"]),
    )
    differing = (changed["full_content"] != reports["full_content"]).sum()
    counts["community_reports", "with citations of renumbered rows, updated"] += int(differing)
    cited = references_in(reports.select("full_content", id=pl.col("community").cast(pl.String)))
    missing = sum(row not in numbers for row in cited.select("table_name", "human_readable_id").iter_rows())
    counts["community_reports", "citations of missing rows, left out"] += missing
    return changed


def _renumbered_part(part: re.Match[str], numbers: Numbers) -> str:
    """One part of a citation, such as "Entities (5, 7)"; empty if no cited row exists."""
    table = TABLES.get(table_named(part["table"]))
    if table is None:
        return part[0]
    cited = numbers_in(part["numbers"])
    here = list(dict.fromkeys(numbers[table, number] for number in cited if (table, number) in numbers))
    if here == cited:
        return part[0]
    more = ["+more"] if "more" in part["numbers"] else []
    return f"{part['table']} ({', '.join([*map(str, here), *more])})" if here else ""
