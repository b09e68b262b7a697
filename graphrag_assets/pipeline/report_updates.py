"""Community reports, level by level from the deepest up, because a report may replace its community's rows above."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import NamedTuple

import polars as pl

from graphrag_assets.contracts.records import ReportMaterial, ReportRecord, ReportRow
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.report_citations import checked_report
from graphrag_assets.pipeline.report_contexts import LevelContexts, evidence, level_contexts
from graphrag_assets.pipeline.report_sources import source_contexts, source_lines
from graphrag_assets.store import schema
from graphrag_assets.store.polars_schema import polars_schema
from graphrag_assets.text.references import CHECKED_PATTERN
from graphrag_assets.text.words import count_tokens

WriteReports = Callable[[Sequence[ReportMaterial]], list[ReportRecord]]

MAX_TOKENS = 8000
"""Maximum tokens of the context of a report."""
REPORT_TYPES = polars_schema(schema.COMMUNITY_REPORTS)
_WRITTEN = [
    "fingerprint", "title", "summary", "full_content", "rank", "rating_explanation", "findings", "full_content_json",
    "model",
]  # fmt: skip


class ReportInputs(NamedTuple):
    """What reports are written from.

    communities, entities, relationships: as the tables. members: community, level, entity_id (level-complete).
    claims: as the table covariates, with human_readable_id and subject_entity_id, only claims about entities.
    text_units: id, human_readable_id, text, if a model is to be shown text units in place of these tables.
    """

    communities: pl.DataFrame
    members: pl.DataFrame
    entities: pl.DataFrame
    relationships: pl.DataFrame
    claims: pl.DataFrame
    text_units: pl.DataFrame | None = None


def community_reports(
    inputs: ReportInputs,
    previous: pl.DataFrame,
    write: WriteReports,
    reporter: str,
    max_tokens: int = MAX_TOKENS,
    encoding: str = "o200k_base",
    others: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """One report per community of two or more; one whose fingerprint is unchanged is taken from `previous` as it is.

    An entity that is alone says no more in a report than by itself: only an imported report is about one.

    A report that was imported is kept whatever the reporter is, as long as what it would be written from stays the
    same. It comes without a fingerprint: then it is that of its community as it is now.

    Args:
        inputs: the graph and its communities.
        previous: the present table community_reports.
        write: what writes the reports of the communities that need one.
        reporter: fingerprint of `write`.
        max_tokens: limit of a context.
        others: reports of communities that `inputs.communities` does not have, which stay as they are: they may be
            sub-communities of those it has.

    Returns:
        the table community_reports without `others`, sorted by community.
    """
    communities, members, entities, relationships, claims, text_units = inputs
    passages = None if text_units is None else source_lines(text_units, encoding)
    lines = evidence(entities, relationships, claims, encoding)
    details = _details(entities, relationships, claims)
    # A report that was written by a fallback is written again.
    imported = previous.filter(pl.col("model") == schema.IMPORTED)
    previous = previous.filter(pl.col("model") == reporter).unique("fingerprint", keep="first")
    done: list[pl.DataFrame] = []
    for level in sorted(communities["level"].unique(), reverse=True):
        at_level = communities.filter(pl.col("level") == level)
        groups = at_level.filter(pl.col("size") > 1)
        shown_of = at_level if imported.height else groups
        own = members.filter(pl.col("level") == level).join(shown_of, on="community", how="semi")
        below = (
            members.filter(pl.col("level") == level + 1)
            .join(at_level, on="community", how="anti")
            .select("entity_id", child=pl.col("community").cast(pl.Int64))
        )
        sub_reports = pl.concat([empty_reports() if others is None else others, *done])
        below_reports = sub_reports.join(below, left_on="community", right_on="child", how="semi")
        contexts = level_contexts(own, below, lines, below_reports, max_tokens, encoding)
        of_graph = contexts.contexts
        if passages is not None:
            shown = source_contexts(own, below, entities, passages, below_reports, max_tokens, encoding)
            contexts = _shown_in_place(shown, contexts)
        prepared = _fingerprinted(groups, contexts.contexts, reporter)
        reused = prepared.join(previous.select(*_WRITTEN, "context_tokens"), on="fingerprint", how="inner")
        if imported.height:
            as_imported = _fingerprinted(at_level, of_graph, schema.IMPORTED)
            kept = _counted(_still_imported(as_imported, imported), encoding)
            reused = pl.concat([kept, reused]).unique("community", keep="first")
        fresh = prepared.join(reused, on="community", how="anti").sort("community")
        materials = _materials(fresh, contexts.rows, details, sub_reports, entities)
        records = [checked_report(*pair) for pair in zip(write(materials), materials, strict=True)]
        written = _report_frame(records, _counted(fresh, encoding), reporter)
        done += [_as_table(reused), written]
    return pl.concat([empty_reports(), *done]).sort("community")


def _shown_in_place(shown: LevelContexts, contexts: LevelContexts) -> LevelContexts:
    """`contexts` as `shown` to a model: where there is none, as they are.

    Their own text remains part of the fingerprint, as `basis`: reports without a call are written from their rows.
    """
    own = contexts.contexts.rename({"context": "basis"})
    joined = own.join(shown.contexts, on="community", how="full", coalesce=True)
    return LevelContexts(joined.with_columns(context=pl.coalesce("context", "basis")), contexts.rows)


def _still_imported(prepared: pl.DataFrame, imported: pl.DataFrame) -> pl.DataFrame:
    """`prepared` communities with the imported reports that are still about what they are now."""
    known = imported.filter(pl.col("fingerprint").is_not_null()).select(_WRITTEN)
    new = imported.filter(pl.col("fingerprint").is_null()).select("community", *_WRITTEN).drop("fingerprint")
    kept = prepared.join(known, on="fingerprint")
    return pl.concat([kept, prepared.join(new, on="community").select(kept.columns)])


def stale_reports(
    inputs: ReportInputs,
    stored: pl.DataFrame,
    reporter: str,
    max_tokens: int = MAX_TOKENS,
    encoding: str = "o200k_base",
) -> pl.Series:
    """Numbers of the communities whose report in `stored` was written from other inputs than the present ones."""
    # A fallback report has the same inputs as the reporter's own would have, and is itself an input of the reports of
    # larger communities.
    model = pl.when(pl.col("model") == schema.IMPORTED).then("model").otherwise(pl.lit(reporter))
    expected = community_reports(inputs, stored.with_columns(model=model), _blank, reporter, max_tokens, encoding)
    prints = [pl.col("community").cast(pl.Int64), pl.col("fingerprint")]
    missing = expected.select(prints).join(stored.select(prints), on=["community", "fingerprint"], how="anti")
    return missing["community"]


def _blank(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
    return [ReportRecord("", "", [], 0.0, "") for _ in materials]


def empty_reports() -> pl.DataFrame:
    """The table community_reports without rows."""
    return pl.DataFrame(schema=REPORT_TYPES)


def _fingerprinted(communities: pl.DataFrame, contexts: pl.DataFrame, reporter: str) -> pl.DataFrame:
    """Communities with context and the fingerprint of all that their report depends on."""
    joined = communities.join(contexts, on="community", how="left").with_columns(
        pl.col("context").fill_null(""), n_text_units=pl.col("text_unit_ids").list.len().cast(pl.Int64)
    )
    basis = ["basis"] if "basis" in contexts.columns else []
    inputs = joined.select("community", "size", "n_text_units", "context", *basis).iter_rows()
    prints = [stable_id("report", reporter, *row) for row in inputs]
    return joined.with_columns(
        pl.Series("fingerprint", prints, dtype=pl.String),
        pl.Series("id", [stable_id("community_report", key) for key in joined["id"]], dtype=pl.String),
        human_readable_id=pl.col("community"),
    ).drop("title", *basis)


def _counted(prepared: pl.DataFrame, encoding: str) -> pl.DataFrame:
    """`prepared` communities with context_tokens. Only of reports to be written: all would be the whole corpus."""
    return prepared.with_columns(pl.Series("context_tokens", count_tokens(prepared["context"], encoding), pl.Int64))


def _details(entities: pl.DataFrame, relationships: pl.DataFrame, claims: pl.DataFrame) -> pl.DataFrame:
    """section, number, names, text: what a report may say, row by row."""
    of_names = (("Entities", entities, ["title"]), ("Relationships", relationships, ["source", "target"]))
    return pl.concat(
        rows.select(section=pl.lit(name), number="human_readable_id", names=pl.concat_list(names), text="description")
        for name, rows, names in (*of_names, ("Claims", claims, ["subject_id"]))
    )


def _materials(
    communities: pl.DataFrame,
    rows: pl.DataFrame,
    details: pl.DataFrame,
    sub_reports: pl.DataFrame,
    entities: pl.DataFrame,
) -> list[ReportMaterial]:
    of_reports = sub_reports.select(
        section=pl.lit("Reports"),
        number=pl.col("community").cast(details.schema["number"]),
        names=pl.concat_list("title"),
        text=pl.col("summary").str.replace_all(CHECKED_PATTERN, ""),
    )
    known = pl.concat([details, of_reports])
    evidence_rows = (
        rows.join(communities.select("community"), on="community", how="semi")
        .with_columns(pl.col("number").cast(known.schema["number"]))
        .join(known, on=["section", "number"], how="inner", maintain_order="left")
        .group_by("community", maintain_order=True)
        .agg(pl.struct("section", "number", "names", "text").alias("evidence"))
    )
    leading = (
        communities.select("community", "entity_ids")
        .explode("entity_ids")
        .join(entities.select("id", "title", "degree"), left_on="entity_ids", right_on="id")
        .sort("community", pl.col("degree").neg(), "title")
        .group_by("community", maintain_order=True)
        .agg(pl.col("title").head(10).alias("leading"))
    )
    table = communities.select("community", "size", "n_text_units", "context").join(leading, on="community", how="left")
    table = table.join(evidence_rows, on="community", how="left").sort("community")
    return [
        ReportMaterial(
            size=row["size"],
            n_text_units=row["n_text_units"],
            leading=tuple(row["leading"] or ()),
            rows=tuple(ReportRow(**{**e, "names": tuple(e["names"])}) for e in row["evidence"] or ()),
            context=row["context"],
        )
        for row in table.iter_rows(named=True)
    ]


def _report_frame(records: Sequence[ReportRecord], communities: pl.DataFrame, reporter: str) -> pl.DataFrame:
    """The table's rows of `records`, one per row of `communities`, in the same order."""
    written = pl.DataFrame(
        {
            "title": [record.title for record in records],
            "summary": [record.summary for record in records],
            "full_content": [record.full_content for record in records],
            "rank": [record.rating for record in records],
            "rating_explanation": [record.rating_explanation for record in records],
            "findings": [[asdict(finding) for finding in record.findings] for record in records],
            "full_content_json": [json.dumps(asdict(record), ensure_ascii=False, indent=2) for record in records],
            "model": [record.writer or reporter for record in records],
        },
        schema={name: REPORT_TYPES[name] for name in _WRITTEN if name != "fingerprint"},
    )
    return _as_table(pl.concat([communities.sort("community"), written], how="horizontal"))


def _as_table(reports: pl.DataFrame) -> pl.DataFrame:
    return reports.select(REPORT_TYPES.names()).cast(REPORT_TYPES)
