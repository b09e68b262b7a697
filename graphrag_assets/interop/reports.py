"""Reports that came with an index: one per community, citing by the numbers that rows have here."""

import re
from collections.abc import Mapping

import polars as pl

from graphrag_assets.interop.repair_texts import Counts
from graphrag_assets.pipeline.citations import TABLES

_BLOCK = re.compile(r"\[Data: [^\]]*\]")
_PART = re.compile(r"([A-Za-z]+) \(([^)]*)\)")
_TEXTS = ("summary", "full_content", "rating_explanation", "full_content_json")

Numbers = Mapping[tuple[str, int], int]
"""By table and number in the imported index: the number here."""


def repair_reports(reports: pl.DataFrame, communities: pl.Series, counts: Counts) -> pl.DataFrame:
    """Reports that say something, one for each of `communities` at most; no field is null."""
    told = reports.filter(pl.col("full_content").fill_null("").str.strip_chars() != "").with_columns(
        pl.col("title", "summary", "rating_explanation", "full_content_json").fill_null(""),
        pl.col("rank").fill_null(0.0),
        pl.col("findings").fill_null([]),
    )
    counts["community_reports", "without content, left out"] += reports.height - told.height
    at_home = told.filter(pl.col("community").is_in(communities.implode()))
    counts["community_reports", "of communities that are not there, left out"] += told.height - at_home.height
    distinct = at_home.unique("community", keep="first", maintain_order=True)
    counts["community_reports", "of a community that has one, left out"] += at_home.height - distinct.height
    return distinct


def renumbered(reports: pl.DataFrame, numbers: Numbers, counts: Counts) -> pl.DataFrame:
    """`reports` citing rows by their numbers here. Where all rows kept theirs, the reports are as they were.

    A number that stands for nothing is left out where others change: it might come to mean another row.
    """
    if all(old == new for (_, old), new in numbers.items()):
        return reports
    gone = 0

    def block(match: re.Match[str]) -> str:
        return _PART.sub(part, match.group())

    def part(match: re.Match[str]) -> str:
        nonlocal gone
        table = TABLES.get(match[1].lower())
        if table is None:
            return match.group()
        cited = [int(number) for number in re.findall(r"\d+", match[2])]
        kept = list(dict.fromkeys(numbers[table, number] for number in cited if (table, number) in numbers))
        gone += sum((table, number) not in numbers for number in cited)
        more = ["+more"] if "more" in match[2] else []
        return f"{match[1]} ({', '.join([*map(str, kept), *more])})"

    def text(value: str) -> str:
        return _BLOCK.sub(block, value)

    findings = [
        [{name: text(value or "") for name, value in finding.items()} for finding in of_report]
        for of_report in reports["findings"]
    ]
    changed = reports.with_columns(
        *(pl.Series(name, [text(value) for value in reports[name]], dtype=pl.String) for name in _TEXTS),
        pl.Series("findings", findings, dtype=reports.schema["findings"]),
    )
    differing = (changed["full_content"] != reports["full_content"]).sum()
    counts["community_reports", "citing rows that have other numbers here, renumbered"] += int(differing)
    counts["community_reports", "citations of rows that are not there, left out"] += gone
    return changed
