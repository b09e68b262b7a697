"""Community reports of one level; what they are written from; what they cite, checked and as rows that can be joined.

A reference such as `[Data: Entities (5, 7); Relationships (23)]` to a row that its report was not written from is
removed, and counted.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

import polars as pl

from graphrag_assets.contracts.records import Finding, ReportMaterial, ReportRecord, ReportRow
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.report_contexts import evidence, fitted_contexts, local_rows, source_lines, source_rows
from graphrag_assets.store import schema
from graphrag_assets.store.schema import polars_schema
from graphrag_assets.text.references import BLOCK, MARK, Checked, Given, places_cited_in, unread_in
from graphrag_assets.text.words import count_tokens

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
    """Return report with its references in canonical form, and those that it loses: to rows it was not written from."""
    citable, removed = _citable(material), dict[str, None]()

    def checked(text: str) -> str:
        checked, lost = Checked.text(text, citable, remove=True)
        removed.update(dict.fromkeys(lost))
        return checked

    correct = replace(
        record,
        summary=checked(record.summary),
        findings=[Finding(checked(one.summary), checked(one.explanation)) for one in record.findings],
        rating_explanation=checked(record.rating_explanation),
    )
    return correct, list(removed)


def _citable(material: ReportMaterial) -> Given:
    """Return rows that a report may cite: its evidence, the rows of its context, and those that reports in it cite."""
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
    return [(table, number) for block in BLOCK.finditer(text) for table, number, _ in places_cited_in(block["rows"])]


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
                for table, number, _ in places_cited_in(block["rows"]):
                    is_row = table in TABLES and number <= _LARGEST
                    stored = number if number <= _LARGEST else None
                    cited[report_id, TABLES.get(table, table), stored, pattern is MARK or not is_row] = None
                if unread := unread_in(block["rows"]):
                    cited[report_id, unread, None, True] = None
    return pl.DataFrame(list(cited), schema=_SCHEMA, orient="row")


WriteReports = Callable[[Sequence[ReportMaterial]], list[ReportRecord]]

MAX_TOKENS = 8000
"""Maximum tokens of the context of a report."""
REPORT_TYPES = polars_schema(schema.COMMUNITY_REPORTS)


class ReportInputs(NamedTuple):
    """What the reports of communities of one level are written from.

    communities: as the table, with the fingerprint of each report. members: community, entity_id. sub_members: child
    (a sub-community), entity_id. entities, relationships: as the tables. claims: as the table covariates, with
    human_readable_id, subject_entity_id and document_date. sub_reports: reports of sub-communities. text_units: id,
    human_readable_id, text, document_date, if a model is to be shown text units in place of these tables.
    """

    communities: pl.DataFrame
    members: pl.DataFrame
    sub_members: pl.DataFrame
    entities: pl.DataFrame
    relationships: pl.DataFrame
    claims: pl.DataFrame
    sub_reports: pl.DataFrame
    text_units: pl.DataFrame | None = None


def community_reports(
    inputs: ReportInputs,
    write: WriteReports,
    reporter: str,
    max_tokens: int = MAX_TOKENS,
    encoding: str = "o200k_base",
    removed: list[str] | None = None,
) -> pl.DataFrame:
    """Return the rows of community_reports of `inputs.communities`, written by `write`, whose fingerprint is
    `reporter`.

    `max_tokens` is the limit of each context. References to unknown rows are added to `removed`.
    """
    communities, members, sub_members, entities, relationships, claims, sub_reports, text_units = inputs
    lines = evidence(entities, relationships, claims, encoding)
    contexts, rows = fitted_contexts(local_rows(members, sub_members, lines), sub_reports, max_tokens, encoding)
    if text_units is not None:
        passages = source_rows(members, sub_members, entities, source_lines(text_units, encoding))
        fitted = fitted_contexts(passages, sub_reports, max_tokens, encoding).contexts
        # A community without text units is shown as it is.
        contexts = contexts.join(fitted.rename({"context": "shown"}), on="community", how="left").select(
            "community", context=pl.coalesce("shown", "context")
        )
    communities = communities.join(contexts, on="community", how="left").with_columns(pl.col("context").fill_null(""))
    communities = communities.sort("community")
    materials = _materials(communities, rows, members, entities)
    checked = [checked_report(*pair) for pair in zip(write(materials), materials, strict=True)]
    if removed is not None:
        removed += [lost for _, each in checked for lost in each]
    return _report_frame([record for record, _ in checked], communities, reporter, encoding)


def _materials(
    communities: pl.DataFrame, rows: pl.DataFrame, members: pl.DataFrame, entities: pl.DataFrame
) -> list[ReportMaterial]:
    said = rows.group_by("community", maintain_order=True).agg(
        pl.struct("section", "number", "names", "text").alias("evidence")
    )
    leading = (
        members.join(entities.select("title", "degree", entity_id="id"), on="entity_id")
        .sort("community", pl.col("degree").neg(), "title")
        .group_by("community", maintain_order=True)
        .agg(pl.col("title").head(10).alias("leading"))
    )
    table = communities.select("community", "size", pl.col("text_unit_ids").list.len(), "context")
    table = table.join(leading, on="community", how="left").join(said, on="community", how="left").sort("community")
    return [
        ReportMaterial(
            size=row["size"],
            n_text_units=row["text_unit_ids"],
            leading=tuple(row["leading"] or ()),
            rows=tuple(ReportRow(**{**e, "names": tuple(e["names"])}) for e in row["evidence"] or ()),
            context=row["context"],
        )
        for row in table.iter_rows(named=True)
    ]


def _report_frame(
    records: Sequence[ReportRecord], communities: pl.DataFrame, reporter: str, encoding: str
) -> pl.DataFrame:
    """Return the table's rows of `records`, one per row of `communities`, in the same order."""
    written: dict[str, Sequence[object]] = {
        "id": [stable_id("community_report", key) for key in communities["id"]],
        "title": [record.title for record in records],
        "summary": [record.summary for record in records],
        "full_content": [record.full_content for record in records],
        "rank": [record.rating for record in records],
        "rating_explanation": [record.rating_explanation for record in records],
        "findings": [[asdict(finding) for finding in record.findings] for record in records],
        "full_content_json": [json.dumps(asdict(record), ensure_ascii=False, indent=2) for record in records],
        "context_tokens": count_tokens(communities["context"], encoding),
        "model": [record.writer or reporter for record in records],
    }
    columns = [pl.Series(name, values, REPORT_TYPES[name]) for name, values in written.items()]
    return communities.with_columns(*columns).select(REPORT_TYPES.names()).cast(REPORT_TYPES)
