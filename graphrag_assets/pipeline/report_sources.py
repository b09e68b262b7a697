"""What a community report is written from where descriptions are extracts: the text units that name its entities.

A model learns more from passages than from sentences that were cut out of them. Text units come by the summed degrees
of the community's entities that they name; over the token limit, sub-communities are replaced by their reports.
"""

import polars as pl

from graphrag_assets.pipeline.report_contexts import (
    LevelContexts,
    csv_line,
    fitted_contexts,
    with_date,
    with_tokens,
)


def source_lines(text_units: pl.DataFrame, encoding: str = "o200k_base") -> pl.DataFrame:
    """One line of context per text unit (id, human_readable_id, text, document_date).

    Returns:
        text_unit_id, number, line, tokens.
    """
    line = with_date(text_units, csv_line("human_readable_id", "text"))
    lines = text_units.select(text_unit_id="id", number=pl.col("human_readable_id").cast(pl.Int64), line=line)
    return with_tokens(lines, encoding)


def source_contexts(
    members: pl.DataFrame,
    sub_members: pl.DataFrame,
    entities: pl.DataFrame,
    lines: pl.DataFrame,
    sub_reports: pl.DataFrame,
    max_tokens: int,
    encoding: str = "o200k_base",
) -> LevelContexts:
    """The contexts of the communities that arise at one level; a community without text units has none.

    Args:
        members, sub_members, sub_reports, max_tokens: as for `level_contexts`.
        entities: id, degree, text_unit_ids.
        lines: `source_lines`.
    """
    rows = _source_rows(members, sub_members, entities, lines)
    return fitted_contexts(rows, sub_reports, max_tokens, encoding)


def _source_rows(
    members: pl.DataFrame, sub_members: pl.DataFrame, entities: pl.DataFrame, lines: pl.DataFrame
) -> pl.DataFrame:
    """The communities' text units in the order of the context, each with the child that has all it names, if any."""
    named = entities.select("degree", entity_id="id", text_unit_id="text_unit_ids").explode("text_unit_id").drop_nulls()
    found = members.join(named, on="entity_id").join(sub_members, on="entity_id", how="left")
    units = found.group_by("community", "text_unit_id").agg(
        pl.col("degree").sum(), child=pl.when(pl.col("child").n_unique() == 1).then(pl.col("child").first())
    )
    ordered = units.join(lines, on="text_unit_id").sort("community", pl.col("degree").neg(), "number")
    shown = ("community", pl.lit("Sources").alias("section"), "number", "line", "tokens", "child")
    return ordered.select(*shown, place=pl.int_range(pl.len(), dtype=pl.Int64))
